"""What a spider of one's own gets: relevance in its items, scores for its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import Response

from focused.crawl.steps import Settled
from focused.scrapy_addon.own_requests import FOUND_AS, FOUND_ON
from focused.scrapy_addon.settling import SETTLED
from focused.web.url import normalise

RELEVANCE_FIELD = "relevance"


class RelevanceMiddleware:
    """Spider middleware between a callback's output and scheduler and pipelines."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Tell requests on which page they were found, and items how relevant it is."""
        settled: Settled | None = response.meta.get(SETTLED)
        async for output in result:
            if settled is not None:
                if isinstance(output, Request):
                    _tell_request(output, settled)
                else:
                    _tell_item(output, settled)
            yield output


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
