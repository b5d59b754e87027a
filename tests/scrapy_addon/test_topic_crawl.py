"""``scrapy crawl topic`` end to end: real HTTP, the real scheduler, the real middlewares."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from focused.recorded_web.replay_faults import FaultPlan, parse_fault
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, answer, html, page, redirect, served


def small_web() -> MemoryWeb:
    return MemoryWeb(
        page("http://a.test/", html("Start", "/whales", "/trade", "http://b.test/", "/secret/x")),
        page("http://a.test/whales", html("Whales", "http://c.test/whale-1", text="whale " * 50)),
        page("http://a.test/trade", html("Trade", "/trade-2", "/trade-3")),
        page("http://a.test/trade-2", html("Trade two")),
        page("http://a.test/trade-3", html("Trade three")),
        page("http://a.test/secret/x", html("Secret whales")),
        page("http://a.test/robots.txt", "User-agent: *\nDisallow: /secret/\n"),
        page("http://b.test/", html("B", "https://b.test/moved")),
        redirect("https://b.test/moved", "http://c.test/whale-2"),
        page("http://c.test/whale-1", html("Whale one", "/whale-2", text="a whale")),
        page("http://c.test/whale-2", html("Whale two", text="another whale")),
        page("http://c.test/robots.txt", "User-agent: FocusedTest\nCrawl-delay: 0.3\n"),
    )


def test_a_crawl_fetches_every_reachable_page_once_and_ends(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        done = crawl(topic, site.address)
    assert done.status == 0, done.output
    asked = [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if x.path != "/robots.txt"]
    assert sorted(asked) == sorted(
        [
            "http://a.test/",
            "http://a.test/whales",
            "http://a.test/trade",
            "http://a.test/trade-2",
            "http://a.test/trade-3",
            "http://b.test/",
            "https://b.test/moved",
            "http://c.test/whale-1",
            "http://c.test/whale-2",
        ]
    )
    assert done.pages.loc["http://a.test/secret/x", "failure"] == "robots"


def test_the_user_sees_a_table_and_finds_the_folder_filled(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        done = crawl(topic, site.address)
    for word in ("fetched", "on topic", "harvest rate", "robots-excluded", "duplicates"):
        assert word in done.output
    assert "Traceback" not in done.output
    for name in ("pages.parquet", "links.parquet", "pages.warc.gz", "harvest.png", "crawl.log"):
        assert (done.folder / name).stat().st_size > 0
    assert json.loads((done.folder / "settings.json").read_text())["topic"]["name"] == "whales"
    assert json.loads((done.folder / "stats.json").read_text())["robots_excluded"] == 1


def test_each_row_tells_the_way_to_its_page(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        pages = crawl(topic, site.address).pages
    row = pages.loc["http://c.test/whale-1"]
    assert (row["parent"], row["anchor"], row["depth"]) == (
        "http://a.test/whales",
        "http://c.test/whale-1",
        2,
    )
    assert dict(row["features"]) == {"anchor": 1.0, "parent": 0.9}
    assert row["score"] == 0.6 + 0.3 * 0.9
    assert row["on_topic"]
    assert pages.loc["https://b.test/moved", "outcome"] == "redirected"


def test_robots_txt_comes_before_the_first_page_of_each_host(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        crawl(topic, site.address)
    first = {}
    for access in site.accesses:
        first.setdefault((access.scheme, access.host), access.path)
    assert set(first.values()) == {"/robots.txt"}


def test_hosts_are_asked_by_one_connection_and_no_sooner_than_their_delay(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/", delay_s=0.1)
    with served(small_web(), FaultPlan((parse_fault("*:kind=latency,latency_s=0.03"),))) as site:
        crawl(topic, site.address)
    by_host = defaultdict(list)
    for access in sorted(site.accesses, key=lambda x: x.start):
        by_host[access.host].append(access)
    for host, accesses in by_host.items():
        delay_s = 0.3 if host == "c.test" else 0.1
        for earlier, later in pairwise(accesses):
            assert later.start - earlier.end >= delay_s - 0.02, (host, earlier.path, later.path)


def test_the_focused_policy_takes_the_promising_links_first(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/", politeness="concurrency = 1")
    with served(small_web()) as site:
        focused = crawl(topic, site.address).fetched()
    assert focused.index("http://a.test/whales") < focused.index("http://a.test/trade")


def test_with_patience_it_waits_for_a_slow_host_with_better_links(tmp_path: Path) -> None:
    topic = write_topic(
        tmp_path, "http://a.test/", delay_s=0.1, politeness="concurrency = 1\npatience = 10"
    )
    with served(small_web()) as site:
        focused = crawl(topic, site.address).fetched()
    assert focused.index("http://c.test/whale-1") < focused.index("http://a.test/trade")


def test_the_breadth_first_policy_takes_links_as_they_were_found(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/", politeness="concurrency = 1")
    with served(small_web()) as site:
        crawl(topic, site.address, FOCUSED_POLICY="bfs", FOCUSED_FOLDER=tmp_path / "out")
        seqs = [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if "robots" not in x.path]
    assert seqs.index("http://a.test/trade") < seqs.index("http://c.test/whale-1")


def test_a_throttled_page_is_fetched_when_the_server_allows(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/whales")
    fault = parse_fault("a.test/whales:kind=429,retry_after_s=2,attempts=1")
    with served(small_web(), FaultPlan((fault,))) as site:
        done = crawl(topic, site.address)
    asked = [x for x in site.accesses if x.path == "/whales"]
    assert [x.status for x in asked] == [429, 200]
    assert asked[1].start - asked[0].end >= 1.9
    assert done.pages.loc["http://a.test/whales", "on_topic"]


def test_a_host_whose_robots_txt_fails_is_not_requested_pages(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/", "http://b.test/", politeness="max_tries = 2")
    with served(small_web(), FaultPlan((parse_fault("b.test/robots.txt:kind=503"),))) as site:
        done = crawl(topic, site.address)
    assert [x.path for x in site.accesses if x.host == "b.test" and x.scheme == "http"] == [
        "/robots.txt",
        "/robots.txt",
    ]
    assert done.pages.loc["http://b.test/", "failure"] == "http-5xx"
    assert done.pages.loc["http://c.test/whale-1", "outcome"] == "fetched"


def test_bad_pages_are_counted_by_kind_and_stop_nothing(tmp_path: Path) -> None:
    names = ("empty", "binary", "latin", "huge", "gone", "error", "pdf", "copy", "trained")
    web = MemoryWeb(
        page("http://a.test/", html("Start", *(f"/{name}" for name in names), "http://no.test/")),
        page("http://a.test/empty", b""),
        page("http://a.test/binary", bytes(range(256)) * 40),
        page("http://a.test/latin", "<title>W\xe4le</title> whale \xff\xfe".encode("latin-1")),
        page("http://a.test/huge", b"<p>whale</p>" * 5_000_000),
        answer("http://a.test/gone", 410),
        answer("http://a.test/error", 500),
        page("http://a.test/pdf", b"%PDF-1.4", content_type="application/pdf"),
        page(
            "http://a.test/copy", html("Start", *(f"/{name}" for name in names), "http://no.test/")
        ),
        page("http://a.test/trained", html("Trained", text="whale")),
    )
    topic = write_topic(tmp_path, "http://a.test/", politeness="max_tries = 1")
    with served(web) as site:
        done = crawl(topic, site.address)
    failures = done.pages["failure"].to_dict()
    assert {url.rsplit("/", 1)[1]: kind for url, kind in failures.items() if kind} == {
        "empty": "empty",
        "binary": "wrong-type",
        "huge": "too-large",
        "gone": "gone",
        "error": "http-5xx",
        "pdf": "damaged",
        "": "no-such-host",
    }
    stats = json.loads((done.folder / "stats.json").read_text())
    assert stats["unrecorded_hosts"] == 1
    assert "no-such-host" not in stats["failures"]
    assert done.pages.loc["http://a.test/latin", "on_topic"]
    assert done.pages.loc["http://a.test/copy", "duplicate_of"] == "http://a.test/"
    assert done.pages.loc["http://a.test/trained", "training"]
    assert "Traceback" not in done.output


def test_the_page_budget_is_kept_exactly_and_more_of_it_continues(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        assert len(crawl(topic, site.address, FOCUSED_PAGES=3).fetched()) == 3
        assert len(crawl(topic, site.address, FOCUSED_PAGES=5).fetched()) == 5
    asked = [x.path for x in site.accesses if x.host == "a.test" and x.path != "/robots.txt"]
    assert len(asked) == len(set(asked))


def test_a_folder_of_a_replayed_crawl_is_refused_by_a_live_one(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        crawl(topic, site.address, FOCUSED_PAGES=1)
    live = crawl(topic, "")
    assert live.status != 0
    assert "its web is 'a recorded one', not 'the live one'" in live.output
    assert "Traceback" not in live.output


def test_a_replayed_crawl_spares_no_server_and_settings_say_so(tmp_path: Path) -> None:
    topic = write_topic(tmp_path, "http://a.test/", politeness="fetch_time_factor = 50")
    with served(small_web()) as site:
        done = crawl(topic, site.address, FOCUSED_PAGES=1)
    ran = json.loads((done.folder / "settings.json").read_text())["topic"]["politeness"]
    assert (ran["fetch_time_factor"], ran["suspend_s"], ran["per_address"]) == (0, 0, False)
