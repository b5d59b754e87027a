"""Delays requests that bypass the frontier until their host and address are due.

The scheduler returns only requests that are due. A request from elsewhere (a pipeline, an
extension, another middleware) waits until no other request is pending at its host and address; then
the frontier skips both until it ends. Its outcome counts for the host like that of a page: delay,
Retry-After, back-off. Requests to a suspended host are refused.
"""

from __future__ import annotations

from weakref import finalize

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import sleep

from focused.crawl.leases import DirectRequest
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.name_resolver import PrivateAddressError
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    outcome_from_exception,
    outcome_from_scrapy_response,
)
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.scheduler import is_leased
from focused.web.page import Outcome, Redirected
from focused.web.urls import normalize_url

_MAX_WAIT_S = 300.0


class PolitenessMiddleware:
    """Delays requests that bypass the frontier."""

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
        if url is not None and not is_leased(request, self._session.crawl):
            direct_request = self._session.crawl.direct_requests.add(url, self._session.now())
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
            self._session.crawl.direct_requests.finish(direct_request, outcome, self._session.now())
            self._session.wake()


async def wait_for_turn(session: CrawlSession, direct_request: DirectRequest) -> None:
    """Wait until host and address are due, then reserve them.

    Raises IgnoreRequest for long waits, which would occupy a slot of the engine.
    """
    direct_requests, host = session.crawl.direct_requests, direct_request.host
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
    lease = state.lease if direct_request is None else None
    if direct_request is not None:
        session.crawl.direct_requests.hold_back(direct_request)
    if session.crawl.may_connect(lease, url, address, session.now()):
        if direct_request is not None:
            session.crawl.direct_requests.mark_sent(direct_request, session.now())
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
