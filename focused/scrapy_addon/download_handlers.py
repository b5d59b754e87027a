"""Download handlers over the crawl's HTTP client: for the live Web and for a replay server.

With ``FOCUSED_REPLAY = "127.0.0.1:PORT"`` every request goes as plain HTTP to that port, with its
host and scheme in headers. URLs, signals, errors and slots stay those of the original hosts. A host
that was not recorded gives a DNS error. Responses have no IP address.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.exceptions import CannotResolveHostError, NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.ssl import _make_ssl_context

from focused.errors import ConfigurationError
from focused.recorded_web.replay_faults import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused.scrapy_addon.crawl_session import find_session
from focused.scrapy_addon.http_client import HttpClient, TrackedResponse
from focused.scrapy_addon.name_resolver import NoSuchHostError
from focused.scrapy_addon.outcomes import keep_exchange
from focused.scrapy_addon.request_state import state_of, update_state

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response


class FocusedDownloadHandler(AiohttpDownloadHandler):
    """Scrapy's aiohttp handler with the crawl's client and the checked address."""

    experimental = False
    lazy = True  # the client needs a running event loop

    def __init__(self, crawler: Crawler) -> None:
        # Skip the parent, which would open its own session.
        super(AiohttpDownloadHandler, self).__init__(crawler)
        self._client = http_client_of(crawler)
        session = find_session(crawler)
        self._keeps_exchanges = session is not None and session.topic.output.warc != "off"
        self._logins = None if session is None else session.logins

    async def download_request(self, request: Request) -> Response:
        """Return the response; keep the exchange for the archive.

        Credentials of a login are in neither.
        """
        update_state(request, exchange=None)
        response = await super().download_request(request)
        if self._logins is not None:
            self._logins.take_cookies(request, response)
        if self._keeps_exchanges:
            keep_exchange(request, response)
        return response

    @asynccontextmanager
    async def _make_request(
        self, request: Request, timeout: float
    ) -> AsyncIterator[TrackedResponse]:
        headers = self._request_headers(request)
        login = None if self._logins is None else self._logins.of_request(request)
        if login is not None:
            login.add_credentials(request, headers)
        opened = self._client.open(
            request.method,
            request.url,
            headers.to_tuple_list(),
            address=state_of(request).checked_address,
            timeout_s=timeout,
            body=request.body or None,
            proxy=self._extract_proxy_url_with_creds(request),
            verify=login is not None,  # nobody in between shall see its credentials
        )
        async with opened as response:
            yield response

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()


def http_client_of(crawler: Crawler) -> HttpClient:
    """Return the crawl's client; create it for the first request."""
    session, settings = find_session(crawler), crawler.settings
    if session is not None and session.http_client is not None:
        return session.http_client
    local, port = settings["DOWNLOAD_BIND_ADDRESS"] or "", 0
    if isinstance(local, tuple):
        local, port = local
    client = HttpClient(
        _make_ssl_context(settings),
        # All hosts of a replayed web have one address.
        one_per_address=bool(
            session and session.topic.politeness.per_address and not session.replayed
        ),
        max_concurrent=settings.getint("CONCURRENT_REQUESTS"),
        local_address=(local, port) if local else None,
    )
    if session is not None:
        session.http_client = client
    return client


if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response

REPLAY_SETTING = "FOCUSED_REPLAY"
_HANDLER = "focused.scrapy_addon.download_handlers.ReplayDownloadHandler"


def replay_settings(address: str) -> dict[str, Any]:
    """Return the settings that send a crawl to the replay server at ``HOST:PORT``.

    Raises ConfigurationError for an invalid address.
    """
    _check_address(address)
    return {
        REPLAY_SETTING: address,
        "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    }


def install_replay(settings: BaseSettings) -> bool:
    """Enable the replay if ``FOCUSED_REPLAY`` is set; return whether it is.

    Replaces all handlers of http and https: a replayed crawl must not reach the live Web.
    """
    address = settings.get(REPLAY_SETTING)
    if not address:
        return False
    ours = replay_settings(address)["DOWNLOAD_HANDLERS"]
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **ours}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")
    return True


class ReplayDownloadHandler(FocusedDownloadHandler):
    """Downloads every URL from the replay server."""

    def __init__(self, crawler: Crawler) -> None:
        address = crawler.settings.get(REPLAY_SETTING)
        if not address:
            raise NotConfigured(f"{REPLAY_SETTING} is not set")
        _check_address(address)
        super().__init__(crawler)
        self._server = str(address)

    async def download_request(self, request: Request) -> Response:
        """Return the response without the replay server's address."""
        response = await super().download_request(request)
        response.ip_address = None
        return response

    @asynccontextmanager
    async def _make_request(
        self, request: Request, timeout: float
    ) -> AsyncIterator[TrackedResponse]:
        scheme, netloc, target = _split_url(request.url)
        headers = self._request_headers(request)
        headers.setdefault("Host", netloc.rpartition("@")[2])
        headers[SCHEME_HEADER] = scheme
        opened = self._client.open(
            request.method,
            f"http://{self._server}{target}",
            headers.to_tuple_list(),
            address=None,
            timeout_s=timeout,
            body=request.body or None,
        )
        async with opened as response:
            if response.headers.get(FAULT_HEADER) == UNKNOWN_HOST:
                await response.read()  # read the empty body: the connection can be reused
                missing = NoSuchHostError(f"no such host in the replayed web: {netloc}")
                raise CannotResolveHostError(str(missing)) from missing
            yield response


def _split_url(url: str) -> tuple[str, str, str]:
    """Split a URL into scheme, authority and the unchanged rest."""
    scheme, _, rest = url.partition("://")
    netloc = re.split(r"[/?#]", rest, maxsplit=1)[0]
    target = rest[len(netloc) :]
    return scheme, netloc, target if target.startswith("/") else f"/{target}"


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{REPLAY_SETTING} is {address!r}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
