"""The table of failure kinds is complete, and a crawl follows it."""

import asyncio
import ssl
from itertools import pairwise
from pathlib import Path

import pytest
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Request

from focused.crawl.hosts.failures import FAILURE_RULES, HostEffect
from focused.scrapy_addon.name_resolver import NameServerError, NoSuchHostError, PrivateAddressError
from focused.scrapy_addon.outcomes import (
    ContentDecodingError,
    LoginFailedError,
    ResponseTooLargeError,
    RobotsDeniedError,
    outcome_from_exception,
)
from focused.scrapy_addon.request_state import META_KEY, RequestState
from focused.web.http_response import outcome_from_response
from focused.web.page import Failed, FailureKind
from tests.support.simulated import Simulation, failed, page, site, topic, with_politeness

A = "http://a.test/"
EXCEPTIONS = {
    CannotResolveHostError("no answer"): FailureKind.DNS,
    NameServerError("a.test"): FailureKind.DNS,
    NoSuchHostError("a.test"): FailureKind.NO_HOST,
    PrivateAddressError("a.test"): FailureKind.PRIVATE_ADDRESS,
    DownloadConnectionRefusedError("refused"): FailureKind.CONNECT,
    DownloadTimeoutError("late"): FailureKind.TIMEOUT,
    ResponseDataLossError("cut off"): FailureKind.RESET,
    DownloadFailedError("broken"): FailureKind.RESET,
    ssl.SSLError("handshake"): FailureKind.TLS,
    DownloadCancelledError("large"): FailureKind.TOO_LARGE,
    ResponseTooLargeError("headers"): FailureKind.TOO_LARGE,
    ContentDecodingError("gzip"): FailureKind.BAD_ENCODING,
    UnsupportedURLSchemeError("gopher"): FailureKind.BAD_REDIRECT,
    RobotsDeniedError("robots.txt"): FailureKind.ROBOTS,
    LoginFailedError("a session"): FailureKind.LOGIN,
    IgnoreRequest("a middleware"): FailureKind.DROPPED,
    ValueError("who knows"): FailureKind.OTHER,
}
STATUSES = {
    301: FailureKind.BAD_REDIRECT,  # without a Location
    304: FailureKind.BAD_REDIRECT,
    403: FailureKind.CLIENT_ERROR,
    404: FailureKind.GONE,
    410: FailureKind.GONE,
    429: FailureKind.THROTTLED,
    500: FailureKind.SERVER_ERROR,
    503: FailureKind.SERVER_ERROR,
    999: FailureKind.OTHER,
}
OF_PAGES = {"empty", "wrong-type", "too-large", "wrong-language", "internal-error"}
OF_PARSING = {FailureKind.PARSE_TIMEOUT, FailureKind.PARSE_MEMORY, FailureKind.PARSE_CRASH}
OF_DOCUMENTS = {
    FailureKind.ENCRYPTED,
    FailureKind.DAMAGED,
    FailureKind.SCANNED,
    FailureKind.MISSING_LIBRARY,
}
UNASKED = {FailureKind.ALIAS, FailureKind.ROBOTS, FailureKind.MIRROR, FailureKind.TRAP}


def test_every_kind_has_its_row_and_no_row_is_of_another():
    assert set(FAILURE_RULES) == set(FailureKind)


@pytest.mark.parametrize(("error", "kind"), EXCEPTIONS.items(), ids=repr)
def test_each_exception_represents_a_kind(error, kind):
    request = Request(A, meta={META_KEY: RequestState(was_looked_up=True)})
    assert asyncio.run(outcome_from_exception(request, error)).kind is kind


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_each_status_that_gives_no_page_represents_a_kind(status, kind):
    outcome = outcome_from_response(status, {}, A, b"", 0.0, 0.0)
    assert isinstance(outcome, Failed)
    assert outcome.kind is kind


def test_every_kind_comes_from_somewhere():
    """What is not asked for has its own tests: of robots, of budgets, of mirrors, of traps.

    So have pages that are none (tests/crawl/test_retries), the limits of parsing
    (test_parser_pool) and documents (tests/documents).
    """
    met = {*EXCEPTIONS.values(), *STATUSES.values(), *map(FailureKind, OF_PAGES), *UNASKED}
    assert met | OF_PARSING | OF_DOCUMENTS == set(FailureKind)
    unasked = {kind for kind, rule in FAILURE_RULES.items() if rule.host is HostEffect.NOT_ASKED}
    assert unasked == UNASKED


ASKED = [kind for kind in FailureKind if kind not in UNASKED]


def crawl_with(kind: FailureKind, folder: Path) -> Simulation:
    """One link of a host always fails so; another is a page."""
    bad, good = "http://b.test/bad", "http://b.test/good"
    web = site(page(A, bad), failed(bad, kind), page(good, text="whale"))
    # A host whose robots.txt came exists, whatever is said of its name later.
    mine = with_politeness(topic(folder, A), max_tries=3, robots=False)
    done = Simulation(mine, web).run()
    done.crawl.enqueue_url(good, 0.1, done.now)
    done.run()
    done.close()
    return done


@pytest.mark.parametrize("kind", ASKED)
def test_a_failed_link_has_the_tries_and_its_host_the_end_that_the_table_tells(tmp_path, kind):
    done, rule = crawl_with(kind, tmp_path), FAILURE_RULES[kind]
    times = [at for at, url in done.asked if url == "http://b.test/bad"]
    tries = {HostEffect.ONE_MORE_CHANCE: 2, HostEffect.DEAD: 1}
    assert len(times) == tries.get(rule.host, 3 if rule.again else 1)
    assert done.crawl.counters.failures[kind] >= 1
    reached = any(url == "http://b.test/good" for _, url in done.asked)
    assert reached == (rule.host in (HostEffect.GOES_ON, HostEffect.BACKS_OFF))


@pytest.mark.parametrize("kind", [kind for kind in ASKED if FAILURE_RULES[kind].again])
def test_waits_double_between_the_tries_when_the_host_backs_off(tmp_path, kind):
    done = crawl_with(kind, tmp_path)
    times = [at for at, url in done.asked if url == "http://b.test/bad"]
    waits = [after - before for before, after in pairwise(times)]
    if FAILURE_RULES[kind].host is HostEffect.BACKS_OFF:
        assert waits[1] > 1.5 * waits[0]
    elif FAILURE_RULES[kind].host is HostEffect.GOES_ON:
        assert waits[1] == pytest.approx(waits[0])
    else:
        assert waits[0] >= 60
