"""No request leaves for a private address, another scheme, or by another name than the topic's.

Innermost of the add-on's middlewares: pages, robots.txt, a spider's own
requests and those of media pipelines all pass. Names are looked up here, so
that why none was found is told, and the wait is not the host's.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import BaseSettings
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed

from focused.crawl.name_cache import NameCache
from focused.scrapy_addon.name_servers import (
    NameServers,
    servers_of,
    system_servers,
    waits_s,
)
from focused.scrapy_addon.names import (
    Names,
    PrivateAddressError,
    ask_system,
    is_the_systems_own,
    usable,
)
from focused.scrapy_addon.outcomes import CHECKED_ADDRESS, LOOKED_UP, SENT_AT, kind_of_exception
from focused.scrapy_addon.politeness import go_to
from focused.scrapy_addon.resolver import CheckedResolver
from focused.scrapy_addon.session import Session, session_of
from focused.web.addresses import is_private_host
from focused.web.name_answer import NameAnswer
from focused.web.page import FailureKind
from focused.web.url import normalise

RESOLV_CONF = Path("/etc/resolv.conf")
_NO_CONNECTION = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})
_SCHEMES = frozenset({"http", "https", "data"})  # data: URLs hold what they name

logger = logging.getLogger(__name__)


class ConnectionsMiddleware:
    """Looks up each request's host; refuses what is not to be connected to."""

    def __init__(self, session: Session, settings: BaseSettings) -> None:
        self._session = session
        self._settings = settings
        self._private = session.topic.scope.private_addresses
        self._names: Names | None = None
        self._resolver: CheckedResolver | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConnectionsMiddleware:
        """Build on the crawler's session."""
        middleware = cls(session_of(crawler), crawler.settings)
        crawler.signals.connect(middleware.close, signals.spider_closed)
        return middleware

    async def process_request(self, request: Request) -> None:
        """Let the request pass or raise; its time runs from here on."""
        parts = urlsplit(request.url)
        if parts.scheme not in _SCHEMES:
            raise IgnoreRequest(f"{request.url[:200]}: only http and https are asked for")
        if parts.scheme != "data" and normalise(request.url) is None:
            # Its host's rules and delays are kept by the normalised URL.
            raise IgnoreRequest(f"{request.url[:200]}: no URL that can be crawled")
        # robots.txt was read for this name, whatever the spider, the project or the request say.
        request.meta.pop(CHECKED_ADDRESS, None)
        request.headers["User-Agent"] = self._session.topic.politeness.user_agent
        host = parts.hostname
        if not host or parts.scheme == "data" or self._session.replayed:
            return
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        if request.meta.get("proxy") or not is_reactor_installed():
            return
        names, resolver = self._begun()
        address = self.known_address(host)
        if address is None:
            answer = await maybe_deferred_to_future(names.look_up(host))
            address = usable(host, answer, private=self._private)[0]
        await go_to(self._session, request, address)
        resolver.answer_for(host, address)
        request.meta[LOOKED_UP] = True
        request.meta[CHECKED_ADDRESS] = address
        request.meta[SENT_AT] = self._session.now()

    def known_address(self, host: str) -> str | None:
        """Where requests to the host (as URLs have it) go; None: it has to be looked up.

        Raises PrivateAddressError and what :func:`usable` raises.
        """
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        answer = self._begun()[0].known(host)
        return None if answer is None else usable(host, answer, private=self._private)[0]

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Where nobody answers, the next try goes to another address of the host."""
        address, host = request.meta.get(CHECKED_ADDRESS), urlsplit(request.url).hostname
        if address and host and kind_of_exception(exception) in _NO_CONNECTION and self._names:
            self._names.pass_over(host, address)

    def close(self) -> None:
        """Give the reactor back its resolver."""
        if self._resolver is not None:
            self._resolver.uninstall(_reactor())

    def _begun(self) -> tuple[Names, CheckedResolver]:
        # With the first request: Scrapy installs its own resolver when the reactor starts.
        if self._names is None or self._resolver is None:
            kept = self._settings.getint("DNSCACHE_SIZE")
            cache = NameCache(kept if self._settings.getbool("DNSCACHE_ENABLED") else 0)
            self._names = Names(_asker(self._settings), cache, time.monotonic)
            self._resolver = CheckedResolver()
            self._resolver.install(_reactor())
        return self._names, self._resolver


def _asker(settings: BaseSettings) -> Any:
    """How a name is asked for: of name servers, or of the system."""
    servers = servers_of(settings["FOCUSED_DNS_SERVERS"] or "") or system_servers(RESOLV_CONF)
    if not servers:
        logger.warning(
            "no name server in %s: the system's own resolver is asked, in threads; "
            "FOCUSED_DNS_SERVERS names others",
            RESOLV_CONF,
        )
        return ask_system
    asked = NameServers(servers, waits_s(settings.getfloat("DNS_TIMEOUT")), _reactor())

    async def ask(name: str) -> NameAnswer:
        return await (ask_system(name) if is_the_systems_own(name) else asked.ask(name))

    return ask


def _reactor() -> Any:
    from twisted.internet import reactor  # installs one when imported too early

    return reactor
