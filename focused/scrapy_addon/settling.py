"""Settle leases: each exactly once, with the response or failure of its request."""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from focused.crawl import SettledFetch
from focused.scrapy_addon.crawl_clock import Clock
from focused.scrapy_addon.open_crawls import OpenCrawls
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    outcome_from_exception,
    outcome_from_scrapy_response,
    shown_response,
)
from focused.scrapy_addon.page_processing import PageProcessor
from focused.scrapy_addon.request_state import state_of, update_state
from focused.web.page import Failed, FailureKind, Redirected

Wants = Callable[[SettledFetch], bool]


class Settler:
    """Settles what a download brought, and decides what the spider receives."""

    def __init__(
        self,
        crawls: OpenCrawls,
        clock: Clock,
        pages: PageProcessor,
        *,
        passed_over: Callable[[Request, Response], object],
    ) -> None:
        """``passed_over`` is called for pages that the spider does not want."""
        self._crawls = crawls
        self._clock = clock
        self._pages = pages
        self._passed_over = passed_over

    async def response(
        self, request: Request, response: Response, wants: Wants | None
    ) -> Response | Request:
        """Settle with the response; return what the spider should receive.

        ``wants`` tells of the crawl's own pages which the spider wants; None: all. A request is
        returned where there is nothing to receive: it ends without callback and errback. Raises
        IgnoreRequest for the errback of a spider's own request.
        """
        lease, is_own = state_of(request).lease, not state_of(request).is_plain
        if lease is None or not self._crawls.is_leased(lease):
            return response
        outcome = outcome_from_scrapy_response(request, response, self._clock(), self._clock.real_s)
        settled = await self._pages.parse_and_settle(lease, outcome)
        if settled is None:
            return _ended(request)
        if is_own:
            _refuse(request, outcome, settled)
        # Those that are queued again have no page.
        if settled.will_retry or settled.outcome == "redirected":
            return _ended(request)
        if not is_own and (settled.page is None or settled.duplicate_of is not None):
            return _ended(request)
        relevance = None if settled.classification is None else settled.classification.relevance
        update_state(request, settled=settled, left_out=settled.is_noindex, relevance=relevance)
        if wants is not None and not is_own and not wants(settled):
            self._passed_over(request, response)
            return _ended(request)
        return shown_response(response, settled)

    async def exception(self, request: Request, exception: Exception) -> Request:
        """Settle a request without a response; raise what its errback should receive."""
        lease = state_of(request).lease
        if lease is None or not self._crawls.is_leased(lease):
            raise exception
        if isinstance(exception, FetchPostponed):
            # Not sent: the frontier queues it again.
            self._crawls.group.put_back(lease, self._clock())
            return _ended(request)
        outcome = await outcome_from_exception(request, exception)
        if not self._crawls.is_leased(lease):
            raise exception
        settled = self._pages.settle(lease, outcome)
        if settled is not None and settled.will_retry:
            return _ended(request)
        # Counted and archived; without an errback nobody else handles it.
        if request.errback is None and not isinstance(exception, IgnoreRequest):
            raise IgnoreRequest(str(exception)) from exception
        raise exception

    def replaced(self, request: Request) -> None:
        """Settle a request that a middleware replaced with another one."""
        lease = state_of(request).lease
        if lease is not None and self._crawls.is_leased(lease):
            dropped = Failed(request.url, FailureKind.DROPPED, detail="replaced by a middleware")
            self._pages.settle(lease, dropped)


def _refuse(request: Request, outcome: object, settled: SettledFetch) -> None:
    """Raise IgnoreRequest where a spider's own request ends without a response."""
    if isinstance(outcome, Redirected):
        if settled.redirect_refusal:
            raise IgnoreRequest(f"may not follow to {outcome.target}: {settled.redirect_refusal}")
        if settled.outcome != "redirected":
            raise IgnoreRequest(f"too many redirects, the last to {outcome.target}")
    elif settled.duplicate_of is not None and not settled.will_retry and not request.dont_filter:
        raise IgnoreRequest(f"the same content as {settled.duplicate_of}")


def _ended(request: Request) -> Request:
    """Mark the request as settled: the scheduler drops it."""
    update_state(request, is_handled=True)
    return request
