"""What changed since a time: as data, JSON Lines and an Atom feed."""

import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
from lxml import etree

from focused.archive.page_history import VisitResult, decode_visit
from focused.reports.collection_changes import PageChange, read_changes, to_atom, to_json_line
from focused.storage.state_store import StateStore
from focused.topic import DeepWeb, Scope
from focused.web.feeds import parse_feed
from focused.web.page import FailureKind, Fetched
from tests.crawl.test_oai_repository import PapersSite
from tests.support.continuous_crawl import BACK, DAY_S, HOME, LEFT, MOVED, NEWS, SHIPS, TARGET
from tests.support.oai_repository import BASE
from tests.support.search_site import HOST, ROOT, SearchSite
from tests.support.simulated import START, Simulation, failed, page, site, topic

EVERY_PAGE = Scope(near_duplicates=False)
ATOM = "{http://www.w3.org/2005/Atom}"
HARVESTED = START + DAY_S


def changes(folder: Path, since: float = HARVESTED, **options: bool) -> list[tuple[str, str]]:
    return [(each.kind, each.url) for each in read_changes(folder, since, **options)]


def test_each_change_is_listed_once_in_order_of_time(living_crawl):
    found = changes(living_crawl)
    assert sorted(found) == sorted(
        [
            ("gone", BACK),
            ("gone", LEFT),
            ("moved", MOVED),
            ("new", TARGET),
            ("changed", NEWS),
            ("changed", SHIPS),
            ("reappeared", BACK),
            ("changed", NEWS),
        ]
    )
    times = [each.at for each in read_changes(living_crawl, HARVESTED)]
    assert times == sorted(times)


def test_pages_of_the_first_harvest_are_new_since_its_beginning(living_crawl):
    found = changes(living_crawl, START)
    assert {url for kind, url in found if kind == "new"} >= {HOME, NEWS, LEFT, SHIPS}


def test_a_url_without_a_page_is_no_new_page(tmp_path):
    missing = failed("http://a.test/whales", FailureKind.GONE)
    web = site(page("http://a.test/", "/whales"), missing)
    crawl = Simulation(topic(tmp_path, "http://a.test/"), web)
    crawl.run().close()
    assert changes(crawl.topic.output.folder, START) == [("new", "http://a.test/")]


def test_a_page_that_stays_gone_is_no_news(living_crawl):
    assert ("gone", LEFT) not in changes(living_crawl, START + 9 * DAY_S)


def test_a_version_that_could_not_be_compared_is_no_change(living_crawl, tmp_path):
    folder = Path(shutil.copytree(living_crawl, tmp_path / "crawl"))
    with closing(StateStore.reopen(folder / "state")) as store:
        rows = [(key, decode_visit(raw)) for key, raw in store.tables.scan("visits")]
        for key, visit in rows:
            if visit.result == VisitResult.CHANGED:
                unknown = msgspec.structs.replace(visit, result=VisitResult.UNKNOWN)
                store.tables.put("visits", key, msgspec.msgpack.encode(unknown))
        store.commit()
    kinds = {kind for kind, _ in changes(folder)}
    assert kinds == {"new", "gone", "moved", "reappeared"}


def test_off_topic_pages_can_be_left_out(living_crawl):
    assert ("changed", SHIPS) in changes(living_crawl)
    assert ("changed", SHIPS) not in changes(living_crawl, relevant_only=True)


def test_lists_of_a_repository_are_no_pages(tmp_path):
    crawl = Simulation(topic(tmp_path, BASE, scope=EVERY_PAGE), PapersSite())  # type: ignore[arg-type]
    crawl.run().close()
    found = {url for _, url in changes(crawl.topic.output.folder, START)}
    assert found and not any(url.startswith(BASE) for url in found)


def test_results_of_a_search_form_are_no_pages(tmp_path):
    searched = topic(tmp_path, ROOT, scope=EVERY_PAGE, deep_web=DeepWeb((HOST,), queries=5))
    searched = replace(searched, training=replace(searched.training, keywords=("whale*",)))
    site = SearchSite()
    crawl = Simulation(searched, site)  # type: ignore[arg-type]
    crawl.run().close()
    found = {url for _, url in changes(crawl.topic.output.folder, START)}
    assert site.queries and found & site.relevant
    assert not any("/find?" in url for url in found)


def test_a_change_has_its_size_and_a_moved_page_its_target(living_crawl):
    found = read_changes(living_crawl, HARVESTED)
    (moved,) = [each for each in found if each.kind == "moved"]
    assert (moved.target, moved.status) == (TARGET, 301)
    sizes = [each.change for each in found if each.url == NEWS]
    assert all(size is not None and 0.1 < size < 0.6 for size in sizes)


def test_a_line_is_a_json_object_with_times_in_utc():
    line = to_json_line(PageChange("new", "http://a.test/ü", 1_767_225_600.5, title="Ü"))
    assert "\n" not in line
    read = json.loads(line)
    assert (read["kind"], read["at"], read["previous_at"]) == (
        "new",
        "2026-01-01T00:00:00.500Z",
        None,
    )
    assert (read["url"], read["title"]) == ("http://a.test/ü", "Ü")


def test_a_feed_has_what_rfc_4287_requires(living_crawl):
    found = read_changes(living_crawl, HARVESTED)
    feed = etree.fromstring(to_atom(found, "whales", now=0.0))
    assert feed.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated", f"author/{ATOM}name"):
        assert feed.findtext(f"{ATOM}{name}")
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == len(found)
    for entry in entries:
        assert all(entry.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))
        assert entry.find(f"{ATOM}link[@rel='alternate']").get("href")
    updated = [entry.findtext(f"{ATOM}updated") for entry in entries]
    assert updated == sorted(updated, reverse=True)
    assert feed.findtext(f"{ATOM}updated") == updated[0]


def test_the_crawlers_own_parser_reads_the_feed(living_crawl):
    found = read_changes(living_crawl, HARVESTED)
    atom = {"content-type": "application/atom+xml"}
    body = to_atom(found, "whales", now=0.0)
    feed = parse_feed(Fetched("http://c.test/feed", 200, atom, body))
    assert feed is not None
    assert {each.url for each in found} <= {link.url for link in feed.links}


def test_ids_are_unique_and_stay_when_the_feed_is_written_again(living_crawl):
    def ids(since: float) -> list[str]:
        feed = etree.fromstring(to_atom(read_changes(living_crawl, since), "whales", now=0.0))
        return [each.text for each in feed.iter(f"{ATOM}id")]

    assert len(set(ids(HARVESTED))) == len(ids(HARVESTED))
    assert set(ids(START + 6 * DAY_S)) < set(ids(HARVESTED))


def test_a_feed_without_changes_is_a_feed():
    feed = etree.fromstring(to_atom([], "whales", now=1_767_225_600.0))
    assert feed.findtext(f"{ATOM}updated") == "2026-01-01T00:00:00.000Z"


def test_a_title_with_control_characters_makes_no_broken_feed():
    change = PageChange("new", "http://a.test/", 0.0, title="a\x00b\x1b\ud800<c>")
    title = etree.fromstring(to_atom([change], "whales", now=0.0)).find(f"{ATOM}entry/{ATOM}title")
    assert title.text == "New: a\ufffdb\ufffd\ufffd<c>"
