"""The download handler over the crawl's HTTP client."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import aiohttp
from pydispatch.dispatcher import (  # type: ignore[import-untyped]  # used by Scrapy's signals
    Any as AnyOf,
)
from pydispatch.dispatcher import connections
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadCancelledError, StopDownload
from scrapy.http import Headers, Request, Response
from scrapy.responsetypes import responsetypes
from scrapy.signalmanager import SignalManager
from scrapy.utils.ssl import _log_sslobj_debug_info, _make_ssl_context
from scrapy.utils.url import add_http_if_no_scheme
from twisted.python.failure import Failure

from focused.scrapy_addon.http_client import HttpClient, TrackedResponse, head_of
from focused.scrapy_addon.outcomes import keep_exchange
from focused.scrapy_addon.request_state import state_of, update_state
from focused.web.robots.robots_file import MAX_ROBOTS_BYTES


class ListenedSignals(SignalManager):
    """Sends the signals of a crawler; one that nobody listens to costs little."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler.signals.sender)

    def send_catch_log(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        """See Scrapy."""
        for sender in (self.sender, AnyOf):
            listened = connections.get(id(sender), ())
            if signal in listened or AnyOf in listened:
                return super().send_catch_log(signal, **values)
        return []

    def asks_to_stop(self, signal: Any, **values: Any) -> StopDownload | None:
        """Send a signal; return the exception of a listener that stops the download."""
        for _, result in self.send_catch_log(signal, **values):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                return result.value
        return None


logger = logging.getLogger(__name__)

_DEFAULT_TIMEOUT_S = 180.0
_STOPPED = "download_stopped"
_PROXY_AUTHORIZATION = b"Proxy-Authorization"
_parse_address = lru_cache(maxsize=10_000)(ip_address)


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


class FocusedDownloadHandler:
    """Sends requests by the crawl's client to their checked addresses.

    Settings and keys of ``request.meta`` have the effects that they have on Scrapy's handlers.
    """

    lazy = True  # the client needs a running event loop

    def __init__(self, crawler: Crawler, options: TransferOptions | None = None) -> None:
        settings, self._options = crawler.settings, options or TransferOptions()
        self._crawler = crawler
        self._signals = ListenedSignals(crawler)
        self._max_bytes = settings.getint("DOWNLOAD_MAXSIZE")
        self._warn_bytes = settings.getint("DOWNLOAD_WARNSIZE")
        self._fails_on_loss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._logs_tls = settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")
        self._proxy_encoding = settings["HTTPPROXY_AUTH_ENCODING"]
        local = settings["DOWNLOAD_BIND_ADDRESS"] or None
        self._client = HttpClient(
            _make_ssl_context(settings),
            one_per_address=self._options.one_per_address,
            max_concurrent=settings.getint("CONCURRENT_REQUESTS"),
            local_address=(local, 0) if isinstance(local, str) else local,
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FocusedDownloadHandler:
        """Create with the default options."""
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """Return the response; keep the exchange for the archive, without credentials.

        Raises Scrapy's exceptions of downloads.
        """
        meta = request.meta
        if state_of(request).exchange is not None:
            update_state(request, exchange=None)
        began_at = monotonic()
        async with self._open(request, meta.get("download_timeout", _DEFAULT_TIMEOUT_S)) as raw:
            meta["download_latency"] = monotonic() - began_at
            headers = _headers_of(raw)
            body, flags, stop = await self._read(raw, request, headers)
        response = self._response(raw, request, headers, body, flags)
        had_cookies = False
        for each in self._options.authenticators:
            had_cookies |= each.take_cookies(request, response)
        if stop is not None and stop.fail:
            stop.response = response
            raise stop
        if self._options.keeps_exchanges:
            keep_exchange(request, response, None if had_cookies else head_of(raw))
        return response

    def _open(
        self, request: Request, timeout_s: float
    ) -> AbstractAsyncContextManager[TrackedResponse]:
        """Send the request; yield the response after its head."""
        headers, verify = request.headers, False
        if self._options.authenticators:
            headers = headers.copy()
            for each in self._options.authenticators:
                verify |= each.authenticate(request, headers)
        return self._client.open(
            request.method,
            request.url,
            sent_headers(headers),
            address=state_of(request).checked_address,
            timeout_s=timeout_s,
            body=request.body or None,
            proxy=self._proxy_of(request),
            verify=verify,  # nobody in between shall see credentials
        )

    async def _read(
        self, raw: TrackedResponse, request: Request, headers: Headers
    ) -> tuple[bytes, list[str], StopDownload | None]:
        """Return the body as far as it is wanted, flags, and the exception that stopped it."""
        meta, announced = request.meta, raw.content_length
        max_bytes = meta.get("download_maxsize", self._max_bytes)
        about = {"request": request, "spider": self._crawler.spider}
        if self._is_refused(raw, request):
            raw.close()  # it costs less to connect again
            return b"", [_STOPPED], None
        if announced and 0 < max_bytes < announced:
            raise DownloadCancelledError(f"{request.url} has {announced} bytes, above {max_bytes}")
        stop = self._signals.asks_to_stop(
            signals.headers_received, headers=headers, body_length=announced, **about
        )
        if stop is not None:
            raw.close()
            return b"", [_STOPPED], stop
        is_robots = state_of(request).robots_bytes is not None
        pieces: list[bytes] = []
        length = 0
        try:
            while piece := await raw.content.readany():
                pieces.append(piece)
                length += len(piece)
                stop = self._signals.asks_to_stop(signals.bytes_received, data=piece, **about)
                # One byte more shows that the last line may be incomplete.
                if stop is not None or (is_robots and length > MAX_ROBOTS_BYTES):
                    raw.close()
                    return b"".join(pieces), [_STOPPED], stop
                if 0 < max_bytes < length:
                    raise DownloadCancelledError(f"{request.url} has more than {max_bytes} bytes")
        except aiohttp.ClientPayloadError:
            if meta.get("download_fail_on_dataloss", self._fails_on_loss):
                raise
            return b"".join(pieces), ["dataloss"], None
        if 0 < meta.get("download_warnsize", self._warn_bytes) < length:
            logger.warning("%s has %d bytes", request.url, length)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), [], None

    def _is_refused(self, raw: TrackedResponse, request: Request) -> bool:
        length = raw.content_length
        return (length is None or length > _SHORT_BYTES) and self._options.refuses(
            request, raw.status, raw.headers.getall("Content-Type", [""])[-1]
        )

    def _response(
        self,
        raw: TrackedResponse,
        request: Request,
        headers: Headers,
        body: bytes,
        flags: list[str],
    ) -> Response:
        tls = raw.ssl_object
        if tls is not None and self._logs_tls:
            _log_sslobj_debug_info(tls)
        kind = responsetypes.from_args(headers=headers, url=request.url, body=body)
        version = "1.1" if raw.version is None else "{}.{}".format(*raw.version)
        response = kind(
            url=request.url,
            status=raw.status,
            body=body,
            flags=flags,
            certificate=None if tls is None else tls.getpeercert(binary_form=True),
            ip_address=None if raw.peer is None else _parse_address(raw.peer),
            protocol=f"HTTP/{version}",
        )
        response.headers = headers  # as an argument they would be normalised again
        return response

    def _proxy_of(self, request: Request) -> str | None:
        """Return the URL of the request's proxy, with the credentials of its header."""
        if not request.meta.get("proxy"):
            return None
        proxy = add_http_if_no_scheme(request.meta["proxy"])
        credentials = request.headers.get(_PROXY_AUTHORIZATION)
        if credentials is None:
            return proxy
        scheme, token = credentials.decode("ascii").split(" ", 1)
        if scheme != "Basic":
            raise ValueError(f"expected Basic in Proxy-Authorization, got {scheme}")
        user, password = base64.b64decode(token).decode(self._proxy_encoding).split(":", 1)
        parts = urlsplit(proxy)
        netloc = f"{quote(user)}:{quote(password)}@{parts.netloc}"
        return parts._replace(netloc=netloc).geturl()

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()


def sent_headers(headers: Headers) -> list[tuple[str, str]]:
    """Return the headers to send: all but those for a proxy."""
    return [
        (name.decode("latin-1"), value.decode(headers.encoding))
        for name, values in dict.items(headers)
        if name != _PROXY_AUTHORIZATION
        for value in values
    ]


def _headers_of(raw: TrackedResponse) -> Headers:
    # Its keys are title-case bytes, its values lists of bytes: half a microsecond a header.
    values: dict[bytes, list[bytes]] = {}
    for name, value in raw.raw_headers:
        values.setdefault(name.title(), []).append(value)
    headers = Headers()
    dict.update(headers, values)
    return headers
