"""``scrapy crawl topic`` end to end: real HTTP, the real scheduler, the real middlewares."""

import json

import pytest

from tests.support.crawling import Finished, crawl, write_topic
from tests.support.recorded_web import MemoryWeb, Served, answer, html, page, redirect, served


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


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Served]:
    topic = write_topic(tmp_path_factory.mktemp("crawl"), "http://a.test/")
    with served(small_web()) as site:
        done = crawl(topic, site.address, FOCUSED_REPORT=True)
    assert done.status == 0, done.output
    return done, site


def test_a_crawl_fetches_every_reachable_page_once_and_ends(crawled):
    done, site = crawled
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


def test_the_user_sees_a_table_and_finds_the_folder_filled(crawled):
    done, _ = crawled
    for word in ("fetched", "on topic", "harvest rate", "robots-excluded", "duplicates"):
        assert word in done.output
    assert "Traceback" not in done.output
    for name in ("pages.parquet", "links.parquet", "pages.warc.gz", "report.json", "crawl.log"):
        assert (done.folder / name).stat().st_size > 0
    assert json.loads((done.folder / "settings.json").read_text())["topic"]["name"] == "whales"
    assert done.stats["robots_excluded"] == 1


def test_the_focused_policy_takes_the_promising_links_first(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/", politeness="concurrency = 1")
    with served(small_web()) as site:
        focused = crawl(topic, site.address).fetched()
    assert focused.index("http://a.test/whales") < focused.index("http://a.test/trade")


def test_with_patience_it_waits_for_a_slow_host_with_better_links(tmp_path):
    topic = write_topic(
        tmp_path, "http://a.test/", delay_s=0.1, politeness="concurrency = 1\npatience = 10"
    )
    with served(small_web()) as site:
        focused = crawl(topic, site.address).fetched()
    assert focused.index("http://c.test/whale-1") < focused.index("http://a.test/trade")


def test_the_breadth_first_policy_takes_links_as_they_were_found(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/", politeness="concurrency = 1")
    with served(small_web()) as site:
        crawl(topic, site.address, FOCUSED_POLICY="bfs", FOCUSED_FOLDER=tmp_path / "out")
        seqs = [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if "robots" not in x.path]
    assert seqs.index("http://a.test/trade") < seqs.index("http://c.test/whale-1")


def test_bad_pages_are_counted_by_kind_and_stop_nothing(tmp_path):
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
    stats = done.stats
    assert stats["unrecorded_hosts"] == 1
    assert "no-such-host" not in stats["failures"]
    assert done.pages.loc["http://a.test/latin", "on_topic"]
    assert done.pages.loc["http://a.test/copy", "duplicate_of"] == "http://a.test/"
    assert done.pages.loc["http://a.test/trained", "training"]
    assert "Traceback" not in done.output


def test_the_page_budget_is_kept_exactly_and_more_of_it_continues(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        assert len(crawl(topic, site.address, FOCUSED_PAGES=3).fetched()) == 3
        assert len(crawl(topic, site.address, FOCUSED_PAGES=5).fetched()) == 5
    asked = [x.path for x in site.accesses if x.host == "a.test" and x.path != "/robots.txt"]
    assert len(asked) == len(set(asked))


def test_a_folder_of_a_replayed_crawl_is_refused_by_a_live_one(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    with served(small_web()) as site:
        crawl(topic, site.address, FOCUSED_PAGES=1)
    live = crawl(topic, "")
    assert live.status != 0
    assert "its web is 'a recorded one', not 'the live one'" in live.output
    assert "Traceback" not in live.output


def test_a_replayed_crawl_spares_no_server_and_settings_say_so(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/", politeness="fetch_time_factor = 50")
    with served(small_web()) as site:
        done = crawl(topic, site.address, FOCUSED_PAGES=1)
    ran = json.loads((done.folder / "settings.json").read_text())["topic"]["politeness"]
    assert (ran["fetch_time_factor"], ran["suspend_s"], ran["per_address"]) == (0, 0, False)
