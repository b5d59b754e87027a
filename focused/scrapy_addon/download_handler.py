"""Scrapy's downloads over the crawl's HTTP client, and the decoding of what they bring.

Scrapy bounds a body, compressed and decompressed, and the time it may take; the rest is bounded
here and in :mod:`focused.scrapy_addon.http_client`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.ssl import _make_ssl_context

from focused.scrapy_addon.http_client import HttpClient, TrackedResponse
from focused.scrapy_addon.outcomes import (
    TooLargeError,
    UndecodableError,
    keep_exchange,
)
from focused.scrapy_addon.request_state import state_of, update_state
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

MAX_CODINGS = 3
"""How often a body may be packed; each time costs ``scope.max_page_bytes`` of unpacking."""


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


class FocusedDownloadHandler(AiohttpDownloadHandler):
    """Scrapy's aiohttp handler over the crawl's own client, from the address that was checked."""

    experimental = False
    lazy = True  # the client needs a running loop

    def __init__(self, crawler: Crawler) -> None:
        # Past its parent, which would open a session of its own.
        super(AiohttpDownloadHandler, self).__init__(crawler)
        self._client = client_of(crawler)
        session = session_if_any(crawler)
        self._keeps_exchanges = session is not None and session.topic.output.warc != "off"

    async def download_request(self, request: Request) -> Response:
        """Return the response; what was sent and received is kept for the archive."""
        update_state(request, exchange=None)
        response = await super().download_request(request)
        if self._keeps_exchanges:
            keep_exchange(request, response)
        return response

    @asynccontextmanager
    async def _make_request(
        self, request: Request, timeout: float
    ) -> AsyncIterator[TrackedResponse]:
        opened = self._client.open(
            request.method,
            request.url,
            self._request_headers(request).to_tuple_list(),
            address=state_of(request).checked_address,
            timeout_s=timeout,
            body=request.body or None,
            proxy=self._extract_proxy_url_with_creds(request),
        )
        async with opened as response:
            yield response

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()


def client_of(crawler: Crawler) -> HttpClient:
    """Return the crawl's client, made for its first request."""
    session, settings = session_if_any(crawler), crawler.settings
    if session is not None and session.http_client is not None:
        return session.http_client
    local, port = settings["DOWNLOAD_BIND_ADDRESS"] or "", 0
    if isinstance(local, tuple):
        local, port = local
    client = HttpClient(
        _make_ssl_context(settings),
        # A replayed web has one address for all hosts; so may a project without the add-on.
        one_per_address=bool(
            session and session.topic.politeness.per_address and not session.replayed
        ),
        max_concurrent=settings.getint("CONCURRENT_REQUESTS"),
        local_address=(local, port) if local else None,
    )
    if session is not None:
        session.http_client = client
    return client
