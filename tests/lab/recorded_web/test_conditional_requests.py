"""Specification of conditional requests, honest and lying, over real HTTP on loopback."""

import asyncio
from dataclasses import replace

import pytest

from focused.web.http_response import parse_http_date
from focused_lab.recorded_web.conditional_requests import http_date, is_not_modified
from focused_lab.recorded_web.replay_faults import FUTURE_S, FaultPlan, parse_fault
from tests.lab.recorded_web.test_replay_server import Got, ask
from tests.support.recorded_web import MemoryWeb, answer, html, page, served

A = "http://a.example/"
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Mon, 07 Nov 1994 08:49:37 GMT"
WEB = MemoryWeb(
    page(A, html("a"), etag='"v1"', last_modified=DATE),
    page(f"{A}dated", html("dated"), last_modified=DATE),
    page(f"{A}plain", html("plain")),
    answer(f"{A}gone", 410, "gone"),
)


@pytest.mark.parametrize(
    ("request_headers", "expected"),
    [
        ({"if-none-match": '"v1"'}, True),
        ({"if-none-match": 'W/"v1"'}, True),
        ({"if-none-match": '"v0", W/"v1"'}, True),
        ({"if-none-match": "*"}, True),
        ({"if-none-match": '"v2"'}, False),
        ({"if-none-match": "v1"}, False),
        ({"if-none-match": '"v2"', "if-modified-since": LATER}, False),
        ({"if-modified-since": DATE}, True),
        ({"if-modified-since": LATER}, True),
        ({"if-modified-since": "Sat, 05 Nov 1994 08:49:37 GMT"}, False),
        ({"if-modified-since": "yesterday"}, False),
        ({}, False),
    ],
)
def test_entity_tags_are_compared_weakly_and_come_before_dates(request_headers, expected):
    headers = {"etag": '"v1"', "last-modified": DATE}
    assert is_not_modified(request_headers, headers) is expected


def test_a_date_survives_http():
    assert http_date(784111777.9) == DATE
    assert parse_http_date(DATE) == 784111777.0
    assert parse_http_date("soon") is None


def got(url: str, fault: str = "", **headers: str) -> Got:
    plan = FaultPlan((parse_fault(f"a.example:kind={fault}"),)) if fault else None
    with served(WEB, plan) as site:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = asyncio.run(ask(site, url, headers=named))
    lower = {name.lower(): value for name, value in response.headers.items()}
    return replace(response, headers=lower)


def test_an_unchanged_page_is_304_without_a_body_and_with_its_validators():
    response = got(A, if_none_match='"v1"')
    assert (response.status, response.body) == (304, b"")
    assert response.headers["etag"] == '"v1"'
    assert "date" in response.headers


@pytest.mark.parametrize(
    ("url", "headers", "status"),
    [
        (A, {"if_none_match": '"v0"'}, 200),
        (f"{A}dated", {"if_modified_since": DATE}, 304),
        (f"{A}plain", {"if_modified_since": DATE}, 200),
        (f"{A}plain", {"if_none_match": '"v1"'}, 200),
        (f"{A}gone", {"if_none_match": "*"}, 410),
        (f"{A}missing", {"if_none_match": "*"}, 404),
    ],
)
def test_the_server_answers_conditional_requests(url, headers, status):
    assert got(url, **headers).status == status


def test_a_constant_etag_never_changes():
    tags = {got(url, "constant-etag").headers["etag"] for url in (A, f"{A}dated", f"{A}plain")}
    assert tags == {'"1"'}
    assert got(A, "constant-etag", if_none_match='"1"').status == 304


def test_a_changing_etag_never_matches():
    first = got(A, "changing-etag").headers["etag"]
    second = got(A, "changing-etag", if_none_match=first)
    assert second.status == 200
    assert second.headers["etag"] != first


def test_a_page_that_is_always_modified_now_has_no_other_validator():
    response = got(A, "modified-now", if_none_match='"v1"')
    assert response.status == 200
    assert response.headers["last-modified"] == response.headers["date"]
    assert "etag" not in response.headers


def test_a_clock_in_the_future_moves_date_and_last_modified():
    response = got(A, "future-clock")
    modified = parse_http_date(response.headers["last-modified"])
    assert modified == 784111777.0 + FUTURE_S
    honest = parse_http_date(got(A).headers["date"])
    moved = parse_http_date(response.headers["date"])
    assert honest is not None
    assert moved is not None
    assert abs(moved - honest - FUTURE_S) < 60


def test_a_server_may_answer_304_to_every_condition():
    assert got(f"{A}plain", "always-304", if_none_match='"old"').status == 304
    assert got(f"{A}plain", "always-304").status == 200
    assert got(f"{A}gone", "always-304", if_none_match='"old"').status == 410


def test_missing_pages_may_be_soft_404s():
    for url in (f"{A}gone", f"{A}missing"):
        response = got(url, "soft-404")
        assert response.status == 200
        assert b"not found" in response.body
    assert got(A, "soft-404").body == html("a")
