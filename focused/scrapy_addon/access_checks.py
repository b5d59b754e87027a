"""What each request passes before it is sent: robots.txt, the turn of its host, its address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import sleep

from focused.crawl import ROBOTS, Crawl
from focused.crawl.hosts.robots_cache import MAX_REDIRECTS
from focused.crawl.leases import POLL_INTERVAL_S, DirectRequest
from focused.durations import Clock
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.name_resolver import (
    NameResolver,
    PrivateAddressError,
    allowed_addresses,
)
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    RobotsDeniedError,
    failure_kind_of,
    outcome_from_exception,
    outcome_from_scrapy_response,
)
from focused.scrapy_addon.request_state import RequestState, state_of
from focused.scrapy_addon.robots_request import robots_request
from focused.web.host_names import is_local_name, is_private_host
from focused.web.page import Failed, FailureKind, Outcome, Redirected
from focused.web.robots.robots_rules import RobotsFile
from focused.web.urls import host_of, robots_url

_MAX_WAIT_S = 300.0
_CONNECTION_FAILURES = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})
_SCHEMES = frozenset({"http", "https", "data"})  # data: URLs contain their content

ParseRobots = Callable[[Outcome], Awaitable[RobotsFile | Failed | None]]


class RobotsCheck:
    """Refuses requests that robots.txt disallows (RFC 9309).

    The crawl fetches robots.txt before it leases a host's first page. Every request is checked
    again when it is sent; robots.txt is fetched for requests that bypass the frontier.
    """

    def __init__(
        self,
        slot: CrawlSlot,
        clock: Clock,
        download: Callable[[Request], Awaitable[Response]],
        parse: ParseRobots,
        wake: Callable[[], object],
    ) -> None:
        """``download`` fetches a robots.txt, ``parse`` parses a long one elsewhere.

        ``wake`` is called when rules came that links may wait for.
        """
        self._slot = slot
        self._clock = clock
        self._download = download
        self._parse = parse
        self._wake = wake
        self._asked: set[str] = set()

    async def check(self, request: Request, url: str, *, is_leased: bool) -> None:
        """Check a request with the normalised ``url``.

        Raises RobotsDeniedError, and FetchPostponed for a link whose rules have just run out.
        """
        if state_of(request).purpose == ROBOTS:
            return
        if is_leased:
            allowed = self._slot.crawl.hosts.robots.may_fetch(url, self._clock())
            if allowed is None:
                raise FetchPostponed(f"the rules of {url} have just run out")
        else:
            allowed = await self._allowed(url, request.url)
        if not allowed:
            raise RobotsDeniedError(f"robots.txt of {url} disallows it or cannot be reached")

    async def _allowed(self, url: str, sent: str) -> bool:
        """Whether the rules allow the URL as ``sent``; fetches them if they are unknown."""
        crawl, site = self._slot.crawl, robots_url(url)
        allowed = crawl.hosts.robots.may_fetch(url, self._clock(), sent)
        shared = False
        while allowed is None and (site in self._asked or crawl.hosts.robots.is_fetching(site)):
            shared = True
            await sleep(POLL_INTERVAL_S)
            allowed = crawl.hosts.robots.may_fetch(url, self._clock(), sent)
        if allowed is None and not shared:
            self._asked.add(site)
            try:
                outcome = await self._fetch_rules(crawl, site)
            finally:
                self._asked.discard(site)
            parsed = await self._parse(outcome)
            crawl.record_robots(url, outcome, self._clock(), parsed)
            self._wake()
            allowed = crawl.hosts.robots.may_fetch(url, self._clock(), sent)
        return bool(allowed)

    async def _fetch_rules(self, crawl: Crawl, url: str) -> Outcome:
        state = RequestState(purpose=ROBOTS, rules_of=host_of(url))
        for _ in range(MAX_REDIRECTS + 1):
            request = robots_request(url, state)
            try:
                response = await self._download(request)
            except Exception as error:  # the outcome tells what failed
                if isinstance(error, IgnoreRequest) and not isinstance(error, PrivateAddressError):
                    raise  # not sent: nothing is known about the host
                return await outcome_from_exception(request, error)
            outcome = outcome_from_scrapy_response(
                request, response, self._clock(), self._clock.real_s
            )
            if not isinstance(outcome, Redirected):
                return outcome
            crawl.hosts.robots.record(outcome, self._clock())
            url = outcome.target
        return Failed(url, FailureKind.BAD_REDIRECT, detail="too many redirects")


Send = Callable[[Request, DirectRequest | None], Awaitable[Response]]
"""Sends a request, with its direct request if it has no lease."""


class HostTurns:
    """Lets requests that bypass the frontier wait until host and address are due.

    The scheduler returns only requests that are due. A request from elsewhere (a pipeline, an
    extension, a callback) waits until no other request is pending at its host and address; then the
    frontier skips both until it ends. Its outcome counts for the host like that of a page: delay,
    Retry-After, back-off. Requests to a suspended host are refused.
    """

    def __init__(self, slot: CrawlSlot, clock: Clock, wake: Callable[[], object]) -> None:
        """``wake`` is called when a host is free again."""
        self._slot = slot
        self._clock = clock
        self._wake = wake

    async def send_in_turn(self, request: Request, url: str, send: Send) -> Response:
        """Send a request to the normalised ``url`` in its host's turn; record the outcome.

        Raises the exceptions of ``send``, and IgnoreRequest for a turn that is too far away.
        """
        direct_requests = self._slot.crawl.hosts.direct_requests
        direct_request = direct_requests.add(url, self._clock(), state_of(request).page_lease)
        outcome: Outcome | None = None
        try:
            await self._wait(direct_request)
            response = await send(request, direct_request)
            outcome = outcome_from_scrapy_response(
                request, response, self._clock(), self._clock.real_s
            )
            return response
        except Exception as error:
            # A request that was dropped did not reach the host.
            if not isinstance(error, IgnoreRequest) or isinstance(error, PrivateAddressError):
                outcome = await outcome_from_exception(request, error)
            raise
        finally:
            is_rules = state_of(request).rules_of == direct_request.host.name
            if is_rules and not isinstance(outcome, Redirected):
                outcome = None  # robots.txt is recorded elsewhere
            self._finish(direct_request, outcome)

    async def claim_address(
        self, request: Request, url: str, address: str, direct_request: DirectRequest | None
    ) -> None:
        """Reserve ``address`` for the request that is about to be sent.

        Raises FetchPostponed for a request of the frontier that must be queued again.
        """
        lease = state_of(request).lease if direct_request is None else direct_request.page_lease
        direct_requests = self._slot.crawl.hosts.direct_requests
        if direct_request is not None:
            direct_requests.hold_back(direct_request)
        if self._slot.run.may_connect(lease, url, address, self._clock()):
            if direct_request is not None:
                direct_requests.mark_sent(direct_request, self._clock())
        elif direct_request is None:
            raise FetchPostponed(f"{address} must not be requested yet")
        else:
            await self._wait(direct_request)

    async def _wait(self, direct_request: DirectRequest) -> None:
        """Wait until host and address are due, then reserve them.

        Raises IgnoreRequest for long waits, which would occupy a slot of the engine.
        """
        direct_requests = self._slot.crawl.hosts.direct_requests
        host = direct_request.host
        # Limited: a request that another request to the same host waits for would deadlock.
        real_s = self._clock.real_s
        began_at = self._clock()
        while (wait_s := direct_requests.wait_s(direct_request, self._clock())) > 0:
            if host.pace.is_suspended:
                raise IgnoreRequest(f"{host.name} is suspended for {wait_s:.0f} s")
            if real_s(self._clock() - began_at + wait_s) > _MAX_WAIT_S:
                raise IgnoreRequest(f"{host.name} must not be requested for {wait_s:.0f} s")
            await sleep(real_s(wait_s))
        direct_requests.mark_sent(direct_request, self._clock())

    def _finish(self, direct_request: DirectRequest, outcome: Outcome | None) -> None:
        if self._slot.is_open:
            crawl = self._slot.crawl
            crawl.hosts.direct_requests.finish(direct_request, outcome, self._clock())
            self._wake()


class AddressCheck:
    """Resolves the hosts of requests, and refuses private addresses.

    DNS failures are reported as such, and their time does not count for the host.
    """

    def __init__(
        self, make_resolver: Callable[[], NameResolver], *, private: bool, resolves: bool
    ) -> None:
        """``make_resolver`` returns the resolver, in a running event loop.

        ``private`` admits private addresses; without ``resolves`` nothing is resolved or refused,
        because all requests go to a replay server.
        """
        self._make_resolver = make_resolver
        self._private = private
        self._resolves = resolves
        self._resolver: NameResolver | None = None

    async def find(self, request: Request, url: str | None) -> str | None:
        """Return the address that a request may be sent to; None if others resolve the host.

        ``url`` is the request's normalised URL, None if it has none. Raises IgnoreRequest and
        PrivateAddressError to refuse it, and the exceptions of the resolver.
        """
        parts = urlsplit(request.url)
        if parts.scheme not in _SCHEMES:
            raise IgnoreRequest(f"{request.url[:200]}: only http and https are supported")
        if parts.scheme != "data" and url is None:
            # Robots rules and delays apply to the normalised URL.
            raise IgnoreRequest(f"{request.url[:200]}: not a URL that can be crawled")
        host = parts.hostname
        if not host or parts.scheme == "data" or not self._resolves:
            return None
        if not self._private and is_private_host(host):
            raise PrivateAddressError(f"{host} is a private address")
        if request.meta.get("proxy"):
            if not self._private and is_local_name(host):
                raise PrivateAddressError(f"{host} is a name of local networks")
            return None
        answer = await self._get_resolver().resolve(host)
        return allowed_addresses(host, answer, private=self._private)[0]

    def failed(self, request: Request, address: str | None, error: Exception) -> None:
        """After a failed connection, try the host's other addresses first."""
        host = urlsplit(request.url).hostname
        if address and host and failure_kind_of(error) in _CONNECTION_FAILURES:
            self._get_resolver().deprioritize(host, address)

    def _get_resolver(self) -> NameResolver:
        if self._resolver is None:
            self._resolver = self._make_resolver()
        return self._resolver
