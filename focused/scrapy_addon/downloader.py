"""The downloader: direct fetches where they are possible, Scrapy's middlewares elsewhere.

Scrapy tells no middleware's ``process_exception`` what fails in another's ``process_response``;
this downloader tells the settling middleware, or the link's host would be leased for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.http import Request
from twisted.internet.defer import Deferred

from focused.crawl import FetchPurpose
from focused.scrapy_addon.crawl_session import session_of
from focused.scrapy_addon.direct_fetch import DirectFetcher, can_fetch_directly
from focused.scrapy_addon.middlewares.relevance_middleware import (
    CallbackPages,
    PageRelevance,
    current_callback_pages,
)
from focused.scrapy_addon.middlewares.settling_middleware import SettlingMiddleware
from focused.scrapy_addon.outcomes import outcome_from_scrapy_response
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.scheduler import is_leased

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class SettlingDownloader(Downloader):
    """Scrapy's downloader, which tells the settling what broke on the way back."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._session = session_of(crawler)
        self._settling = SettlingMiddleware.from_crawler(crawler)
        self._looked = False
        self._direct: DirectFetcher | None = None

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download through all middlewares, as Scrapy's own does, in one task instead of three."""
        # At once: the engine counts what is under way before it asks for more.
        self.active.add(request)
        told: Coroutine[Any, Any, Response | Request] = self._told(request)
        pages = current_callback_pages()
        if pages is not None and not is_leased(request, self._session.crawl):
            told = self._judged(request, told, pages)
        fetched: Deferred[Any] = Deferred.fromFuture(asyncio.ensure_future(told))
        return fetched.addBoth(self._ended, request)

    def _ended(self, result: Any, request: Request) -> Any:
        """Not before the engine goes on with the result: in between the crawl would look idle."""
        self.active.remove(request)
        return result

    async def _judged(
        self,
        request: Request,
        told: Coroutine[Any, Any, Response | Request],
        pages: CallbackPages,
    ) -> Response | Request:
        """What a callback downloads itself: if it is a page, its items get its relevance."""
        update_state(request, settled=None, left_out=False, relevance=None)  # of a copied meta
        came = await told
        if isinstance(came, Request) or state_of(request).purpose is FetchPurpose.ROBOTS:
            return came
        now = self._session.now()
        read = await self._session.parse_and_classify(
            outcome_from_scrapy_response(request, came, now)
        )
        if read is not None:
            relevance, noindex = (
                read.classification.relevance,
                self._session.topic.politeness.noindex,
            )
            left_out = noindex == "leave-out" and read.page.is_noindex_at(now)
            update_state(request, relevance=relevance, left_out=left_out)
            pages.add((request.url, came.url), PageRelevance(relevance, left_out))
        return came

    async def _told(self, request: Request) -> Response | Request:
        try:
            direct = self._direct_fetch()
            if direct is not None and direct.accepts(request):
                return await direct.fetch(request)
            came = await self.middleware.download_async(self._enqueue_request, request)
            if isinstance(came, Request):
                self._settling.replaced(request)
            return came
        except Exception as error:
            instead = await self._settling.process_exception(request, error)
            if instead is None:
                raise
            return instead

    def _direct_fetch(self) -> DirectFetcher | None:
        if not self._looked:  # now that the spider is open
            self._looked = True
            self._direct = DirectFetcher(self) if can_fetch_directly(self) else None
        return self._direct

    async def _enqueue_request(self, request: Request) -> Response:
        """Where nothing is to be waited for, as nearly always, download without Scrapy's queue."""
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
