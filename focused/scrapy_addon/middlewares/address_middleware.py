"""No request leaves for a private address, another scheme, or by another name than the topic's.

Innermost of the add-on's middlewares: pages, robots.txt, a spider's own
requests and those of media pipelines all pass. Names are looked up here, so
that why none was found is told, and the wait is not the host's.
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
from focused.web.urls import normalise

_CONNECTION_FAILURES = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})
_SCHEMES = frozenset({"http", "https", "data"})  # data: URLs hold what they name


class AddressMiddleware:
    """Looks up each request's host; refuses what is not to be connected to."""

    def __init__(self, session: CrawlSession, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._private = session.topic.scope.private_addresses
        self._resolver: NameResolver | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AddressMiddleware:
        """Build on the crawler's session."""
        return cls(session_of(crawler), crawler)

    async def process_request(self, request: Request) -> None:
        """Let the request pass or raise; its time runs from here on."""
        parts = urlsplit(request.url)
        if parts.scheme not in _SCHEMES:
            raise IgnoreRequest(f"{request.url[:200]}: only http and https are asked for")
        if parts.scheme != "data" and normalise(request.url) is None:
            # Its host's rules and delays are kept by the normalised URL.
            raise IgnoreRequest(f"{request.url[:200]}: no URL that can be crawled")
        # robots.txt was read for this name, whatever the spider, the project or the request say.
        update_state(request, checked_address=None)
        request.headers["User-Agent"] = self._session.topic.politeness.user_agent
        host = parts.hostname
        if not host or parts.scheme == "data" or self._session.replayed:
            return
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        if request.meta.get("proxy"):
            return
        answer = await self._names().resolve(host)
        address = allowed_addresses(host, answer, private=self._private)[0]
        await claim_address(self._session, request, address)
        update_state(
            request, was_looked_up=True, checked_address=address, sent_at=self._session.now()
        )

    def known_address(self, host: str) -> str | None:
        """Where requests to the host (as URLs have it) go; None: it has to be looked up.

        Raises PrivateAddressError and what :func:`allowed_addresses` raises.
        """
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        answer = self._names().cached(host)
        return None if answer is None else allowed_addresses(host, answer, private=self._private)[0]

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Where nobody answers, the next try goes to another address of the host."""
        address, host = state_of(request).checked_address, urlsplit(request.url).hostname
        if address and host and failure_kind_of(exception) in _CONNECTION_FAILURES:
            self._names().deprioritize(host, address)

    def _names(self) -> NameResolver:
        if self._resolver is None:  # with the first request: it needs a running loop
            settings = self._crawler.settings
            cached = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
            self._resolver = NameResolver(
                make_lookup(settings), cached, time.monotonic, self._count
            )
        return self._resolver

    def _count(self, event: str) -> None:
        self._crawler.stats.inc_value(f"focused/resolver/{event}")
