"""The downloader: fetches directly if possible, else through Scrapy's middlewares.

Scrapy does not call ``process_exception`` for errors in another middleware's ``process_response``.
This downloader does so for the settling middleware; otherwise the link would stay leased.
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
    """Scrapy's downloader with direct fetches, which settles every failure."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._session = session_of(crawler)
        self._settling = SettlingMiddleware.from_crawler(crawler)
        self._is_direct_known = False
        self._direct: DirectFetcher | None = None

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download a request in one task, where Scrapy uses three."""
        # Now: the engine counts active requests before it asks for more.
        self.active.add(request)
        download: Coroutine[Any, Any, Response | Request] = self._download_or_settle(request)
        pages = current_callback_pages()
        if pages is not None and not is_leased(request, self._session.crawl):
            download = self._classify(request, download, pages)
        fetched: Deferred[Any] = Deferred.fromFuture(asyncio.ensure_future(download))
        return fetched.addBoth(self._ended, request)

    def _ended(self, result: Any, request: Request) -> Any:
        """Remove the request only when the engine continues: before, the crawl would look idle."""
        self.active.remove(request)
        return result

    async def _classify(
        self,
        request: Request,
        download: Coroutine[Any, Any, Response | Request],
        pages: CallbackPages,
    ) -> Response | Request:
        """Classify a page that a callback downloads itself, for its items."""
        update_state(request, settled=None, left_out=False, relevance=None)  # of a copied meta
        result = await download
        if isinstance(result, Request) or state_of(request).purpose is FetchPurpose.ROBOTS:
            return result
        now = self._session.now()
        read = await self._session.parse_and_classify(
            outcome_from_scrapy_response(request, result, now, self._session.now.real_s)
        )
        if read is not None:
            relevance, noindex = (
                read.classification.relevance,
                self._session.topic.politeness.noindex,
            )
            left_out = noindex == "leave-out" and read.page.is_noindex_at(now)
            update_state(request, relevance=relevance, left_out=left_out)
            pages.add((request.url, result.url), PageRelevance(relevance, left_out))
        return result

    async def _download_or_settle(self, request: Request) -> Response | Request:
        try:
            direct = self._direct_fetch()
            if direct is not None and direct.accepts(request):
                return await direct.fetch(request)
            result = await self.middleware.download_async(self._enqueue_request, request)
            if isinstance(result, Request):
                self._settling.replaced(request)
            return result
        except Exception as error:
            instead = await self._settling.process_exception(request, error)
            if instead is None:
                raise
            return instead

    def _direct_fetch(self) -> DirectFetcher | None:
        if not self._is_direct_known:  # after the spider was opened
            self._is_direct_known = True
            self._direct = DirectFetcher(self) if can_fetch_directly(self) else None
        return self._direct

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
