"""Excluded links are counted and listed; traps have examples."""

from __future__ import annotations

import json

import pandas as pd

from tests.support.simulated import page, raw, site, topic

A = "http://a.test/"
CLOSED = [f"{A}closed/{n}" for n in range(5)]
UNWANTED = [f"{A}unwanted/{n}" for n in range(4)]
ENDLESS = [f"{A}{'x/' * n}page" for n in range(3, 11)]


def web():
    some = "".join(f"<a href='{url}' rel=nofollow>no</a>" for url in UNWANTED[:2])
    all_of_it = "".join(f"<a href='{url}'>no</a>" for url in UNWANTED[2:])
    return site(
        raw(f"{A}robots.txt", "User-agent: *\nDisallow: /closed/\n", "text/plain"),
        page(A, "/some", "/all", *CLOSED, *ENDLESS),
        raw(f"{A}some", f"<title>some</title>{some}<p>words of its own"),
        raw(f"{A}all", f"<meta name=robots content=nofollow><title>all</title>{all_of_it}"),
    )


def test_each_exclusion_by_robots_txt_has_its_row(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web()).run()
    counted = crawl.crawl.counters.robots_excluded
    crawl.close()
    pages = pd.read_parquet(crawl.topic.output.folder / "pages.parquet")
    assert sorted(pages[pages["failure"] == "robots"]["url"]) == CLOSED
    assert counted == len(CLOSED)


def test_each_link_that_is_not_to_be_followed_has_its_row(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web()).run()
    counted = crawl.crawl.counters.nofollow
    crawl.close()
    links = pd.read_parquet(crawl.topic.output.folder / "links.parquet")
    assert sorted(links[links["nofollow"]]["target"]) == UNWANTED
    assert counted == len(UNWANTED)
    assert not set(UNWANTED) & set(crawl.urls)


def test_links_into_traps_have_the_first_of_each_host_and_kind_as_examples(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web()).run(pages=1).restart().run()
    (line,) = json.loads(json.dumps(crawl.crawl.traps.stats.as_json()))
    assert line["kind"] == "trap: repeated segments"
    assert line["links"] == len(ENDLESS)
    assert line["examples"] == ENDLESS[:3]
