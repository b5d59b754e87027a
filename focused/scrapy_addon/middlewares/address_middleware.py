"""Refuses requests to private addresses and other schemes; resolves hosts.

The last of the add-on's middlewares: pages, robots.txt, a spider's own requests and media requests
all pass it. Hosts are resolved here, so that DNS failures are reported as such and their time does
not count for the host.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.middlewares.politeness_middleware import claim_address
from focused.scrapy_addon.name_resolver import (
    NameResolver,
    PrivateAddressError,
    allowed_addresses,
    make_lookup,
)
from focused.scrapy_addon.outcomes import failure_kind_of
from focused.scrapy_addon.request_state import state_of, update_state
from focused.web.host_names import is_private_host
from focused.web.page import FailureKind
from focused.web.urls import normalize_url

_CONNECTION_FAILURES = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})
_SCHEMES = frozenset({"http", "https", "data"})  # data: URLs contain their content


class AddressMiddleware:
    """Resolves each request's host and checks its address."""

    def __init__(self, session: CrawlSession, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._private = session.topic.scope.private_addresses
        self._resolver: NameResolver | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AddressMiddleware:
        """Create with the crawler's session."""
        return cls(session_of(crawler), crawler)

    async def process_request(self, request: Request) -> None:
        """Check the request; raises an exception to refuse it."""
        parts = urlsplit(request.url)
        if parts.scheme not in _SCHEMES:
            raise IgnoreRequest(f"{request.url[:200]}: only http and https are supported")
        if parts.scheme != "data" and normalize_url(request.url) is None:
            # Robots rules and delays apply to the normalised URL.
            raise IgnoreRequest(f"{request.url[:200]}: not a URL that can be crawled")
        # robots.txt was read for this user agent, whatever others set.
        update_state(request, checked_address=None)
        request.headers["User-Agent"] = self._session.topic.politeness.user_agent
        host = parts.hostname
        if not host or parts.scheme == "data" or self._session.replayed:
            return
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        if request.meta.get("proxy"):
            return
        answer = await self._get_resolver().resolve(host)
        address = allowed_addresses(host, answer, private=self._private)[0]
        await claim_address(self._session, request, address)
        update_state(
            request, was_looked_up=True, checked_address=address, sent_at=self._session.now()
        )

    def known_address(self, host: str) -> str | None:
        """Return the address for requests to the host; None if it must be resolved.

        Raises PrivateAddressError and the exceptions of :func:`allowed_addresses`.
        """
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        answer = self._get_resolver().cached(host)
        return None if answer is None else allowed_addresses(host, answer, private=self._private)[0]

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """After a failed connection, try the host's other addresses first."""
        address, host = state_of(request).checked_address, urlsplit(request.url).hostname
        if address and host and failure_kind_of(exception) in _CONNECTION_FAILURES:
            self._get_resolver().deprioritize(host, address)

    def _get_resolver(self) -> NameResolver:
        if self._resolver is None:  # needs a running event loop
            settings = self._crawler.settings
            cached = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
            self._resolver = NameResolver(
                make_lookup(settings), cached, time.monotonic, self._count
            )
        return self._resolver

    def _count(self, event: str) -> None:
        self._crawler.stats.inc_value(f"focused/resolver/{event}")
