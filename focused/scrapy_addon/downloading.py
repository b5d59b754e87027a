"""Answers that break on their way in: bounded, named, and settled.

A server may send headers without end, bodies that cannot be unpacked, and
bombs. Scrapy bounds a body, packed and unpacked, and the time it may take;
the rest is bounded here. What then fails in a middleware's
``process_response`` is told to no middleware's ``process_exception``: the
downloader tells the settling, or the link's host would be leased for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro
from twisted.web.client import HTTPConnectionPool

from focused.scrapy_addon.idle_connections import IdleConnections, most_idle
from focused.scrapy_addon.outcomes import CHECKED_ADDRESS, TooLargeError, UndecodableError
from focused.scrapy_addon.robots_request import (
    ACCEPTED_CODINGS,
    is_robots_request,
    unpack_start,
)
from focused.scrapy_addon.session import session_if_any
from focused.scrapy_addon.settling import SettlingMiddleware

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from twisted.internet.defer import Deferred

MAX_HEAD_BYTES = 262_144
"""Status lines and headers of one answer, interim answers included; as much as Chrome takes."""

MAX_CODINGS = 3
"""How often a body may be packed; each time costs ``scope.max_page_bytes`` of unpacking."""


class SettlingDownloader(Downloader):
    """Scrapy's downloader, which tells the settling what broke on the way back."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._settling = SettlingMiddleware.from_crawler(crawler)

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download through all middlewares, as Scrapy's own does, in one task instead of three."""
        # At once: the engine counts what is under way before it asks for more.
        self.active.add(request)
        return deferred_from_coro(self._told(request))

    async def _told(self, request: Request) -> Response | Request:
        try:
            try:
                return await self.middleware.download_async(self._enqueue_request, request)
            finally:
                self.active.remove(request)
        except Exception as error:
            instead = await self._settling.process_exception(request, error)
            if instead is None:
                raise
            return instead

    async def _enqueue_request(self, request: Request) -> Response:
        """Where nothing is to be waited for, as nearly always, download without Scrapy's queue."""
        key, slot = self._get_slot(request)
        if slot.active or slot.queue or slot.latercall or slot.delay:
            return await super()._enqueue_request(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self.signals.send_catch_log(
            signal=signals.request_reached_downloader, request=request, spider=self.crawler.spider
        )
        slot.lastseen = monotonic()
        try:
            return await self._download(slot, request)
        finally:
            slot.active.remove(request)


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
        codings = b",".join(response.headers.getlist("Content-Encoding")).count(b",") + 1
        if codings > MAX_CODINGS:
            raise UndecodableError(f"packed {codings} times")
        if is_robots_request(request):
            return unpack_start(response)
        try:
            return super().process_response(request, response)
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

        session = session_if_any(crawler)
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
        return await super().download_request(request)


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
