"""Middlewares: one decodes bodies, one adds relevance to items and scores to requests.

Items of pages that ask not to be indexed are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import Response

from focused.crawl.steps import SettledFetch
from focused.scrapy_addon.outcomes import ContentDecodingError, ResponseTooLargeError
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.robots_request import (
    ACCEPTED_CODINGS,
    decode_robots_response,
    is_robots_request,
)
from focused.web.urls import normalize_url

if TYPE_CHECKING:
    from itemadapter import ItemAdapter

RELEVANCE_FIELD = "relevance"


class NoindexPageError(DropItem):
    """The item's page asks not to be indexed, and ``politeness.noindex`` excludes such pages."""


class RelevanceMiddleware:
    """Spider middleware between callbacks and scheduler or pipelines."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RelevanceMiddleware:
        """Create for a crawler."""
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Add found-on information to requests, and the page's relevance to items.

        Drops items of excluded pages.
        """
        settled = state_of(response).settled
        async for output in result:
            if settled is not None and isinstance(output, Request):
                _annotate_request(output, settled)
            elif settled is not None and (item := _fields_of(output)) is not None:
                if settled.is_noindex:
                    await self._drop(output, response)
                    continue
                _annotate_item(item, settled)
            yield output

    async def _drop(self, item: Any, response: Response) -> None:
        """Send the signal that Scrapy sends for items that a pipeline drops."""
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            exception=NoindexPageError(f"{response.url} asks not to be indexed"),
            spider=self._crawler.spider,
        )


def _annotate_request(request: Request, settled: SettledFetch) -> None:
    found_as = settled.scored.get(normalize_url(request.url) or "")
    update_state(request, found_on=settled, found_as=found_as)


def _fields_of(output: object) -> dict[str, Any] | ItemAdapter | None:
    """Return an item's fields as a mapping; None if ``output`` is no item."""
    if isinstance(output, dict):
        return output
    from itemadapter import ItemAdapter  # imports pydantic: 8 MB, half of Scrapy's own start

    return ItemAdapter(output) if ItemAdapter.is_item(output) else None


def _annotate_item(item: dict[str, Any] | ItemAdapter, settled: SettledFetch) -> None:
    if settled.classification is None:
        return
    free = isinstance(item, dict) or RELEVANCE_FIELD in item.field_names()
    if free and item.get(RELEVANCE_FIELD) is None:
        item[RELEVANCE_FIELD] = settled.classification.relevance


MAX_CODINGS = 3
"""Maximum number of content codings; each may unpack to ``scope.max_page_bytes``."""
MAX_COMPRESSED_PARTS = 1_000
"""Gzip members, or zstd frames, of one body; servers send one."""
_PART_STARTS = {
    b"gzip": (b"\x1f\x8b\x08",),
    b"x-gzip": (b"\x1f\x8b\x08",),
    # Frames, and the sixteen kinds of skippable ones, by the bytes that these share.
    b"zstd": (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"),
}


class DecodingMiddleware(HttpCompressionMiddleware):
    """Scrapy's middleware, with exceptions that say why a body cannot be decoded."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Set Accept-Encoding."""
        if is_robots_request(request):
            request.headers.setdefault("Accept-Encoding", ACCEPTED_CODINGS)
        super().process_request(request)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Decode the body; raises ResponseTooLargeError or ContentDecodingError."""
        if not response.body or b"Content-Encoding" not in response.headers:
            return response
        codings = b",".join(response.headers.getlist("Content-Encoding")).count(b",") + 1
        if codings > MAX_CODINGS:
            raise ContentDecodingError(f"{codings} content codings")
        if is_robots_request(request):
            return decode_robots_response(response)
        try:
            return cast("Response", super().process_response(request, response))
        except IgnoreRequest as error:  # raised by Scrapy for a decoded body above DOWNLOAD_MAXSIZE
            raise ResponseTooLargeError(str(error)) from error
        except ContentDecodingError:
            raise
        except Exception as error:
            raise ContentDecodingError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        """Decode one coding. Raises ContentDecodingError for thousands of empty parts.

        They take a second a megabyte, without decoding to anything that ``max_size`` limits.
        """
        if any(
            body.count(start) > MAX_COMPRESSED_PARTS for start in _PART_STARTS.get(encoding, ())
        ):
            raise ContentDecodingError(f"more than {MAX_COMPRESSED_PARTS:,} compressed parts")
        return HttpCompressionMiddleware._decode(body, encoding, max_size)
