"""The item pipeline that sends items to a search server while the crawl runs.

``FOCUSED_INDEX_URL`` turns it on. Items wait until there are enough for a request, which a thread
sends while the crawl goes on. What the server refuses or misses is counted and logged, and never
stops a crawl: ``focused index`` sends it later under the same ids.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from itemadapter.adapter import ItemAdapter
from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from focused.errors import ConfigurationError, SearchError
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.run_status import RunStatus
from focused.scrapy_addon.statistics import StatisticsPublisher
from focused.search.search_servers import (
    Document,
    SearchServer,
    ServerAddress,
    connect,
    document_of_item,
)

logger = logging.getLogger(__name__)

INDEXED_FIELDS = ("text", "published", "modified", "authors", "licences", "robots")
"""The item fields of the topic spider, unless FOCUSED_ITEM_FIELDS names others."""

_BATCH_ITEMS = 100
_MAX_WAITING = 1_000
_INTERVAL_S = 5.0


class IndexPipeline:
    """Sends items that have a ``url``, in batches, one request at a time."""

    def __init__(
        self, server: SearchServer, name: str, status: RunStatus, statistics: StatisticsPublisher
    ) -> None:
        """``name`` is that of the server."""
        self._server = server
        self._name = name
        self._status = status
        self._statistics = statistics
        self._waiting: list[Document] = []
        self._sending: asyncio.Task[None] | None = None
        self._is_prepared = False
        self._timer = create_looping_call(self._start_sending)

    @classmethod
    def of_driver(cls, address: ServerAddress, driver: Driver) -> IndexPipeline:
        """Create and connect."""
        pipeline = cls(connect(address), str(address), driver.status, driver.statistics)
        driver.crawler.signals.connect(pipeline.opened, signals.spider_opened)
        return pipeline

    async def opened(self) -> None:
        """Check the connection; a server that does not answer stops the crawl."""
        try:
            await asyncio.to_thread(self._server.prepare)
        except SearchError as error:
            self._status.fail(ConfigurationError(f"FOCUSED_INDEX_URL: {error}"))
            return
        self._is_prepared = True
        self._timer.start(_INTERVAL_S, now=False)

    async def process_item(self, item: Any) -> Any:
        """Queue the item; wait while too many are queued."""
        try:
            document = document_of_item(ItemAdapter(item).asdict(), time.time())
        except (TypeError, ValueError) as error:
            logger.warning("an item cannot be indexed: %s", error)
            self._count("index_failures", 1)
            return item
        if document is not None:
            self._waiting.append(document)
            if len(self._waiting) >= _BATCH_ITEMS:
                self._start_sending()
            while len(self._waiting) >= _MAX_WAITING and self._sending is not None:
                await asyncio.shield(self._sending)
                self._start_sending()
        return item

    async def close_spider(self) -> None:
        """Send what waits, and close the connections."""
        if self._timer.running:
            self._timer.stop()
        if self._is_prepared:
            self._start_sending()
            while self._sending is not None:
                await self._sending
                self._start_sending()
            try:
                await asyncio.to_thread(self._server.refresh)
            except SearchError as error:
                logger.error("%s", error)
        self._server.close()

    def _start_sending(self) -> None:
        """Send the next batch, unless one is on its way."""
        if self._sending is not None and not self._sending.done():
            return
        self._sending = None
        if self._waiting and self._is_prepared:
            batch = self._waiting[:_BATCH_ITEMS]
            del self._waiting[: len(batch)]
            self._sending = asyncio.ensure_future(self._send(batch))

    async def _send(self, batch: list[Document]) -> None:
        failed = 0
        try:
            rejected = await asyncio.to_thread(self._server.send, batch)
        except Exception as error:  # a value that no client can write as JSON, for instance
            failed = len(batch)
            logger.error("%d items were not indexed: %s", failed, error)
        else:
            failed = len(rejected)
            for each in rejected:
                logger.warning("%s refused the item %s: %s", self._name, each.id, each.reason)
        self._count("indexed", len(batch) - failed)
        self._count("index_failures", failed)

    def _count(self, name: str, items: int) -> None:
        if items:
            self._statistics.count(name, items)
