"""The outcome of an HTTP response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.http_response import outcome_from_response, retry_after_s
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected

URL = "https://example.org/a/page"
NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def outcome(status: int, **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return outcome_from_response(status, named, URL, b"body", 0.25, NOW)


def test_success_is_fetched_with_all_that_came():
    expected = Fetched(URL, 200, {"content-type": "text/html"}, b"body", 0.25, received_at=NOW)
    assert outcome(200, content_type="text/html") == expected


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_has_a_resolved_and_normalised_target(status):
    expected = Redirected(URL, status, "https://example.org/b", 0.25)
    assert outcome(status, location="../b#top") == expected


@pytest.mark.parametrize("location", ["/b", ""])
def test_any_redirect_may_ask_for_a_pause(location):
    """RFC 9110 section 10.2.3: Retry-After with any 3xx."""
    assert outcome(302, location=location, retry_after="30").retry_after_s == 30.0


@pytest.mark.parametrize("location", ["", "mailto:a@b.c", "http://", URL, "page#x"])
def test_a_redirect_that_leads_nowhere_is_bad(location):
    failure = outcome(302, location=location)
    assert isinstance(failure, Failed)
    assert failure.kind is FailureKind.BAD_REDIRECT
    assert failure.detail


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, FailureKind.GONE),
        (410, FailureKind.GONE),
        (403, FailureKind.CLIENT_ERROR),
        (429, FailureKind.THROTTLED),
        (500, FailureKind.SERVER_ERROR),
        (503, FailureKind.SERVER_ERROR),
        (304, FailureKind.BAD_REDIRECT),
        (101, FailureKind.OTHER),
        (999, FailureKind.OTHER),
        (0, FailureKind.OTHER),
    ],
)
def test_a_failure_is_named_by_its_status(status, kind):
    failure = outcome(status)
    assert isinstance(failure, Failed)
    assert (failure.kind, failure.status) == (kind, status)


def test_304_to_a_conditional_request_is_not_modified_with_its_headers():
    headers = {"etag": '"a"', "retry-after": "30"}
    found = outcome_from_response(304, headers, URL, b"", 0.25, NOW, conditional=True)
    expected = NotModified(URL, 304, headers, 0.25, received_at=NOW, retry_after_s=30.0)
    assert found == expected


def test_a_not_modified_response_is_a_failure_where_no_version_is_stored():
    failed = NotModified(URL, address="192.0.2.1").as_failure("no version is stored")
    assert (failed.kind, failed.status) == (FailureKind.BAD_REDIRECT, 304)
    assert (failed.address, failed.detail) == ("192.0.2.1", "no version is stored")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("-5", 0.0),
        ("soon", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after_s({"retry-after": value}, NOW) == seconds


def test_a_throttled_request_says_when_to_come_back():
    failure = outcome(503, retry_after="30")
    assert isinstance(failure, Failed)
    assert failure.retry_after_s == 30.0


@given(st.integers(-1, 1000), st.text(), st.text())
def test_no_response_raises(status, location, retry_after):
    outcome(status, location=location, retry_after=retry_after)


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("/é".encode(), "http://a.com/%C3%A9"),  # UTF-8, as browsers take it
        (b"/\xe9", "http://a.com/%E9"),  # no UTF-8: the bytes themselves
        (b"/%E9?\xe9", "http://a.com/%E9?%E9"),
    ],
)
def test_a_location_is_bytes(raw, target):
    headers = {"location": raw.decode("latin-1")}
    outcome = outcome_from_response(301, headers, "http://a.com/", b"", 0.0, 0.0)
    assert isinstance(outcome, Redirected)
    assert outcome.target == target
