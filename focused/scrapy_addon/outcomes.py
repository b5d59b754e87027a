"""Convert Scrapy's responses and exceptions to outcomes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import OpenSSL.SSL
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
from scrapy.http import Headers, HtmlResponse, Request, Response
from service_identity import VerificationError
from twisted.internet import error as net
from twisted.web.client import ResponseFailed

from focused.crawl import SettledFetch
from focused.crawl.hosts.failures import FAILURE_RULES
from focused.scrapy_addon.name_resolver import (
    MISSING,
    NameServerError,
    NoSuchHostError,
    PrivateAddressError,
    system_lookup,
)
from focused.scrapy_addon.request_state import state_of, update_state
from focused.web.http_response import CONDITIONAL_HEADERS, SINGLE_HEADERS, outcome_from_response
from focused.web.page import (
    RENDERED_TYPE,
    Failed,
    FailureKind,
    Fetched,
    HttpExchange,
    Outcome,
)
from focused.web.robots.robots_tags import X_ROBOTS_SEPARATOR
from focused.web.warc_records import format_http_head, status_line

RealSeconds = Callable[[float], float]
"""From seconds of the crawl's clock to real seconds."""


class RobotsDeniedError(IgnoreRequest):
    """robots.txt disallows the URL."""


class LoginFailedError(IgnoreRequest):
    """The request was not sent, or its response is refused: the login to its host failed."""


class ResponseTooLargeError(Exception):
    """The response's headers or decoded body are too large."""


class ContentDecodingError(Exception):
    """The body does not match its Content-Encoding."""


class UnstorableValueError(ValueError):
    """A value cannot be stored; the message names its path and type."""


class FetchPostponed(IgnoreRequest):
    """A request of the frontier that must not be sent now; its link is queued again."""


_ERRORS: dict[FailureKind, type[Exception]] = {
    FailureKind.DNS: CannotResolveHostError,
    FailureKind.NO_HOST: CannotResolveHostError,
    FailureKind.PRIVATE_ADDRESS: PrivateAddressError,
    FailureKind.CONNECT: DownloadConnectionRefusedError,
    FailureKind.TIMEOUT: DownloadTimeoutError,
    FailureKind.RESET: DownloadFailedError,
    FailureKind.TLS: DownloadFailedError,
}


def exception_for_failure(url: str, kind: FailureKind) -> Exception:
    """Return the exception for the errback of a request that was not sent."""
    return _ERRORS.get(kind, IgnoreRequest)(
        f"{url} was not requested: {FAILURE_RULES[kind].meaning}"
    )


_MAX_DETAIL_CHARS = 200
_TLS = (ssl.SSLError, OpenSSL.SSL.Error, VerificationError)
_KINDS: tuple[tuple[tuple[type[BaseException], ...], FailureKind], ...] = (
    ((PrivateAddressError,), FailureKind.PRIVATE_ADDRESS),
    ((ContentDecodingError,), FailureKind.BAD_ENCODING),
    ((CannotResolveHostError, net.DNSLookupError, socket.gaierror), FailureKind.DNS),
    ((DownloadTimeoutError, net.TimeoutError, net.TCPTimedOutError), FailureKind.TIMEOUT),
    ((DownloadConnectionRefusedError, net.ConnectError), FailureKind.CONNECT),
    ((DownloadCancelledError,), FailureKind.TOO_LARGE),
    ((ResponseDataLossError, net.ConnectionLost, net.ConnectionDone), FailureKind.RESET),
    ((UnsupportedURLSchemeError,), FailureKind.BAD_REDIRECT),
    ((RobotsDeniedError,), FailureKind.ROBOTS),
    ((LoginFailedError,), FailureKind.LOGIN),
    ((IgnoreRequest,), FailureKind.DROPPED),
    ((DownloadFailedError, ResponseFailed), FailureKind.RESET),
)


def keep_exchange(request: Request, response: Response, head: bytes | None) -> None:
    """Store the exchange for the archive before a middleware changes the response.

    ``head`` holds the response's status line and headers as they came; None for one from which
    headers were removed.
    """
    is_cut = "download_stopped" in response.flags
    is_robots = state_of(request).robots_bytes is not None
    truncated = ("length" if is_robots else "unspecified") if is_cut else ""
    if head is None:
        head = format_http_head(status_line(response.status), _header_pairs(response.headers))
    exchange = HttpExchange(_request_head(request), head, response.body, truncated)
    update_state(request, exchange=exchange)


def _request_head(request: Request) -> bytes:
    _, _, netloc, path = [*request.url.partition("#")[0].split("/", 3), ""][:4]
    host = netloc.rpartition("@")[2]
    headers = [("Host", host)] if "Host" not in request.headers else []
    return format_http_head(
        f"{request.method} /{path} HTTP/1.1", [*headers, *_header_pairs(request.headers)]
    )


def _header_pairs(headers: Headers) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in dict.items(headers)
        for value in values
    ]


def _take_exchange(request: Request, body: bytes | None = None) -> HttpExchange | None:
    """Remove the stored exchange, if there is one, and return it for an outcome with ``body``."""
    exchange = state_of(request).exchange
    if exchange is None:
        return None
    update_state(request, exchange=None)
    return exchange if exchange.body != body else replace(exchange, body=None)


_CONDITIONAL_KEYS = frozenset(name.encode() for name in CONDITIONAL_HEADERS)
"""As Scrapy's headers spell them."""


def outcome_from_scrapy_response(
    request: Request, response: Response, now: float, real_s: RealSeconds = float
) -> Outcome:
    """Return the outcome of a response; ``now`` is needed for dates in Retry-After.

    ``real_s`` returns the real seconds that pass during seconds of the crawl's clock.
    """
    # The dictionary's own items: those of Headers normalise each name again.
    headers = join_headers({name.lower(): each for name, each in dict.items(response.headers)})
    outcome = outcome_from_response(
        response.status,
        headers,
        request.url,
        response.body,
        _elapsed_s(request, now, real_s),
        now,
        conditional=not _CONDITIONAL_KEYS.isdisjoint(request.headers),
    )
    if "cached" in response.flags:  # the exchange is the 304 that confirmed it
        update_state(request, exchange=None)
    body = outcome.body if isinstance(outcome, Fetched) else None
    exchange, address = _take_exchange(request, body), ""
    # The address would be the proxy's.
    if response.ip_address is not None and not request.meta.get("proxy"):
        address = str(getattr(response.ip_address, "ipv4_mapped", None) or response.ip_address)
    return replace(outcome, exchange=exchange, address=address)


def shown_response(response: Response, settled: SettledFetch) -> Response:
    """Return the response with the HTML of a page that a browser rendered; others as they are."""
    if settled.rendered is None:
        return response
    headers = response.headers.copy()
    headers["Content-Type"] = RENDERED_TYPE
    return response.replace(cls=HtmlResponse, body=settled.rendered, headers=headers)


def join_headers(headers: Mapping[bytes, Sequence[bytes]]) -> dict[str, str]:
    """Return one value for each lower-case header name."""
    joined = {}
    for name, values in headers.items():
        between = X_ROBOTS_SEPARATOR if name == b"x-robots-tag" else ", "
        counted = values[-1:] if (key := name.decode("latin-1")) in SINGLE_HEADERS else values
        joined[key] = between.encode().join(counted).decode("latin-1")
    return joined


def _elapsed_s(request: Request, now: float, real_s: RealSeconds) -> float:
    """Return real seconds since the request was sent, else Scrapy's download latency."""
    sent_at = state_of(request).sent_at
    if sent_at is None:
        return float(request.meta.get("download_latency", 0.0))
    return max(0.0, real_s(now - sent_at))


async def outcome_from_exception(request: Request, exception: BaseException) -> Outcome:
    """Return the failure for an exception of a download handler or middleware.

    If another resolver than the add-on's failed, the operating system is asked whether the name
    exists.
    """
    kind = failure_kind_of(exception)
    if kind is FailureKind.DNS and await _no_such_host(request, exception):
        kind = FailureKind.NO_HOST
    detail = f"{type(exception).__name__}: {exception}"[:_MAX_DETAIL_CHARS]
    # The response came, but could not be decoded or was refused by a middleware.
    return Failed(request.url, kind, detail=detail, exchange=_take_exchange(request))


async def _no_such_host(request: Request, exception: BaseException) -> bool:
    for error in _exception_chain(exception):
        if isinstance(error, NoSuchHostError):
            return True
        if isinstance(error, NameServerError | PrivateAddressError):
            return False
    if state_of(request).was_looked_up:
        return False
    # The proxy resolves names; the failed name may be the proxy's own.
    name = urlsplit(request.url).hostname
    if not name or request.meta.get("proxy"):
        return False
    return await system_lookup(name) == MISSING


def failure_kind_of(exception: BaseException) -> FailureKind:
    """Return the failure kind of an exception."""
    behind = tuple(_exception_chain(exception))
    if any(isinstance(each, _TLS) for each in behind):
        return FailureKind.TLS
    if any(isinstance(each, ResponseTooLargeError) for each in behind):  # also if wrapped
        return FailureKind.TOO_LARGE
    for types, kind in _KINDS:
        if isinstance(exception, types):
            return kind
    return FailureKind.OTHER


def _exception_chain(exception: BaseException) -> Iterator[BaseException]:
    """Yield the exception, its causes, and Twisted's ``reasons``."""
    seen: BaseException | None = exception
    while seen is not None:
        yield seen
        for reason in getattr(seen, "reasons", ()):
            yield reason.value
        seen = seen.__cause__
