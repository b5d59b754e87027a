"""What the add-on asks of Scrapy's engine, private names included."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro


class EngineControl:
    """Wakes, closes and uses the engine of a crawler, once it exists."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def wake(self) -> None:
        """Let the engine ask the scheduler for requests in the next turn of the reactor."""
        # A private name of Scrapy: nothing public makes the engine call next_request before its
        # heartbeat of 5 s.
        slot = self._crawler.engine._slot
        if slot is not None:
            slot.nextcall.schedule()

    def close(self, reason: str) -> None:
        """Close the spider; requests in flight are awaited."""
        deferred_from_coro(self._crawler.engine.close_spider_async(reason=reason))

    @property
    def is_closing(self) -> bool:
        """Whether the spider is being closed."""
        # A private name of Scrapy: it sends no signal when it begins to close.
        slot = self._crawler.engine._slot
        return slot is None or slot.closing is not None

    async def download(self, request: Request) -> Response:
        """Download a request outside the frontier, in its host's turn.

        Raises the exceptions of downloads.
        """
        return await self._crawler.engine.download_async(request)
