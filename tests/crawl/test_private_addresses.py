"""Private addresses in every way that a page can name them; without a network."""

from dataclasses import replace

import pytest

from focused.web.page import FailureKind
from tests.support.simulated import failed, moved, page, raw, site, topic

A, B = "http://a.test/", "http://b.test/"
PRIVATE = "http://169.254.169.254/latest/meta-data/"
FORMS = [PRIVATE, "http://0xa9fea9fe/latest/", "http://[fd00:ec2::254]/", "http://localhost:6379/"]
SITEMAP = """<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url>
<url><loc>http://a.test/fine</loc></url></urlset>"""


def asked_hosts(done) -> set[str]:
    return {url.split("/")[2] for _, url in done.asked}


@pytest.mark.parametrize("url", FORMS)
def test_neither_links_nor_areas_nor_frames_lead_there(simulate, tmp_path, url):
    body = f"<a href='{url}'>whale</a><map><area href='{url}'></map><iframe src='{url}'></iframe>"
    done = simulate(topic(tmp_path, A), site(raw(A, f"<p>whale{body}"))).run()
    assert asked_hosts(done) == {"a.test"}
    assert done.crawl.counters.out_of_scope == {"private address": 1}


def test_no_sitemap_leads_there(simulate, tmp_path):
    seed = "http://a.test/sitemap.xml"
    web = site(raw(seed, SITEMAP.format(PRIVATE), "application/xml"), page(f"{A}fine"))
    done = simulate(topic(tmp_path, seed), web).run()
    assert asked_hosts(done) == {"a.test"}
    assert done.rows[f"{A}fine"]["outcome"] == "fetched"


def test_no_redirect_leads_there(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), site(moved(A, PRIVATE))).run()
    assert asked_hosts(done) == {"a.test"}
    assert done.rows[A]["outcome"] == "redirected"
    assert done.crawl.counters.out_of_scope == {"private address": 1}


@pytest.mark.parametrize(
    "head",
    [
        f"<meta http-equiv=refresh content='0;url={PRIVATE}'>",
        f"<link rel=canonical href={PRIVATE}>",
    ],
)
def test_neither_refresh_nor_canonical_link_leads_there(simulate, tmp_path, head):
    done = simulate(topic(tmp_path, A), site(raw(A, f"<head>{head}</head><p>whale"))).run()
    assert asked_hosts(done) == {"a.test"}


def test_no_driver_can_queue_one(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), site(page(A)))
    assert not done.crawl.enqueue_url(PRIVATE, 1.0, done.now)
    assert not done.crawl.seed([PRIVATE], done.now)


def test_a_host_that_turns_out_private_is_asked_no_more_even_after_a_restart(simulate, tmp_path):
    bad = [f"{B}{n}" for n in range(3)]
    web = site(page(A, *bad), *(failed(url, FailureKind.PRIVATE_ADDRESS) for url in bad))
    done = simulate(topic(tmp_path, A), web).run()
    assert done.crawl.counters.failures == {"private-address": 3}
    assert sum(url in bad for _, url in done.asked) == 1
    done.restart()
    assert not done.crawl.enqueue_url(f"{B}more", 1.0, done.now)
    assert done.crawl.counters.out_of_scope == {"dead host": 1}


def test_in_an_intranet_they_are_hosts_like_others(simulate, tmp_path):
    mine = topic(tmp_path, PRIVATE)
    mine = replace(mine, scope=replace(mine.scope, private_addresses=True))
    assert simulate(mine, site(page(PRIVATE))).run().rows[PRIVATE]["outcome"] == "fetched"
