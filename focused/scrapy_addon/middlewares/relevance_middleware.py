"""What a spider of one's own gets: relevance in its items, scores for its requests.

Items of pages that ask not to be indexed are no harvest: they end here, as
items that a pipeline drops do. A callback that downloads further pages itself
(``crawler.engine.download_async``) yields items of several pages: each item
gets the relevance of the page that it is of.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import Response

from focused.crawl.steps import SettledFetch
from focused.scrapy_addon.request_state import state_of, update_state
from focused.web.urls import normalise

RELEVANCE_FIELD = "relevance"


class NoindexPageError(DropItem):
    """The item's page asks not to be indexed, and ``politeness.noindex`` leaves such pages out."""


@dataclass(frozen=True, slots=True)
class PageRelevance:
    """What an item inherits from its page; ``relevance`` is None where the page was not judged."""

    relevance: float | None = None
    left_out: bool = False


class CallbackPages:
    """The pages that one call of a callback has: its response, and what it downloads itself."""

    def __init__(self, response: Response) -> None:
        settled = state_of(response).settled
        judged = None if settled is None else settled.classification
        self._own_url = response.url
        self._current = PageRelevance(
            None if judged is None else judged.relevance,
            settled is not None and settled.left_out,
        )
        self._by_url = {response.url: self._current}
        self._arrived: list[PageRelevance] = []

    def add(self, urls: Iterable[str], page: PageRelevance) -> None:
        """The callback downloaded a page that has these URLs."""
        self._by_url |= dict.fromkeys(urls, page)
        self._arrived.append(page)

    def page_of(self, item: ItemAdapter) -> PageRelevance:
        """The page that an item is of: the one whose URL it holds, else the one that came last.

        Where several came since the last item, at once, and the item names none, nobody knows.
        """
        if self._arrived:
            self._current = self._arrived[0] if len(self._arrived) == 1 else PageRelevance()
            self._arrived.clear()
        if len(self._by_url) == 1:
            return self._current
        texts = [value for value in item.values() if isinstance(value, str)]
        named = [url for url in (item.get("url"), *texts) if url in self._by_url]
        others = [url for url in named[:1] if url == item.get("url")] or [
            url for url in named if url != self._own_url
        ]
        return self._by_url[(others or named)[0]] if named else self._current


_PAGES: ContextVar[CallbackPages | None] = ContextVar("pages of the running callback", default=None)


def current_callback_pages() -> CallbackPages | None:
    """The pages of the callback that runs now; None outside of callbacks."""
    return _PAGES.get()


class RelevanceMiddleware:
    """Spider middleware between a callback's output and scheduler and pipelines."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RelevanceMiddleware:
        """Build on the crawler, whose signals and counts it uses."""
        return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        """The callback begins: what it downloads from now on are pages of its own."""
        _PAGES.set(CallbackPages(response))

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Tell requests on which page they were found, and items how relevant theirs is.

        Items of a page that is left out are dropped.
        """
        pages = _PAGES.get() or CallbackPages(response)
        settled = state_of(response).settled
        outputs = aiter(result)
        while True:
            _PAGES.set(pages)
            try:
                output = await anext(outputs)
            except StopAsyncIteration:
                return
            finally:
                _PAGES.set(None)  # what pipelines download is not the callback's
            if isinstance(output, Request):
                if settled is not None:
                    _annotate_request(output, settled)
            elif ItemAdapter.is_item(output):
                adapter = ItemAdapter(output)
                page = pages.page_of(adapter)
                if page.left_out:
                    await self._drop(output, response)
                    continue
                _annotate_item(adapter, page)
            yield output

    async def _drop(self, item: Any, response: Response) -> None:
        """As Scrapy does with what a pipeline drops; its extensions count that."""
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            exception=NoindexPageError(f"{response.url} asks not to be indexed"),
            spider=self._crawler.spider,
        )


def _annotate_request(request: Request, settled: SettledFetch) -> None:
    found_as = settled.scored.get(normalise(request.url) or "")
    update_state(request, found_on=settled, found_as=found_as)


def _annotate_item(item: ItemAdapter, page: PageRelevance) -> None:
    if page.relevance is None:
        return
    free = isinstance(item.item, dict) or RELEVANCE_FIELD in item.field_names()
    if free and item.get(RELEVANCE_FIELD) is None:
        item[RELEVANCE_FIELD] = page.relevance
