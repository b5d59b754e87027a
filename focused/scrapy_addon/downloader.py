"""The downloader: the one way of all requests.

Every request passes Scrapy's downloader middlewares. Inside of them, directly before the download
handler, the crawl checks robots.txt, the turn of host and address, and the address; outside of
them it settles the lease with what came. So pages, robots.txt files, a spider's own requests and
media requests meet the same checks, and each lease is settled exactly once, whatever a middleware
or handler does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.log import logformatter_adapter
from twisted.internet.defer import Deferred

from focused.crawl import SettledFetch
from focused.crawl.leases import DirectRequest
from focused.durations import Clock
from focused.scrapy_addon.access_checks import AddressCheck, HostTurns, RobotsCheck
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.download_handlers import ListenedSignals
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    outcome_from_exception,
    outcome_from_scrapy_response,
    shown_response,
)
from focused.scrapy_addon.page_processing import PageProcessor
from focused.scrapy_addon.request_state import state_of, update_state
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Redirected
from focused.web.urls import normalize_url

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler


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


logger = logging.getLogger(__name__)


class RequestGate(Protocol):
    """Holds requests back before they are sent, and judges their responses."""

    async def before(self, request: Request, *, is_leased: bool) -> None:
        """Return when the request may be sent, after the check of robots.txt.

        Raises FetchPostponed to queue a leased one again, IgnoreRequest to end it.
        """

    def after(self, request: Request, response: Response, *, is_leased: bool) -> None:
        """Raise likewise for a decoded response that must not be used."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request passes before it is sent."""

    robots: RobotsCheck
    turns: HostTurns
    addresses: AddressCheck
    gates: Sequence[RequestGate] = ()


class CrawlDownloader(Downloader):
    """Scrapy's downloader with the crawl's checks, which settles every lease."""

    def __init__(
        self,
        crawler: Crawler,
        topic: Topic,
        slot: CrawlSlot,
        clock: Clock,
        access: Access,
        pages: PageProcessor,
        *,
        follow_links: bool,
    ) -> None:
        """With ``follow_links`` the spider's ``wants_page`` chooses what it receives."""
        super().__init__(crawler)
        self.signals = ListenedSignals(crawler)  # of each download
        self._topic = topic
        self._slot = slot
        self._clock = clock
        self._access = access
        self._pages = pages
        self._follow_links = follow_links

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download a request in one task, where Scrapy uses three."""
        # Now: the engine counts active requests before it asks for more.
        self.active.add(request)
        lease = state_of(request).lease if self._slot.has_leased(request) else None
        if lease is None and state_of(request).settled is not None:
            update_state(request, settled=None, left_out=False, relevance=None)  # of a copied meta
        download = self._download_and_settle(request)
        fetched: Deferred[Any] = Deferred.fromFuture(asyncio.ensure_future(download))
        return fetched.addBoth(self._ended, request, lease)

    def _ended(self, result: Any, request: Request, lease: int | None) -> Any:
        """Remove the request only when the engine continues: before, the crawl would look idle."""
        self.active.remove(request)
        if lease is not None and self._slot.is_leased(lease):
            detail = "cancelled, or changed in place by a middleware"
            self._pages.settle(lease, Failed(request.url, FailureKind.DROPPED, detail=detail))
        return result

    async def _download_and_settle(self, request: Request) -> Response | Request:
        refused = state_of(request).refused
        if refused is not None:
            update_state(request, refused=None)
            raise refused
        try:
            result = await self.middleware.download_async(self._transfer, request)
            if isinstance(result, Request):
                self._settle_replaced(request)
                return result
            if self._access.gates:
                is_leased = self._slot.has_leased(request)
                for gate in self._access.gates:
                    gate.after(request, result, is_leased=is_leased)
            return await self._settle_response(request, result)
        except Exception as error:
            return await self._settle_exception(request, error)

    async def _transfer(self, request: Request) -> Response:
        """Send a request when it may be sent; raises the exceptions of checks and handlers."""
        url, is_leased = normalize_url(request.url), self._slot.has_leased(request)
        if url is not None:
            await self._access.robots.check(request, url, is_leased=is_leased)
        for gate in self._access.gates:
            await gate.before(request, is_leased=is_leased)
        if url is None or is_leased:
            return await self._send(request)
        return await self._access.turns.send_in_turn(request, url, self._send)

    async def _send(
        self, request: Request, direct_request: DirectRequest | None = None
    ) -> Response:
        """Send a request whose turn it is."""
        access, url = self._access, normalize_url(request.url)
        address = await access.addresses.find(request, url)
        if address is not None and url is not None:
            await access.turns.claim_address(request, url, address, direct_request)
        # robots.txt was read for this user agent, whatever others set.
        request.headers["User-Agent"] = self._topic.politeness.user_agent
        update_state(
            request,
            sent_at=self._clock(),
            checked_address=address,
            was_looked_up=address is not None,
        )
        try:
            return await self._enqueue_request(request)
        except Exception as error:
            access.addresses.failed(request, address, error)
            raise

    async def _enqueue_request(self, request: Request) -> Response:
        """Skip Scrapy's queue if the slot is idle and has no delay, the common case."""
        key, slot = self._get_slot(request)
        if slot.active or slot.queue or slot.latercall or slot.delay:
            return await super()._enqueue_request(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self.signals.send_catch_log(
            signal=signals.request_reached_downloader, request=request, spider=self.crawler.spider
        )
        slot.lastseen = monotonic()
        try:
            return await self._download(slot, request)
        finally:
            slot.active.remove(request)

    async def _settle_response(self, request: Request, response: Response) -> Response | Request:
        """Settle with the response; return what the spider should receive.

        A request is returned where there is nothing to receive: it ends without callback and
        errback. Raises IgnoreRequest for the errback of a spider's own request.
        """
        lease, is_own = state_of(request).lease, not state_of(request).is_plain
        if lease is None or not self._slot.has_leased(request):
            return response
        outcome = outcome_from_scrapy_response(request, response, self._clock(), self._clock.real_s)
        if is_own and isinstance(outcome, Redirected) and request.method != "GET":
            from focused.scrapy_addon.spider_requests import becomes_get, redirected

            if becomes_get(request, outcome.status):
                self._settle_replaced(request, "redirected, and requested by GET")
                return redirected(request, outcome.target, outcome.status)
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
        wants = self._wants()
        if wants is not None and not is_own and not wants(settled):
            self._pass_over(request, response)
            return _ended(request)
        return shown_response(response, settled)

    async def _settle_exception(self, request: Request, exception: Exception) -> Request:
        """Settle a request without a response; raise what its errback should receive."""
        lease = state_of(request).lease
        if lease is None or not self._slot.has_leased(request):
            raise exception
        if isinstance(exception, FetchPostponed):
            # Not sent: the frontier queues it again.
            self._slot.crawl.put_back(lease, self._clock())
            return _ended(request)
        outcome = await outcome_from_exception(request, exception)
        if not self._slot.is_leased(lease):
            raise exception
        settled = self._pages.settle(lease, outcome)
        if settled is not None and settled.will_retry:
            return _ended(request)
        # Counted and archived; without an errback nobody else handles it.
        if request.errback is None and not isinstance(exception, IgnoreRequest):
            raise IgnoreRequest(str(exception)) from exception
        raise exception

    def _settle_replaced(self, request: Request, why: str = "replaced by a middleware") -> None:
        """Settle a request that another one replaces."""
        lease = state_of(request).lease
        if lease is not None and self._slot.has_leased(request):
            self._pages.settle(lease, Failed(request.url, FailureKind.DROPPED, detail=why))

    def _wants(self) -> Callable[[SettledFetch], bool] | None:
        """Return what tells of the crawl's own pages which the spider wants; None: all."""
        spider: Any = self.crawler.spider
        # Of the class itself: a subclass may use other pages.
        if not self._follow_links or "wants_page" not in vars(type(spider)):
            return None
        wants: Callable[[SettledFetch], bool] = spider.wants_page
        return wants

    def _pass_over(self, request: Request, response: Response) -> None:
        """Log and signal a page that does not go to the spider, as the engine does for others."""
        crawler = self.crawler
        assert crawler.spider is not None, "the crawl runs"
        response.request = request
        line = crawler.logformatter.crawled(request, response, crawler.spider)
        if line is not None:
            logger.log(*logformatter_adapter(line), extra={"spider": crawler.spider})
        self.signals.send_catch_log(
            signals.response_received, response=response, request=request, spider=crawler.spider
        )
