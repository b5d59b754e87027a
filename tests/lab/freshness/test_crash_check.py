"""Specification of the check of a crawl that was killed."""

import json
from urllib.parse import urlsplit

import pytest

from focused.archive.archive import PageRow
from focused.archive.page_history import HistoryWriter, PageHistory, VisitResult, VisitRow
from focused.crawl.revisits.page_fate import missing_page_url
from focused.revisit.disk_schedule import TableRecords
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused_lab.freshness.crash_check import check_collection, check_requests, read_requests

A, B = "https://a.example/", "https://a.example/b"
HOUR_S = 3_600.0


def schedule_page(tables: Tables, page: int, due_at: float) -> None:
    records = TableRecords(tables)
    records.register(page, 0)
    records.add(page, due_at)
    records.save()


def store_page(tables: Tables, page: int, *, visits: int = 0, due_at: float | None = 100.0) -> None:
    HistoryWriter(tables).put(page, PageHistory(seen_at=0.0, visits=visits))
    if due_at is not None:
        schedule_page(tables, page, due_at)


def store_visit(
    tables: Tables,
    at: float,
    previous_at: float,
    result: VisitResult = VisitResult.IDENTICAL,
    url: str = A,
) -> None:
    HistoryWriter(tables).append_visit(VisitRow(0, url, at, previous_at, result, status=200))


def test_a_crawl_that_lost_nothing_has_no_problems(tables):
    store_page(tables, 0, visits=2)
    store_page(tables, 1)
    store_visit(tables, 10.0, 5.0)
    store_visit(tables, 12.0, 10.0, VisitResult.FAILED)
    store_visit(tables, 20.0, 10.0)
    assert check_collection(tables) == []


def test_a_page_that_is_not_visited_again_is_a_problem(tables):
    store_page(tables, 0, due_at=None)
    assert check_collection(tables) == ["page 0 is scheduled or queued 0 times"]


def test_a_page_that_is_scheduled_twice_is_a_problem(tables):
    store_page(tables, 0)
    schedule_page(tables, 0, 200.0)
    assert check_collection(tables) == ["page 0 is scheduled or queued 2 times"]


def test_a_page_that_is_queued_without_a_link_is_a_problem(tables):
    store_page(tables, 0, due_at=None)
    tables.put("released_pages", (0).to_bytes(8, "big"), bytes(8))
    assert check_collection(tables) == ["1 pages are queued, but fewer links wait in the frontier"]


def test_a_scheduled_page_without_a_history_is_a_problem(tables):
    schedule_page(tables, 7, 100.0)
    assert check_collection(tables) == ["page 7 is scheduled or queued without a history"]


def test_a_lost_visit_is_a_problem(tables):
    """The history counts three visits; of two stored ones the second does not follow the first."""
    store_page(tables, 0, visits=3)
    store_visit(tables, 10.0, 5.0)
    store_visit(tables, 30.0, 20.0)
    assert check_collection(tables) == [
        f"{A}: the visit at 30.0 follows one at 20.0, but the page was seen at 10.0",
        "page 0 has 2 stored visits, but its history counts 3",
    ]


def test_visits_out_of_order_are_a_problem(tables):
    store_page(tables, 0, visits=2)
    store_visit(tables, 10.0, 5.0)
    store_visit(tables, 9.0, 10.0)
    assert check_collection(tables)[0] == f"{A}: its visit at 9.0 is stored after one at 10.0"


def store_row(tables: Tables, url: str = A, status: int = 200) -> None:
    row = PageRow(
        0, url, "a.example", "fetched", 1.0, {}, 0, None, "", 0.0, 0.0, "bfs", status=status
    )
    tables.put("pages", row.seq.to_bytes(8, "big"), pack(row))


def test_each_request_has_an_outcome_except_those_in_flight_at_a_kill(tables):
    store_row(tables)
    store_visit(tables, 20_000.0, 0.0)
    requests = [(A, 0.0), (A, 10_000.0), (A, 20_000.0), (B, 10_000.0)]
    check = check_requests(
        requests, tables, kills=[10_001.0], min_interval_s=HOUR_S, in_flight_s=10.0
    )
    assert (check.requests, check.unsettled) == (4, 2)
    assert (check.repeated, check.unanswered) == ((), ())


@pytest.mark.parametrize(
    ("kill", "repeated"), [(90.0, ()), (150.0, ()), (250.0, (A,)), (10.0, (A,))]
)
def test_a_page_is_requested_twice_only_around_a_kill(tables, kill, repeated):
    requests = [(A, 100.0), (A, 200.0)]
    check = check_requests(requests, tables, kills=[kill], min_interval_s=HOUR_S, in_flight_s=20.0)
    assert check.repeated == repeated


def test_a_stored_response_that_no_server_gave_is_found(tables):
    store_row(tables)
    store_visit(tables, 20_000.0, 0.0)
    check = check_requests([(A, 0.0)], tables, kills=[], min_interval_s=HOUR_S, in_flight_s=0.0)
    assert check.unanswered == (A,)


def test_requests_are_read_from_an_access_log(tmp_path):
    entry = {"scheme": "https", "host": "a.example", "status": 200}
    entries = [
        {**entry, "path": "/robots.txt", "time": 1.0},
        {**entry, "path": urlsplit(missing_page_url(B, 0.3)).path, "time": 1.5},
        {**entry, "path": "/b", "time": 2.0},
    ]
    log = tmp_path / "access.log"
    log.write_text("".join(json.dumps(each) + "\n" for each in entries))
    assert list(read_requests(log)) == [(B, 2.0)]
