"""Pages that came together are read together, and settled a few in each turn of the reactor.

A crawl goes through more code and data for a page than a core's caches hold. Read one after the
other by the same code, several pages cost half of what they cost when each is read and settled
alone. Nothing waits for it: what came is read in the turn after. In one turn pages are either
read or settled: each takes some 20 ms, and the reactor has other things to do, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.web.page import Failed, Fetched

MAX_BATCH_BYTES = 120_000
"""Read in one turn."""

MAX_SETTLED_PER_TURN = 3
MAX_LINKS_PER_TURN = 200
"""Pages settled in one turn, and the links on them."""

ParseResult = ParsedPage | Failed | None
_ParseFuture = asyncio.Future[ParseResult]


class PageBatcher:
    """The turns of one crawl's pages; those that were read are settled before others are read."""

    def __init__(self, reader: Callable[[], PageParser]) -> None:
        self._reader = reader
        self._to_read: deque[tuple[Fetched, _ParseFuture]] = deque()
        self._to_settle: deque[tuple[ParseResult, _ParseFuture]] = deque()
        self._goes_on = False

    @property
    def is_idle(self) -> bool:
        """Whether no page waits to be read or settled."""
        return not (self._to_read or self._to_settle)

    async def read(self, fetched: Fetched) -> ParseResult:
        """What an answer's page holds, in the turn to settle it.

        None: settling it will tell why it cannot be read.
        """
        asked: _ParseFuture = asyncio.get_running_loop().create_future()
        self._to_read.append((fetched, asked))
        self._go_on()
        return await asked

    async def settle(self, reading: ParsedPage | Failed) -> ParseResult:
        """The reading of a page that was read elsewhere, in the turn to settle it."""
        asked: _ParseFuture = asyncio.get_running_loop().create_future()
        self._to_settle.append((reading, asked))
        self._go_on()
        return await asked

    def _go_on(self) -> None:
        if not self._goes_on:
            self._goes_on = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        if self._to_settle:
            self._hand_out()
        elif self._to_read:
            self._read_some()
        else:
            self._goes_on = False
            return
        # Who was handed a page settles it in the next turn: ours is the one after.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._turn)

    def _hand_out(self) -> None:
        pages = links = 0
        while self._to_settle and pages < MAX_SETTLED_PER_TURN:
            links += _link_count(self._to_settle[0][0])
            if pages and links > MAX_LINKS_PER_TURN:
                break
            pages += 1
            reading, asked = self._to_settle.popleft()
            if not asked.done():
                asked.set_result(reading)

    def _read_some(self) -> None:
        taken: list[tuple[Fetched, _ParseFuture]] = []
        bytes_taken = 0
        while self._to_read:
            bytes_taken += len(self._to_read[0][0].body)
            if taken and bytes_taken > MAX_BATCH_BYTES:
                break
            taken.append(self._to_read.popleft())
        found: list[ParseResult]
        try:
            found = list(self._reader().read_all([fetched for fetched, _ in taken]))
        except Exception:  # no reader: the crawl was closed meanwhile, and nobody asks any more
            found = [None] * len(taken)
        asked = (asked for _, asked in taken)
        self._to_settle.extend(zip(found, asked, strict=True))


def _link_count(reading: ParseResult) -> int:
    return len(reading.page.links) if isinstance(reading, ParsedPage) else 0
