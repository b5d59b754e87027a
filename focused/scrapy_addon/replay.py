"""Sends a crawl's requests to a replayed web; nothing else in Scrapy notices.

With ``FOCUSED_REPLAY = "127.0.0.1:PORT"`` requests, responses, signals, errors and slots keep
their own URLs and hosts, but every request goes, as plain HTTP, to that one port, with the host
and scheme that were meant in headers. A host that the recorded web lacks gives the DNS error that
the live Web would give. Responses have no IP address: all hosts have one here, which is none of
theirs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import CannotResolveHostError, NotConfigured
from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.recorded.replay_headers import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused.scrapy_addon.download_handler import FocusedDownloadHandler
from focused.scrapy_addon.http_client import TrackedResponse
from focused.scrapy_addon.name_resolver import NoSuchHostError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response

REPLAY_SETTING = "FOCUSED_REPLAY"
_HANDLER = "focused.scrapy_addon.replay.ReplayDownloadHandler"


def replay_settings(address: str) -> dict[str, Any]:
    """Return the settings that send a crawl to the replay server at ``HOST:PORT``.

    Raises ConfigurationError when the address has another form.
    """
    _check_address(address)
    return {
        REPLAY_SETTING: address,
        "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    }


def install_replay(settings: BaseSettings) -> bool:
    """Turn the replay on when ``FOCUSED_REPLAY`` is set, for add-ons; tell whether it was.

    Handlers of other schemes stay; those of http and https are replaced,
    whoever set them: a replayed crawl must not touch the live Web.
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
        """Return the response, without the address of the replay server."""
        response = await super().download_request(request)
        response.ip_address = None
        return response

    @asynccontextmanager
    async def _make_request(
        self, request: Request, timeout: float
    ) -> AsyncIterator[TrackedResponse]:
        scheme, netloc, target = _parts(request.url)
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
                await response.read()  # there is no body: the connection stays of use
                missing = NoSuchHostError(f"no such host in the replayed web: {netloc}")
                raise CannotResolveHostError(str(missing)) from missing
            yield response


def _parts(url: str) -> tuple[str, str, str]:
    """Split a URL into scheme, authority, and the rest as it is written."""
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
