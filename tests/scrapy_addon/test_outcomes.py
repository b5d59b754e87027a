"""Outcomes of Scrapy's responses and exceptions."""

import asyncio
import socket
from ipaddress import ip_address

import pytest
from scrapy.exceptions import CannotResolveHostError
from scrapy.http import Request, Response
from twisted.internet.error import DNSLookupError

from focused.scrapy_addon.name_resolver import NoSuchHostError
from focused.scrapy_addon.outcomes import outcome_from_exception, outcome_from_scrapy_response
from focused.scrapy_addon.request_state import META_KEY, RequestState
from focused.web.page import Failed, FailureKind, Fetched, HttpExchange, NotModified, Outcome

URL = "http://a.test/x"


def answered(status: int = 200, address: str | None = "192.0.2.1", **meta: object) -> Outcome:
    request = Request(URL, meta=meta)
    found = None if address is None else ip_address(address)
    return outcome_from_scrapy_response(request, Response(URL, status, ip_address=found), now=100.0)


@pytest.mark.parametrize("status", [200, 404, 503])
def test_each_answer_tells_the_address_it_came_from(status):
    assert answered(status).address == "192.0.2.1"


def test_addresses_of_both_kinds_are_reported():
    assert answered(address="2001:db8::1").address == "2001:db8::1"


def test_an_answer_from_a_cache_has_no_address():
    assert answered(address=None).address == ""


def test_a_page_of_a_cache_is_not_archived_as_the_304_that_confirmed_it():
    confirmed = RequestState(exchange=HttpExchange(b"", b"HTTP/1.1 304 Not Modified\r\n\r\n", b""))
    request = Request(URL, meta={META_KEY: confirmed})
    page = Response(URL, 200, body=b"page", flags=["cached"])
    assert outcome_from_scrapy_response(request, page, now=100.0).exchange is None


def test_a_proxys_address_is_not_the_hosts():
    assert answered(proxy="http://proxy.test:3128").address == ""


def test_an_answer_took_until_its_last_byte_not_its_first():
    assert (
        answered(**{META_KEY: RequestState(sent_at=97.5), "download_latency": 0.1}).elapsed_s == 2.5
    )


def test_a_clock_that_was_set_back_makes_no_negative_time():
    assert answered(**{META_KEY: RequestState(sent_at=500.0)}).elapsed_s == 0.0


def test_the_last_of_several_values_counts_where_a_header_has_one():
    headers = {"Content-Type": ["text/plain", "text/html; charset=utf-8"], "Link": ["<a>", "<b>"]}
    found = outcome_from_scrapy_response(
        Request(URL), Response(URL, 200, headers=headers), now=100.0
    )
    assert isinstance(found, Fetched)
    assert found.headers == {"content-type": "text/html; charset=utf-8", "link": "<a>, <b>"}


@pytest.mark.parametrize("header", ["If-None-Match", "If-Modified-Since"])
def test_304_to_a_conditional_request_is_not_modified(header):
    request = Request(URL, headers={header: "x"})
    outcome = outcome_from_scrapy_response(request, Response(URL, 304), now=100.0)
    assert isinstance(outcome, NotModified)


def test_304_to_an_unconditional_request_is_a_failure():
    assert isinstance(answered(304), Failed)


def failure(error: BaseException, **meta: object) -> FailureKind:
    return asyncio.run(outcome_from_exception(Request(URL, meta=meta), error)).kind


@pytest.fixture
def unresolved() -> CannotResolveHostError:
    """As Scrapy raises it: what the system's resolver said is lost."""
    return CannotResolveHostError("DNS lookup failed: no results for hostname lookup: a.test")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), FailureKind.NO_HOST),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), FailureKind.DNS),
        (["192.0.2.1"], FailureKind.DNS),
    ],
)
def test_a_failed_look_up_is_distinguished_by_what_the_system_says(
    system, unresolved, answer, kind
):
    system.answer = answer
    assert failure(unresolved) is kind
    assert system.asked == ["a.test"]


def test_behind_a_proxy_nothing_is_looked_up(system, unresolved):
    assert failure(unresolved, proxy="http://proxy.test:3128") is FailureKind.DNS
    assert system.asked == []


def test_a_replayed_web_knows_which_hosts_there_are(system):
    error = CannotResolveHostError("no such host")
    error.__cause__ = NoSuchHostError("no such host")
    assert isinstance(error.__cause__, DNSLookupError)
    assert failure(error) is FailureKind.NO_HOST
    assert system.asked == []
