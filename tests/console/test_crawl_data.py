"""What the console reads of a crawl folder."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.archive.archive import PageRow
from focused.console.crawl_data import CrawlData, PageQuery
from focused.storage import state_store
from focused.topic import topic_to_json
from focused.web.page import FailureKind
from tests.support.simulated import Simulation, failed, moved, page, site, topic

SEED = "http://a.test/"
WHALES = "Whales and more whales: the whale is a whale."


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """A crawl of seven URLs on three hosts: two on topic, one failure, one redirect."""
    web = site(
        page(SEED, "http://a.test/1", "http://b.test/", "http://c.test/", text=WHALES),
        page("http://a.test/1", "http://a.test/2", text=WHALES, title="<b>One</b>"),
        page("http://a.test/2", text="Ships"),
        moved("http://b.test/", "http://a.test/2"),
        failed("http://c.test/", FailureKind.GONE),
    )
    crawl = Simulation(topic(tmp_path, SEED), web)
    settings = {"topic": topic_to_json(crawl.topic), "policy": "focused"}
    (crawl.topic.output.folder / "settings.json").write_text(json.dumps(settings))
    yield crawl
    crawl.close()


@pytest.fixture
def data(simulation: Simulation) -> CrawlData:
    """The finished crawl."""
    simulation.run().close()
    found = CrawlData(simulation.topic.output.folder)
    found.refresh()
    return found


def urls(data: CrawlData, **wanted: str) -> list[str]:
    return [each["url"] for each in data.pages(PageQuery(**wanted), 100)["pages"]]


def test_a_running_crawl_is_told_from_one_that_ended(simulation):
    data = CrawlData(simulation.topic.output.folder)
    assert data.summary()["is_running"]
    simulation.run().close()
    assert not data.summary()["is_running"]


@pytest.mark.parametrize(
    "settings", [{"topic": 5}, {"topic": {"name": 5}}, {"topic": {"scope": {"allow_hosts": 5}}}]
)
def test_settings_that_no_crawl_writes_are_left_out(simulation, settings):
    simulation.run(pages=1).close()
    folder = simulation.topic.output.folder
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "stats.json").write_text('{"fetched": Infinity}')
    data = CrawlData(folder)
    assert data.summary()["topic"] == folder.name
    assert data.summary()["fetched"] is None
    assert data.topic_file_and_web() == ("", None)
    assert data.frontier(5)["totals"]["links"]


def test_new_rows_are_added(simulation):
    simulation.run(pages=1).close()  # an environment is open once in a process
    data = CrawlData(simulation.topic.output.folder)
    assert data.refresh() == 1
    simulation.restart().run().close()
    assert data.refresh() == 5


def test_the_state_of_a_killed_crawl_is_copied_once(simulation, monkeypatch):
    simulation.run(pages=1)
    simulation.store.sync()
    simulation.store.abandon()
    data = CrawlData(simulation.topic.output.folder)
    copied: list[Path] = []

    def copy(folder, stack):
        copied.append(folder)
        return copy_state(folder, stack)

    copy_state = state_store._copy
    with monkeypatch.context() as patched:
        patched.setattr(state_store, "_copy", copy)
        assert [data.refresh() for _ in range(3)] == [1, 1, 1]
    assert len(copied) == 1
    simulation.die()
    simulation.run()
    simulation.close()
    assert data.refresh() == 5


def test_pages_are_found_by_text_host_and_kind(data):
    assert urls(data, kind="on-topic", sort="oldest") == [SEED, "http://a.test/1"]
    assert urls(data, text="<B>one") == ["http://a.test/1"]
    assert urls(data, host="b.test") == ["http://b.test/"]
    assert urls(data, kind="failed") == ["http://c.test/"]
    assert urls(data, kind="redirected") == ["http://b.test/"]


def test_pages_come_in_parts_with_their_total(data):
    part = data.pages(PageQuery(sort="oldest", offset=1), 2)
    assert part["total"] == 5
    assert len(part["pages"]) == 2


def test_a_page_shows_its_path_from_the_seed_and_what_became_of_its_links(data):
    found = data.page("http://a.test/2")
    assert found is not None
    assert found["path"][0]["url"] == SEED
    assert found["path"][-1]["url"] == "http://a.test/2"
    of_seed = data.page(SEED)
    assert of_seed is not None
    outcomes = {link["url"]: link["outcome"] for link in of_seed["links"]}
    assert outcomes["http://c.test/"] == "gone"
    assert data.page("http://nowhere.test/") is None


def test_a_page_that_is_asked_for_may_be_newer_than_the_last_refresh(simulation):
    simulation.run().close()
    assert CrawlData(simulation.topic.output.folder).page(SEED) is not None


def test_the_harvest_curve_ends_at_the_totals(data):
    curve = data.harvest_curve(100)
    assert curve["pages"][-1] == 3
    assert curve["on_topic"][-1] == 2
    assert curve["rolling"][-1] == pytest.approx(2 / 3)


def test_hosts_have_their_harvest_and_say_why_they_wait(simulation):
    simulation.run(pages=2).close()
    data = CrawlData(simulation.topic.output.folder)
    data.refresh()
    by_name = {host["host"]: host for host in data.hosts(10)}
    assert by_name["a.test"]["on_topic"] == 2
    assert by_name["a.test"]["queued"] == 1
    assert by_name["a.test"]["waits"]


def test_the_frontier_lists_the_best_links_and_where_they_were_found(simulation):
    simulation.run(pages=2).close()
    frontier = CrawlData(simulation.topic.output.folder).frontier(10)
    assert frontier["totals"]["links"] == len(frontier["links"])
    assert {"http://a.test/2": "http://a.test/1"}.items() <= {
        link["url"]: link["parent"] for link in frontier["links"]
    }.items()


def test_a_crawl_without_its_state_is_read_from_its_parquet_files(data):
    shutil.rmtree(data.folder / "state")
    again = CrawlData(data.folder)
    assert again.refresh() == 5
    assert again.harvest_curve(10) == data.harvest_curve(10)
    assert again.frontier(10) == {}
    assert urls(again, kind="on-topic") == urls(data, kind="on-topic")


def in_links(data: CrawlData, url: str) -> list[str]:
    found = data.page(url)
    assert found is not None
    return [link["url"] for link in found["in_links"]["links"]]


def test_in_links_are_known_while_the_crawl_runs(simulation):
    simulation.run(pages=2).close()
    data = CrawlData(simulation.topic.output.folder)
    data.refresh()
    assert in_links(data, "http://a.test/1") == [SEED]
    assert in_links(data, SEED) == []
    simulation.restart().run().close()
    data.refresh()
    assert in_links(data, "http://a.test/2") == ["http://a.test/1"]
    found = data.page("http://a.test/1")
    assert found is not None
    (link,) = found["in_links"]["links"]
    assert link["on_topic"]
    assert link["score"] is not None


def test_in_links_are_the_same_from_the_parquet_files(data):
    before = data.page("http://a.test/1")
    shutil.rmtree(data.folder / "state")
    again = CrawlData(data.folder)
    again.refresh()
    after = again.page("http://a.test/1")
    assert before is not None and after is not None
    assert after["in_links"] == before["in_links"]


def test_each_model_is_listed_with_the_first_page_that_it_classified(tmp_path):
    data = CrawlData(tmp_path)
    for seq, (model, outcome) in enumerate(
        [("old", "fetched"), ("new", "failed"), ("old", "fetched"), ("new", "fetched")]
    ):
        url = f"http://a.test/{seq}"
        values = (seq, url, "a.test", outcome, 0.0, {}, 0, None, "", 0.0, float(seq), "focused")
        data._add(PageRow(*values, model=model))
    assert data.models() == [
        {"name": "old", "page": 1, "since": 0.0},
        {"name": "new", "page": 4, "since": 3.0},
    ]
