"""WARC records of pages that were visited again and had not changed, read by other programs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from focused.archive.page_history import VisitRow, visit_rows
from focused.archive.warc_files import WARC_FILE
from focused.storage.state_store import StateStore
from focused.web.page import Fetched, HttpExchange, Outcome
from focused.web.warc_reader import WarcResponse, read_response, read_responses
from focused.web.warc_records import IDENTICAL_PAYLOAD, SERVER_NOT_MODIFIED, format_http_head
from tests.support.continuous_crawl import DAY_S, HOME, WHALES, continuous_crawl
from tests.support.recorded_web import html
from tests.support.simulated import START

Crawled = Callable[..., Path]


def home(text: str, **headers: str) -> Fetched:
    """The home page as a client got it, with the request."""
    body = html("Whales", text=f"{WHALES} {text}")
    seen = {"content-type": "text/html", **headers}
    exchange = HttpExchange(
        format_http_head("GET / HTTP/1.1", {"Host": "a.test"}),
        format_http_head("HTTP/1.1 200 OK", seen),
        body,
    )
    return Fetched(HOME, 200, seen, body, exchange=exchange)


def versions(*pages: Outcome, every_days: float = 2.0) -> Callable[[float], Outcome]:
    """Another page every few days; the last one stays."""
    return lambda now: pages[min(int((now - START) / (every_days * DAY_S)), len(pages) - 1)]


@pytest.fixture
def crawled(tmp_path: Path) -> Crawled:
    """Crawl a web of one page for some days; return the folder."""

    def run(answer: Outcome | Callable[[float], Outcome], days: float = 4.0) -> Path:
        simulation = continuous_crawl(tmp_path, {HOME: answer}, days, pages_per_day=4)
        return simulation.topic.output.folder

    return run


def records(folder: Path, kind: str) -> list[dict[str, str]]:
    """The headers of the page's records of a type, as warcio reads them."""
    with (folder / WARC_FILE).open("rb") as file:
        return [
            {**dict(each.rec_headers.headers), "status": each.http_headers.get_statuscode()}
            for each in ArchiveIterator(file)
            if each.rec_type == kind and each.rec_headers["WARC-Target-URI"] == HOME
        ]


def visits(folder: Path) -> list[VisitRow]:
    with StateStore.open_for_reading(folder / "state") as (store, _):
        return list(visit_rows(store.tables))


def assert_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checker = Checker(type("Command", (), {"inputs": [], "verbose": True, "cmd": "check"})())
    checker.process_one(str(folder / WARC_FILE))
    assert checker.exit_value == 0, capsys.readouterr().out


def test_a_304_is_a_revisit_record_that_refers_to_its_version(crawled, capsys):
    folder = crawled(home("one", etag='"1"'))
    (response,) = records(folder, "response")
    not_modified = [each for each in records(folder, "revisit") if each["status"] == "304"]
    assert not_modified
    for each in not_modified:
        assert each["WARC-Profile"] == SERVER_NOT_MODIFIED
        assert each["WARC-Refers-To"] == response["WARC-Record-ID"]
        assert each["WARC-Refers-To-Target-URI"] == HOME
        assert each["WARC-Refers-To-Date"] == response["WARC-Date"]
    assert_valid(folder, capsys)


def test_an_identical_page_is_a_revisit_record_with_its_digest(crawled, capsys):
    folder = crawled(home("one"))
    (response,) = records(folder, "response")
    identical = records(folder, "revisit")
    assert len(identical) == len(visits(folder)) > 5
    for each in identical:
        assert each["WARC-Profile"] == IDENTICAL_PAYLOAD
        assert each["WARC-Payload-Digest"] == response["WARC-Payload-Digest"]
        assert each["WARC-Refers-To"] == response["WARC-Record-ID"]
    assert_valid(folder, capsys)


def test_each_version_is_a_response_record(crawled):
    folder = crawled(versions(home("one"), home("two calves in the bay")))
    assert len(records(folder, "response")) == 2


def test_a_304_to_a_version_that_came_back_refers_to_its_first_record(crawled, capsys):
    one, two = home("one", etag='"1"'), home("two calves in the bay", etag='"2"')
    folder = crawled(versions(one, two, one), days=8)
    first, _ = responses = records(folder, "response")
    assert [each["status"] for each in responses] == ["200", "200"]
    came_back = visits(folder)[-1]
    assert came_back.result == "not-modified"
    last = [each for each in records(folder, "revisit") if each["status"] == "304"][-1]
    assert last["WARC-Refers-To"] == first["WARC-Record-ID"]
    assert_valid(folder, capsys)


def test_the_records_of_visits_can_be_read_as_the_page(crawled):
    folder = crawled(home("one"))
    for visit in visits(folder):
        assert visit.warc_file is not None and visit.warc_offset is not None
        found = read_response(folder / visit.warc_file, visit.warc_offset)
        assert found is not None and found.body == home("one").body


def test_a_reader_of_responses_meets_no_damage_in_a_continuous_crawl(crawled):
    folder = crawled(home("one", etag='"1"'))
    found = list(read_responses(folder / WARC_FILE))
    assert found and all(isinstance(each, WarcResponse) for each in found)
