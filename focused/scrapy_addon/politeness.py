"""Requests that bypass the frontier wait their turn at their host and its address all the same.

What the scheduler hands out is due already. A request from elsewhere (a
pipeline, an extension, another middleware) is held until its host may be asked
and nobody asks it, nor its address; until it is over the frontier leaves both
alone, and what it brought counts for the host as a page would: delay from its
end, Retry-After, back-off. So no path is impolite. To a host that is set aside
it is not sent at all.
"""

from __future__ import annotations

from weakref import finalize

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import sleep

from focused.crawl.visits import Visit
from focused.scrapy_addon.name_resolver import PrivateAddressError
from focused.scrapy_addon.outcomes import (
    TurnMissed,
    outcome_of_exception,
    outcome_of_response,
)
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.scheduler import is_leased
from focused.scrapy_addon.session import Session, session_of
from focused.web.page import Outcome, Redirected
from focused.web.url import normalise

_LONGEST_WAIT_S = 300.0


class PolitenessMiddleware:
    """Gives a turn to what did not come through the frontier."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PolitenessMiddleware:
        """Build on the crawler's session."""
        return cls(session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Hold the request until its host is due; note when it leaves."""
        url = normalise(request.url)
        update_state(request, visit=None)
        if url is not None and not is_leased(request, self._session.crawl):
            visit = self._session.crawl.visits.arrive(url, self._session.now())
            try:
                await take_turn(self._session, visit)
            except BaseException:
                self._over(visit, None)
                raise
            update_state(request, visit=visit)
            # A middleware that puts another request in its place leaves nobody to hear of its end.
            finalize(request, self._over, visit, None)
        update_state(request, sent_at=self._session.now())

    async def process_response(self, request: Request, response: Response) -> Response:
        """The request is over; its host hears what came."""
        visit = _end_visit(request)
        if visit is not None:
            outcome = outcome_of_response(request, response, self._session.now())
            self._over(visit, self._told(request, visit, outcome))
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """The request is over, in vain."""
        visit = _end_visit(request)
        if visit is None:
            return
        outcome: Outcome | None = None
        # What was dropped by a middleware did not reach the host.
        if not isinstance(exception, IgnoreRequest) or isinstance(exception, PrivateAddressError):
            outcome = await outcome_of_exception(request, exception)
        self._over(visit, self._told(request, visit, outcome))

    @staticmethod
    def _told(request: Request, visit: Visit, outcome: Outcome | None) -> Outcome | None:
        """What the visited host is to hear; None when it is told as its robots.txt."""
        if state_of(request).rules_of != visit.host.name or isinstance(outcome, Redirected):
            return outcome
        return None

    def _over(self, visit: Visit, outcome: Outcome | None) -> None:
        if self._session.is_open and not visit.over:
            self._session.crawl.visits.leave(visit, outcome, self._session.now())
            self._session.wake()


async def take_turn(session: Session, visit: Visit) -> None:
    """Wait until host and address may be asked; both are taken from then on.

    Raises IgnoreRequest where that would be long: held for hours it would hold
    one of the engine's few places.
    """
    visits, host = session.crawl.visits, visit.host
    # One that a request to the same host waits for would wait for that one for ever.
    until = session.now() + _LONGEST_WAIT_S
    while (wait_s := visits.wait_s(visit, session.now())) > 0:
        if host.pace.is_aside:
            raise IgnoreRequest(f"{host.name} only fails: not asked for {wait_s:.0f} s")
        if session.now() + wait_s > until:
            raise IgnoreRequest(f"{host.name} is not to be asked for {wait_s:.0f} s")
        await sleep(wait_s)
    visits.go(visit, session.now())


async def go_to(session: Session, request: Request, address: str) -> None:
    """The request is about to leave for ``address``, where no other host may be asked now.

    Raises TurnMissed for a fetch of the frontier that has to go back there.
    """
    state = state_of(request)
    url, visit = normalise(request.url), state.visit
    if url is None:
        return
    lease = state.lease if visit is None else None
    if visit is not None:
        session.crawl.visits.hold(visit)
    if session.crawl.may_leave(lease, url, address, session.now()):
        if visit is not None:
            session.crawl.visits.go(visit, session.now())
    elif visit is None:
        raise TurnMissed(f"{address} is not to be asked yet")
    else:
        await take_turn(session, visit)


def _end_visit(request: Request) -> Visit | None:
    """Return the request's visit and remove it from its state."""
    visit = state_of(request).visit
    if visit is not None:
        update_state(request, visit=None)
    return visit
