"""Sitemaps in robots.txt as seeds: ``seeds.robots_sitemaps``."""

from dataclasses import replace

from focused.topic import Scope, Seeds
from focused.web.page import FailureKind
from tests.support.simulated import failed, page, raw, site, topic

A, B = "http://a.test/", "http://b.test/"
DAY_S = 86_400.0


def naming(host: str, *sitemaps: str):
    lines = "\n".join(f"Sitemap: {url}" for url in sitemaps)
    return raw(f"{host}robots.txt", f"User-agent: *\nDisallow: /no\n{lines}\n", "text/plain")


def listing(url: str, *pages: str):
    entries = "".join(f"<url><loc>{page}</loc></url>" for page in pages)
    return raw(url, f'<?xml version="1.0"?><urlset>{entries}</urlset>', "application/xml")


def wanting(tmp_path, *seeds: str, **sections):
    return topic(tmp_path, *seeds, **{"seeds": Seeds(seeds, robots_sitemaps=True), **sections})


def web():
    return site(
        naming(A, A + "map.xml"),
        listing(A + "map.xml", A + "deep"),
        page(A, B),
        page(A + "deep"),
        naming(B, B + "map.xml"),
        listing(B + "map.xml", B + "deep"),
        page(B),
        page(B + "deep"),
    )


def test_sitemaps_of_a_seeds_host_are_seeds(simulate, tmp_path):
    done = simulate(wanting(tmp_path, A), web()).run()
    assert (done.rows[A + "map.xml"]["outcome"], done.rows[A + "map.xml"]["depth"]) == ("feed", 0)
    assert done.rows[A + "deep"]["depth"] == 0


def test_those_of_other_hosts_are_not(simulate, tmp_path):
    done = simulate(wanting(tmp_path, A), web()).run()
    assert B in done.urls and B + "map.xml" not in done.urls


def test_by_default_none_are(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), web()).run()
    assert A + "map.xml" not in done.urls


def test_they_are_requested_once_though_robots_txt_is_read_again(simulate, tmp_path):
    crawl = simulate(wanting(tmp_path, A), web()).run()
    crawl.now += DAY_S + 1
    crawl.crawl.seed([A + "more"], crawl.now)
    crawl.run()
    assert len(crawl.times(A + "robots.txt")) == 2
    assert len(crawl.times(A + "map.xml")) == 1


def test_they_obey_scope_and_rules(simulate, tmp_path):
    there = site(page(A), naming(A, B + "map.xml", A + "no.xml"), listing(B + "map.xml", B))
    done = simulate(wanting(tmp_path, A, scope=Scope(allow_hosts=("a.test",))), there).run()
    assert done.urls == [A]
    assert done.rows[A + "no.xml"]["failure"] == "robots"
    assert done.crawl.counters.out_of_scope == {"host not allowed": 1}


def test_of_thousands_twenty_are(simulate, tmp_path):
    there = site(page(A), naming(A, *(f"{A}{n}.xml" for n in range(3_000))))
    done = simulate(wanting(tmp_path, A), there).run()
    assert len(done.urls) == 21


def test_an_unreachable_robots_txt_names_none(simulate, tmp_path):
    there = site(page(A), failed(A + "robots.txt", FailureKind.SERVER_ERROR))
    mine = wanting(tmp_path, A)
    mine = replace(mine, politeness=replace(mine.politeness, suspend_s=0.0))
    assert simulate(mine, there).run().urls == []
