"""What a spider of one's own gets: relevance in its items, scores for its requests.

Items of pages that ask not to be indexed are no harvest: they end here, as
items that a pipeline drops do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import Response

from focused.crawl.steps import Settled
from focused.scrapy_addon.own_requests import FOUND_AS, FOUND_ON
from focused.scrapy_addon.settling import SETTLED
from focused.web.url import normalise

RELEVANCE_FIELD = "relevance"


class NotToBeIndexed(DropItem):
    """The item's page asks not to be indexed, and ``politeness.noindex`` leaves such pages out."""


class RelevanceMiddleware:
    """Spider middleware between a callback's output and scheduler and pipelines."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RelevanceMiddleware:
        """Build on the crawler, whose signals and counts it uses."""
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Tell requests on which page they were found, and items how relevant it is.

        Items of a page that is left out are dropped.
        """
        settled: Settled | None = response.meta.get(SETTLED)
        async for output in result:
            if settled is not None:
                if isinstance(output, Request):
                    _tell_request(output, settled)
                elif settled.left_out:
                    await self._drop(output, response)
                    continue
                else:
                    _tell_item(output, settled)
            yield output

    async def _drop(self, item: Any, response: Response) -> None:
        """As Scrapy does with what a pipeline drops; its extensions count that."""
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            exception=NotToBeIndexed(f"{response.url} asks not to be indexed"),
            spider=self._crawler.spider,
        )


def _tell_request(request: Request, settled: Settled) -> None:
    request.meta[FOUND_ON] = settled
    request.meta[FOUND_AS] = settled.scored.get(normalise(request.url) or "")


def _tell_item(item: Any, settled: Settled) -> None:
    if settled.judgement is None:
        return
    adapter = ItemAdapter(item)
    free = isinstance(item, dict) or RELEVANCE_FIELD in adapter.field_names()
    if free and adapter.get(RELEVANCE_FIELD) is None:
        adapter[RELEVANCE_FIELD] = settled.judgement.relevance
