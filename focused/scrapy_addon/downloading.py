"""Answers that break on their way in: bounded, named, and settled.

A server may send headers without end, bodies that cannot be unpacked, and
bombs. Scrapy bounds a body, packed and unpacked, and the time it may take;
the rest is bounded here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.web.client import HTTPConnectionPool

from focused.scrapy_addon.idle_connections import IdleConnections, Line, most_idle
from focused.scrapy_addon.outcomes import (
    CHECKED_ADDRESS,
    EXCHANGE,
    TooLargeError,
    UndecodableError,
    keep_exchange,
)
from focused.scrapy_addon.plain_answers import OddAnswer, PlainLine
from focused.scrapy_addon.robots_request import (
    ACCEPTED_CODINGS,
    is_robots_request,
    unpack_start,
)
from focused.scrapy_addon.session import session_if_any

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from twisted.internet.defer import Deferred

MAX_HEAD_BYTES = 262_144
"""Status lines and headers of one answer, interim answers included; as much as Chrome takes."""

MAX_CODINGS = 3
"""How often a body may be packed; each time costs ``scope.max_page_bytes`` of unpacking."""

_PORTS = {"http": 80, "https": 443}


class DecodingMiddleware(HttpCompressionMiddleware):
    """Scrapy's, which says what is wrong with a body that it cannot unpack."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Ask for what can be unpacked."""
        if is_robots_request(request):
            request.headers.setdefault("Accept-Encoding", ACCEPTED_CODINGS)
        super().process_request(request)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Unpack; raises TooLargeError, or UndecodableError for anything else."""
        return self.unpacked(request, response)

    def unpacked(self, request: Request, response: Response) -> Response:
        """The same."""
        codings = b",".join(response.headers.getlist("Content-Encoding")).count(b",") + 1
        if codings > MAX_CODINGS:
            raise UndecodableError(f"packed {codings} times")
        if is_robots_request(request):
            return unpack_start(response)
        try:
            return cast("Response", super().process_response(request, response))
        except IgnoreRequest as error:  # Scrapy's word for a body that unpacks to too much
            raise TooLargeError(str(error)) from error
        except Exception as error:
            raise UndecodableError(f"{type(error).__name__}: {error}") from error


class BoundedDownloadHandler(HTTP11DownloadHandler):
    """The stock handler, which asks once, and takes at most :data:`MAX_HEAD_BYTES` of headers.

    Twisted's pool repeats a GET at once, and tells nobody, when a connection that
    was used before breaks: a host in trouble would be asked again without any delay.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        from twisted.internet import reactor  # installs one when imported too early

        self._reactor = reactor
        session = session_if_any(crawler)
        self._keeps_exchanges = session is not None and session.topic.output.warc != "off"
        # A replayed web has one address for all hosts; so may a project without the add-on.
        shared = session and session.topic.politeness.per_address and not session.replayed
        self._idle = IdleConnections(
            reactor,
            self._pool._factory,
            bound_head,
            most=most_idle(crawler.settings.getint("CONCURRENT_REQUESTS")),
            most_alike=self._pool.maxPersistentPerHost,
            one_to_an_address=bool(shared),
        )
        self._pool = cast(HTTPConnectionPool, self._idle)

    async def download_request(self, request: Request) -> Response:
        """Download, from the address that was checked."""
        address, host = request.meta.get(CHECKED_ADDRESS), urlsplit(request.url).hostname
        if address and host:
            self._idle.leaves_for(host, address)
        return await self._downloaded(request)

    async def _downloaded(self, request: Request) -> Response:
        request.meta.pop(EXCHANGE, None)
        response = await super().download_request(request)
        if self._keeps_exchanges:
            keep_exchange(request, response)
        return response

    def idle_line(self, scheme: str, netloc: str, address: str) -> PlainLine | None:
        """One to the host of a URL, where one idles, for one request."""
        host, port = _place(scheme, netloc)
        self._idle.leaves_for(host, address)
        line = self._idle.take((scheme.encode(), host.encode(), port, None))
        return None if line is None else self._plain(line)

    async def new_line(self, scheme: str, netloc: str, address: str, timeout_s: float) -> PlainLine:
        """A new one, to that address and no other; raises what Twisted raises."""
        host, port = _place(scheme, netloc)
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint: Any = kind(self._reactor, address, port, timeout_s)
        if scheme == "https":
            secure: Any = self._contextFactory  # its interface, as typed, has no self
            creator = secure.creatorForNetloc(host.encode(), port)
            endpoint = wrapClientTLS(creator, endpoint)
        key = (scheme.encode(), host.encode(), port, None)
        line = await maybe_deferred_to_future(self._idle.connect(key, endpoint))
        await asyncio.sleep(0)  # what idled at the address is closed by then
        return self._plain(line)

    async def read_on(self, odd: OddAnswer, request: Request) -> Response:
        """The response to a request that was sent, and is answered otherwise than plainly."""
        self._idle.next_is(odd)
        try:
            return await self._downloaded(request)
        finally:  # where it failed before it asked, nobody else may get the answer
            self._idle.next_is(None)

    def _plain(self, line: Line) -> PlainLine:
        if line.plain is None:
            line.plain = PlainLine(line.connection, partial(self._idle.rest, line))
        return line.plain


def _place(scheme: str, netloc: str) -> tuple[str, int]:
    """Host and port of a normalised URL without user and brackets."""
    host, _, port = netloc.partition(":")
    return host, int(port) if port else _PORTS[scheme]


@dataclass(slots=True)
class _Head:
    """The head of an answer, which is waited for until Twisted has read it."""

    bytes: int = 0
    waits: bool = True

    def ended(self, answer: Any) -> Any:
        self.waits = False
        if self.bytes > MAX_HEAD_BYTES:
            raise TooLargeError(f"more than {MAX_HEAD_BYTES} bytes of headers")
        return answer


def bound_head(connection: Any) -> None:
    """Break off a connection whose answer's head is too long: by a packet at most, not to the byte.

    Interim answers belong to it. What is replaced are public methods.
    """
    send, receive = connection.request, connection.dataReceived
    head = _Head(waits=False)

    def request(asked: Any) -> Deferred[Any]:
        nonlocal head
        head = _Head()
        return send(asked).addBoth(head.ended)  # type: ignore[no-any-return]

    def received(data: bytes) -> None:
        receive(data)
        if head.waits:
            head.bytes += len(data)
            if head.bytes > MAX_HEAD_BYTES:
                connection.abort()

    connection.request, connection.dataReceived = request, received
