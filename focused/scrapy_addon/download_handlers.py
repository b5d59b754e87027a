"""The download handler over the crawl's HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.http import Headers, Request, Response
from scrapy.utils._download_handlers import make_response
from scrapy.utils.ssl import _make_ssl_context

from focused.scrapy_addon.http_client import HttpClient, TrackedResponse, head_of
from focused.scrapy_addon.outcomes import keep_exchange
from focused.scrapy_addon.request_state import state_of, update_state

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Authenticator(Protocol):
    """Adds credentials where no middleware, spider, log or archive sees them."""

    def authenticate(self, request: Request, headers: Headers) -> bool:
        """Add the request's credentials to the headers that are sent; return whether there are any.

        Then the host's certificate is verified.
        """

    def take_cookies(self, request: Request, response: Response) -> bool:
        """Remove the cookies of a session from a response; return whether it may have had any."""


_SHORT_BYTES = 32_768
"""A body that announces so many bytes is read where nobody wants it: the connection stays."""


def _never(request: Request, status: int, content_type: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How a crawl's handlers transfer requests and responses.

    ``one_per_address`` closes idle connections to other hosts at an address. ``keeps_exchanges``
    keeps request and response as sent, for the archive. ``refuses(request, status, content_type)``
    tells whether a long body of a response is not read.
    """

    one_per_address: bool = False
    keeps_exchanges: bool = False
    refuses: Callable[[Request, int, str], bool] = _never
    authenticators: Sequence[Authenticator] = ()


class FocusedDownloadHandler(AiohttpDownloadHandler):
    """Scrapy's aiohttp handler with the crawl's client and the checked address."""

    experimental = False
    lazy = True  # the client needs a running event loop

    def __init__(self, crawler: Crawler, options: TransferOptions | None = None) -> None:
        # Skip the parent, which would open its own session.
        super(AiohttpDownloadHandler, self).__init__(crawler)
        settings, self._options = crawler.settings, options or TransferOptions()
        self._client = HttpClient(
            _make_ssl_context(settings),
            one_per_address=self._options.one_per_address,
            max_concurrent=settings.getint("CONCURRENT_REQUESTS"),
            local_address=self._bind_address,
        )

    async def download_request(self, request: Request) -> Response:
        """Return the response; keep the exchange for the archive, without credentials."""
        update_state(request, exchange=None)
        return await super().download_request(request)

    async def _read_response(self, response: Any, request: Request) -> Response:
        """See Scrapy; does not read a long body that the crawl refuses."""
        options, length = self._options, response.content_length
        content_type = response.headers.get("Content-Type", "")
        is_long = length is None or length > _SHORT_BYTES
        if is_long and options.refuses(request, response.status, content_type):
            response.close()  # it costs less to connect again
            headers = self._extract_headers(response)
            base = self._build_base_response_args(response, request, headers)
            read = make_response(**base, flags=["download_stopped"])
        else:
            read = await super()._read_response(response, request)
        had_cookies = False
        for each in options.authenticators:
            had_cookies |= each.take_cookies(request, read)
        if options.keeps_exchanges:
            keep_exchange(request, read, None if had_cookies else head_of(response))
        return read

    @asynccontextmanager
    async def _make_request(
        self, request: Request, timeout: float
    ) -> AsyncIterator[TrackedResponse]:
        headers = self._request_headers(request)
        verify = False  # nobody in between shall see credentials
        for each in self._options.authenticators:
            verify |= each.authenticate(request, headers)
        opened = self._client.open(
            request.method,
            request.url,
            headers.to_tuple_list(),
            address=state_of(request).checked_address,
            timeout_s=timeout,
            body=request.body or None,
            proxy=self._extract_proxy_url_with_creds(request),
            verify=verify,
        )
        async with opened as response:
            yield response

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()
