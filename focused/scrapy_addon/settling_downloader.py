"""The downloader: the straight way where it leads, all of Scrapy's middlewares elsewhere.

What fails in a middleware's ``process_response`` is told to no middleware's
``process_exception``: the downloader tells the settling, or the link's host
would be leased for ever.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

from focused.scrapy_addon.settling import SettlingMiddleware
from focused.scrapy_addon.straight_way import StraightWay, straight_way_for

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response


class SettlingDownloader(Downloader):
    """Scrapy's downloader, which tells the settling what broke on the way back."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._settling = SettlingMiddleware.from_crawler(crawler)
        self._looked = False
        self._straight: StraightWay | None = None

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download through all middlewares, as Scrapy's own does, in one task instead of three."""
        # At once: the engine counts what is under way before it asks for more.
        self.active.add(request)
        if is_asyncio_available():
            return Deferred.fromFuture(asyncio.ensure_future(self._told(request)))
        return Deferred.fromCoroutine(self._told(request))

    async def _told(self, request: Request) -> Response | Request:
        try:
            try:
                straight = self._straight_way()
                if straight is not None and straight.takes(request):
                    return await straight.fetch(request)
                return await self.middleware.download_async(self._enqueue_request, request)
            finally:
                self.active.remove(request)
        except Exception as error:
            instead = await self._settling.process_exception(request, error)
            if instead is None:
                raise
            return instead

    def _straight_way(self) -> StraightWay | None:
        if not self._looked:  # now that the spider is open: before, not all have spoken
            self._looked = True
            self._straight = straight_way_for(self)
        return self._straight

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
