"""The download handler of a replay: every request goes to one server.

With ``FOCUSED_REPLAY = "127.0.0.1:PORT"`` every request goes as plain HTTP to that port, with its
host and scheme in headers. URLs, signals, errors and slots stay those of the original hosts. A host
that was not recorded gives a DNS error. Responses have no IP address.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from scrapy.exceptions import CannotResolveHostError, NotConfigured
from scrapy.http import Request, Response

from focused.recorded_web import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused.scrapy_addon.download_handlers import (
    FocusedDownloadHandler,
    TransferOptions,
    sent_headers,
)
from focused.scrapy_addon.http_client import TrackedResponse
from focused.scrapy_addon.name_resolver import NoSuchHostError
from focused.scrapy_addon.scrapy_settings import REPLAY_SETTING, check_replay_address

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ReplayDownloadHandler(FocusedDownloadHandler):
    """Downloads every URL from the replay server."""

    def __init__(self, crawler: Crawler, options: TransferOptions | None = None) -> None:
        address = crawler.settings.get(REPLAY_SETTING)
        if not address:
            raise NotConfigured(f"{REPLAY_SETTING} is not set")
        check_replay_address(address)
        super().__init__(crawler, options)
        self._server = str(address)

    async def download_request(self, request: Request) -> Response:
        """Return the response without the replay server's address."""
        response = await super().download_request(request)
        response.ip_address = None
        return response

    @asynccontextmanager
    async def _open(self, request: Request, timeout_s: float) -> AsyncIterator[TrackedResponse]:
        scheme, netloc, target = _split_url(request.url)
        headers = request.headers.copy()
        headers.setdefault("Host", netloc.rpartition("@")[2])
        headers[SCHEME_HEADER] = scheme
        opened = self._client.open(
            request.method,
            f"http://{self._server}{target}",
            sent_headers(headers),
            address=None,
            timeout_s=timeout_s,
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
