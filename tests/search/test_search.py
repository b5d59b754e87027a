"""Searching the pages of a crawl, and keeping its index up to date."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from focused.errors import ConfigurationError, ExtractionError, SearchError, StateError
from focused.parser_process import HandlerError
from focused.search.index import CrawlSearch, SearchQuery, UpdateResult, update_index
from focused.search.index_update import IndexedVersions
from tests.support.command import focused
from tests.support.in_this_process import InThisProcess
from tests.support.recorded_web import html
from tests.support.simulated import Simulation, raw, site, topic

SEED = "http://a.test/"
WHALES = "A whale is a mammal that lives in the sea. Whales sing songs to each other at night."
SHIPS = "Ships carry goods over the sea, and sailors tell of singing creatures of the deep."
CAFES = "Many cafés by the harbour sell coffee to the sailors before their ship leaves at dawn."

Searching = Callable[..., list[str]]


def crawl_of(folder: Path) -> Simulation:
    web = site(
        raw(SEED, html("Whale songs", "/ships", "/cafe", "/copy", text=WHALES)),
        raw("http://a.test/ships", html("Ships", "http://b.test/", text=SHIPS)),
        raw("http://a.test/cafe", html("Where to drink", text=CAFES)),
        raw("http://a.test/copy", html("Whale songs", "/ships", "/cafe", "/copy", text=WHALES)),
        raw("http://b.test/", html("\x1b[31mRed <b>alert</b>", text="A whale of a time. " * 9)),
    )
    return Simulation(topic(folder, SEED), web)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished crawl, with its index."""
    simulation = crawl_of(tmp_path_factory.mktemp("search"))
    simulation.run().close()
    folder = simulation.topic.output.folder
    update_index(folder, now=0.0)
    return folder


@pytest.fixture(scope="module")
def found(crawl: Path) -> Searching:
    """Returns the URLs that a query finds, best first."""
    searching = CrawlSearch(crawl)
    return lambda text, **more: [
        hit.url for hit in searching.search(SearchQuery(text, **more)).hits
    ]


def test_words_are_found_in_texts_by_their_stems_and_without_accents(found):
    assert found("mammals") == [SEED]
    assert found("CAFE coffee")[0] == "http://a.test/cafe"


def test_words_are_found_in_titles_and_anchors(found):
    assert found("title:drink") == ["http://a.test/cafe"]
    assert found("anchors:ships") == ["http://a.test/ships"]


def test_phrases_and_exclusions(found):
    assert found('"sailors tell"') == ["http://a.test/ships"]
    assert found('"tell sailors"') == []
    assert set(found("+sailors -coffee")) == {"http://a.test/ships"}


def test_a_title_counts_more_than_the_text(found):
    assert found("ship", plain=True)[0] == "http://a.test/ships"


def test_without_the_library_of_main_texts_no_page_is_indexed(crawl, monkeypatch):
    monkeypatch.setitem(sys.modules, "htmldate", None)
    done = focused("search", crawl, "whale", status=2)
    assert "search needs htmldate" in done.stderr
    assert "focused-crawler[search]" in done.stderr


def test_duplicates_are_left_out(found):
    assert "http://a.test/copy" not in found("whale songs")


def test_pages_are_selected_by_topic_host_relevance_and_time(found, crawl):
    everything = set(found("sea whale sailors"))
    on_topic = set(found("sea whale sailors", on_topic=True))
    assert SEED in on_topic < everything
    assert found("whale", host="b.test") == ["http://b.test/"]
    assert found("whale", host="B.Test") == ["http://b.test/"]
    assert "http://a.test/ships" not in found("sea", min_relevance=0.5)
    assert found("whale", since=9e9) == []


def test_a_snippet_shows_the_words_that_were_found(crawl):
    (hit,) = CrawlSearch(crawl).search(SearchQuery("coffee")).hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["coffee"]


def test_relevance_lifts_a_page_unless_ranked_by_words_alone(crawl):
    searching = CrawlSearch(crawl)

    def score(url: str, *, plain: bool) -> float:
        hits = searching.search(SearchQuery("sea", plain=plain)).hits
        return next(hit.score for hit in hits if hit.url == url)

    def lift(url: str) -> float:
        return score(url, plain=False) / score(url, plain=True)

    assert lift(SEED) > lift("http://a.test/ships") >= 1.0


def test_the_total_counts_all_matches(crawl):
    result = CrawlSearch(crawl).search(SearchQuery("sea OR whale OR sailors", limit=1))
    assert len(result.hits) == 1
    assert result.total == 4


def test_a_query_that_cannot_be_read_is_an_error_of_the_user(found):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        found('title:"open')
    with pytest.raises(ConfigurationError, match="limit"):
        found("whale", limit=0)


# The index


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Simulation]:
    """A crawl that has fetched one page."""
    simulation = crawl_of(tmp_path)
    simulation.run(pages=1).close()
    yield simulation
    simulation.close()


def urls(folder: Path) -> list[str]:
    hits = CrawlSearch(folder).search(SearchQuery("whale OR sea OR sailors", limit=50)).hits
    return sorted(hit.url for hit in hits)


def test_a_folder_that_is_no_crawl_gets_no_index(tmp_path):
    with pytest.raises(StateError, match="no such folder"):
        update_index(tmp_path / "mistyped", now=0.0)
    assert not (tmp_path / "mistyped").exists()


def test_an_update_extracts_only_what_the_index_lacks(growing):
    folder = growing.topic.output.folder
    assert update_index(folder, now=0.0) == UpdateResult(1, 0, 1)
    growing.restart().run().close()
    assert update_index(folder, now=0.0) == UpdateResult(3, 0, 4)
    assert update_index(folder, now=0.0) == UpdateResult(0, 0, 4)
    assert len(urls(folder)) == 4


def test_a_batch_whose_note_a_crash_prevented_is_indexed_again_and_not_twice(growing, monkeypatch):
    folder = growing.topic.output.folder
    growing.restart().run().close()

    class CrashError(Exception):
        pass

    def crash(*_: Any) -> None:
        raise CrashError

    with monkeypatch.context() as patched:
        patched.setattr(IndexedVersions, "put", crash)
        with pytest.raises(CrashError):
            update_index(folder, now=0.0)
    assert len(urls(folder)) == 4, "the batch was committed"
    assert update_index(folder, now=0.0).added == 4
    assert len(urls(folder)) == 4


def test_pages_that_a_fresh_crawl_lacks_are_removed(growing, tmp_path):
    folder = growing.topic.output.folder
    growing.restart().run().close()
    update_index(folder, now=0.0)
    shutil.copytree(folder / "search", tmp_path / "kept")
    shutil.rmtree(folder)
    again = crawl_of(tmp_path).run(pages=1)
    again.close()
    shutil.move(tmp_path / "kept", folder / "search")
    assert update_index(folder, now=0.0).removed == 3
    assert urls(folder) == [SEED]


class FailingExtractor(InThisProcess):
    """Its extractor cannot be imported."""

    def ask(self, message: bytes) -> bytes:
        raise HandlerError("No module named 'lxml_html_clean'")


def update_with_failing_extractor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("focused.corpus.stored_documents.ParserProcess", FailingExtractor)
        with pytest.raises(ExtractionError, match="no page could be extracted"):
            update_index(folder, now=0.0)


def test_an_index_without_texts_is_an_error_and_heals_by_the_next_update(growing, monkeypatch):
    folder = growing.topic.output.folder
    update_with_failing_extractor(folder, monkeypatch)
    assert urls(folder) == [SEED], "by its title"
    assert update_index(folder, now=0.0) == UpdateResult(1, 0, 1)
    assert CrawlSearch(folder).search(SearchQuery("mammal")).total == 1


def test_pages_whose_records_were_away_are_extracted_when_they_are_back(growing):
    folder = growing.topic.output.folder
    away = (folder / "pages.warc.gz").rename(folder / "away.gz")
    with pytest.raises(ExtractionError, match="no page could be extracted"):
        update_index(folder, now=0.0)
    away.rename(folder / "pages.warc.gz")
    update_index(folder, now=0.0)
    assert CrawlSearch(folder).search(SearchQuery("mammal")).total == 1


def test_a_crawl_without_an_index_says_how_to_make_one(tmp_path):
    with pytest.raises(SearchError, match="focused search"):
        CrawlSearch(tmp_path)


def test_a_damaged_index_says_how_to_mend_it(growing):
    folder = growing.topic.output.folder
    update_index(folder, now=0.0)
    (folder / "search" / "index" / "meta.json").write_text("{")
    with pytest.raises(SearchError, match="remove the folder"):
        update_index(folder, now=0.0)


def test_a_removed_index_is_built_again(growing):
    folder = growing.topic.output.folder
    update_index(folder, now=0.0)
    shutil.rmtree(folder / "search" / "index")
    assert update_index(folder, now=0.0) == UpdateResult(1, 0, 1)
    assert urls(folder) == [SEED]


def test_damaged_notes_of_the_index_are_named(growing):
    folder = growing.topic.output.folder
    update_index(folder, now=0.0)
    notes = folder / "search" / "indexed.sqlite"
    notes.write_bytes(notes.read_bytes()[:4096] + b"\xff" * 8192)
    with pytest.raises(SearchError, match=r"indexed\.sqlite"):
        update_index(folder, now=0.0)


# The command


def test_the_command_builds_searches_and_prints(growing):
    growing.restart().run().close()
    folder = str(growing.topic.output.folder)
    done = focused("search", folder, "sailors ship")
    assert "1. Ships" in done.stdout
    assert "http://a.test/ships" in done.stdout
    assert "pages match" in done.stdout


def test_the_command_prints_json(crawl):
    done = focused("search", crawl, "coffee", "--json", "--no-update")
    assert json.loads(done.stdout)["hits"][0]["url"] == "http://a.test/cafe"


def test_titles_with_escapes_are_inert_on_the_terminal(crawl):
    done = focused("search", crawl, "alert time", "--no-update")
    assert "alert" in done.stdout
    assert "\x1b" not in done.stdout
