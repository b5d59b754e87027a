"""Middlewares that decide whether and when a request may be sent.

Pages, robots.txt, a spider's own requests and media requests pass all of them, in this order:

- :class:`RobotsMiddleware` refuses requests that robots.txt disallows. The crawl fetches robots.txt
  before it leases a host's first page. The middleware checks every request again when it is sent,
  and fetches robots.txt for requests that bypass the frontier.
- :class:`PolitenessMiddleware` delays requests that bypass the frontier until their host and
  address are due.
- :class:`AddressMiddleware` refuses requests to private addresses and other schemes, and resolves
  hosts: DNS failures are reported as such, and their time does not count for the host.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit
from weakref import finalize

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import sleep

from focused.crawl import ROBOTS, Crawl
from focused.crawl.hosts.robots_cache import MAX_REDIRECTS
from focused.crawl.leases import POLL_INTERVAL_S, DirectRequest
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.name_resolver import (
    NameResolver,
    PrivateAddressError,
    allowed_addresses,
    make_lookup,
)
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    RobotsDeniedError,
    failure_kind_of,
    outcome_from_exception,
    outcome_from_scrapy_response,
)
from focused.scrapy_addon.request_state import RequestState, state_of, update_state
from focused.scrapy_addon.robots_request import limit_robots_downloads, robots_request
from focused.scrapy_addon.scheduler import is_leased
from focused.web.host_names import is_local_name, is_private_host
from focused.web.page import Failed, FailureKind, Outcome, Redirected
from focused.web.urls import host_of, normalize_url, robots_url

_MAX_WAIT_S = 300.0
_CONNECTION_FAILURES = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})
_SCHEMES = frozenset({"http", "https", "data"})  # data: URLs contain their content


class RobotsMiddleware:
    """Raises :class:`RobotsDeniedError` for URLs that robots.txt disallows (RFC 9309)."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._asked: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        """Create with the crawler's session."""
        limit_robots_downloads(crawler)
        return cls(crawler, session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Check the request; raises an exception to refuse it."""
        url = normalize_url(request.url)
        if state_of(request).purpose == ROBOTS or url is None:
            return
        if is_leased(request, self._session):
            allowed = self._session.crawl_of(url).robots.may_fetch(url, self._session.now())
            if allowed is None:
                raise FetchPostponed(f"the rules of {url} have just run out")
        else:
            allowed = await self._allowed(url, request.url)
        if not allowed:
            raise RobotsDeniedError(f"robots.txt of {url} disallows it or cannot be reached")

    async def _allowed(self, url: str, sent: str) -> bool:
        """Whether the rules allow the URL as ``sent``; fetches them if they are unknown."""
        crawl, site = self._session.crawl_of(url), robots_url(url)
        allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        shared = False
        while allowed is None and (site in self._asked or crawl.robots.is_fetching(site)):
            shared = True
            await sleep(POLL_INTERVAL_S)
            allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        if allowed is None and not shared:
            self._asked.add(site)
            try:
                outcome = await self._fetch_rules(crawl, site)
            finally:
                self._asked.discard(site)
            parsed = await self._session.parse_robots(outcome)
            crawl.record_robots(url, outcome, self._session.now(), parsed)
            self._session.wake()
            allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        return bool(allowed)

    async def _fetch_rules(self, crawl: Crawl, url: str) -> Outcome:
        state = RequestState(purpose=ROBOTS, rules_of=host_of(url))
        for _ in range(MAX_REDIRECTS + 1):
            request = robots_request(url, state)
            try:
                response = await self._crawler.engine.download_async(request)
            except Exception as error:  # the outcome tells what failed
                if isinstance(error, IgnoreRequest) and not isinstance(error, PrivateAddressError):
                    raise  # not sent: nothing is known about the host
                return await outcome_from_exception(request, error)
            outcome = outcome_from_scrapy_response(
                request, response, self._session.now(), self._session.now.real_s
            )
            if not isinstance(outcome, Redirected):
                return outcome
            crawl.robots.record(outcome, self._session.now())
            url = outcome.target
        return Failed(url, FailureKind.BAD_REDIRECT, detail="too many redirects")


class PolitenessMiddleware:
    """Delays requests that bypass the frontier until their host and address are due.

    The scheduler returns only requests that are due. A request from elsewhere (a pipeline, an
    extension, another middleware) waits until no other request is pending at its host and address;
    then the frontier skips both until it ends. Its outcome counts for the host like that of a page:
    delay, Retry-After, back-off. Requests to a suspended host are refused.
    """

    def __init__(self, session: CrawlSession) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PolitenessMiddleware:
        """Create with the crawler's session."""
        return cls(session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Wait until the host is due; record when the request is sent."""
        url = normalize_url(request.url)
        update_state(request, direct_request=None)
        if url is not None and not is_leased(request, self._session):
            direct_request = self._session.crawl_of(url).direct_requests.add(
                url, self._session.now(), state_of(request).page_lease
            )
            try:
                await wait_for_turn(self._session, direct_request)
            except BaseException:
                self._over(direct_request, None)
                raise
            update_state(request, direct_request=direct_request)
            # If a middleware replaces the request, no other method is called.
            finalize(request, self._over, direct_request, None)
        update_state(request, sent_at=self._session.now())

    async def process_response(self, request: Request, response: Response) -> Response:
        """Release the host and record the response."""
        direct_request = _take_direct_request(request)
        if direct_request is not None:
            outcome = outcome_from_scrapy_response(
                request, response, self._session.now(), self._session.now.real_s
            )
            self._over(direct_request, self._reported_outcome(request, direct_request, outcome))
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Release the host and record the failure."""
        direct_request = _take_direct_request(request)
        if direct_request is None:
            return
        outcome: Outcome | None = None
        # A request that a middleware dropped did not reach the host.
        if not isinstance(exception, IgnoreRequest) or isinstance(exception, PrivateAddressError):
            outcome = await outcome_from_exception(request, exception)
        self._over(direct_request, self._reported_outcome(request, direct_request, outcome))

    @staticmethod
    def _reported_outcome(
        request: Request, direct_request: DirectRequest, outcome: Outcome | None
    ) -> Outcome | None:
        """Return the outcome to record; None for robots.txt, which is recorded elsewhere."""
        if state_of(request).rules_of != direct_request.host.name or isinstance(
            outcome, Redirected
        ):
            return outcome
        return None

    def _over(self, direct_request: DirectRequest, outcome: Outcome | None) -> None:
        if self._session.is_open and not direct_request.over:
            crawl = self._session.crawl_of(direct_request.url)
            crawl.direct_requests.finish(direct_request, outcome, self._session.now())
            self._session.wake()


async def wait_for_turn(session: CrawlSession, direct_request: DirectRequest) -> None:
    """Wait until host and address are due, then reserve them.

    Raises IgnoreRequest for long waits, which would occupy a slot of the engine.
    """
    direct_requests = session.crawl_of(direct_request.url).direct_requests
    host = direct_request.host
    # Limited: a request that another request to the same host waits for would deadlock.
    real_s = session.now.real_s
    began_at = session.now()
    while (wait_s := direct_requests.wait_s(direct_request, session.now())) > 0:
        if host.pace.is_suspended:
            raise IgnoreRequest(f"{host.name} is suspended for {wait_s:.0f} s")
        if real_s(session.now() - began_at + wait_s) > _MAX_WAIT_S:
            raise IgnoreRequest(f"{host.name} must not be requested for {wait_s:.0f} s")
        await sleep(real_s(wait_s))
    direct_requests.mark_sent(direct_request, session.now())


async def claim_address(session: CrawlSession, request: Request, address: str) -> None:
    """Reserve ``address`` for the request that is about to be sent.

    Raises FetchPostponed for a request of the frontier that must be queued again.
    """
    state = state_of(request)
    url, direct_request = normalize_url(request.url), state.direct_request
    if url is None:
        return
    lease = state.lease if direct_request is None else direct_request.page_lease
    direct_requests = session.crawl_of(url).direct_requests
    if direct_request is not None:
        direct_requests.hold_back(direct_request)
    if session.group.may_connect(lease, url, address, session.now()):
        if direct_request is not None:
            direct_requests.mark_sent(direct_request, session.now())
    elif direct_request is None:
        raise FetchPostponed(f"{address} must not be requested yet")
    else:
        await wait_for_turn(session, direct_request)


def _take_direct_request(request: Request) -> DirectRequest | None:
    """Remove the direct request from the request's state and return it."""
    direct_request = state_of(request).direct_request
    if direct_request is not None:
        update_state(request, direct_request=None)
    return direct_request


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
            if not self._private and is_local_name(host):
                raise PrivateAddressError(f"{host} is a name of local networks")
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
