"""Parse and settle pages in batches, a few in each turn of the reactor.

Code and data for one page exceed a core's caches: several pages in a row cost half as much as
alone. No page waits for a batch: it is parsed in the next turn. A turn either parses or settles
pages, some 20 ms, so that the reactor can do other work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.web.page import Failed, Fetched

MAX_BATCH_BYTES = 120_000
"""Bytes to parse in one turn."""

MAX_SETTLED_PER_TURN = 3
MAX_LINKS_PER_TURN = 200
"""Links of the pages settled in one turn."""

ParseResult = ParsedPage | Failed | None
_ParseFuture = asyncio.Future[ParseResult]


class PageBatcher:
    """Batches the pages of one crawl; parsed pages are settled before others are parsed."""

    def __init__(self, parser: Callable[[], PageParser]) -> None:
        self._parser = parser
        self._to_parse: deque[tuple[Fetched, _ParseFuture]] = deque()
        self._to_settle: deque[tuple[ParseResult, _ParseFuture]] = deque()
        self._is_scheduled = False

    @property
    def is_idle(self) -> bool:
        """Whether no page waits."""
        return not (self._to_parse or self._to_settle)

    async def parse(self, fetched: Fetched) -> ParseResult:
        """Return a parsed page in the turn to settle it; None if settling must parse it."""
        future: _ParseFuture = asyncio.get_running_loop().create_future()
        self._to_parse.append((fetched, future))
        self._schedule()
        return await future

    async def wait_to_settle(self, parsed: ParsedPage | Failed) -> ParseResult:
        """Return a page that was parsed elsewhere, in the turn to settle it."""
        future: _ParseFuture = asyncio.get_running_loop().create_future()
        self._to_settle.append((parsed, future))
        self._schedule()
        return await future

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        if self._to_settle:
            self._release_parsed()
        elif self._to_parse:
            self._parse_batch()
        else:
            self._is_scheduled = False
            return
        # Callers settle their pages in the next turn; continue in the one after.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._turn)

    def _release_parsed(self) -> None:
        pages = links = 0
        while self._to_settle and pages < MAX_SETTLED_PER_TURN:
            links += _link_count(self._to_settle[0][0])
            if pages and links > MAX_LINKS_PER_TURN:
                break
            pages += 1
            parsed, future = self._to_settle.popleft()
            if not future.done():
                future.set_result(parsed)

    def _parse_batch(self) -> None:
        batch: list[tuple[Fetched, _ParseFuture]] = []
        bytes_taken = 0
        while self._to_parse:
            bytes_taken += len(self._to_parse[0][0].body)
            if batch and bytes_taken > MAX_BATCH_BYTES:
                break
            batch.append(self._to_parse.popleft())
        found: list[ParseResult]
        try:
            found = list(self._parser().read_all([fetched for fetched, _ in batch]))
        except Exception:  # the crawl was closed
            found = [None] * len(batch)
        futures = (future for _, future in batch)
        self._to_settle.extend(zip(found, futures, strict=True))


def _link_count(parsed: ParseResult) -> int:
    return len(parsed.page.links) if isinstance(parsed, ParsedPage) else 0
