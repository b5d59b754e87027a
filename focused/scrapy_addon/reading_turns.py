"""Pages that came in one turn of the reactor are read together.

A crawl goes through more code and data for a page than a core's caches hold. Read one after the
other by the same code, several pages cost half of what they cost when each is read and settled
alone. Nothing waits for it: what came is read in the turn after.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from focused.crawl.reading import Reader, Reading
from focused.web.page import Failed, Fetched

MOST_BYTES = 120_000
"""Read at a time, which takes some 15 ms; the reactor has other things to do, too."""

_SETTLED_A_TURN = 4

Read = Reading | Failed | None


class ReadingTurns:
    """Reads for one crawl, in its own process."""

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader
        self._waiting: deque[tuple[Fetched, asyncio.Future[Read]]] = deque()

    async def read(self, fetched: Fetched) -> Read:
        """What an answer's page holds; None: settling it will tell why it cannot be read."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._turn)
        done: asyncio.Future[Read] = loop.create_future()
        self._waiting.append((fetched, done))
        return await done

    def _turn(self) -> None:
        taken: list[tuple[Fetched, asyncio.Future[Read]]] = []
        left = MOST_BYTES
        while self._waiting and (not taken or left > 0):
            taken.append(self._waiting.popleft())
            left -= len(taken[-1][0].body)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)
        try:
            found = self._reader().read_all([fetched for fetched, _ in taken])
        except Exception:  # no reader: the crawl was closed meanwhile, and nobody asks any more
            found = [None] * len(taken)
        asked = (done for _, done in taken)
        self._hand_out(list(zip(asked, found, strict=True)))

    def _hand_out(self, found: Sequence[tuple[asyncio.Future[Read], Read]]) -> None:
        """Let a few be settled, then the reactor see to its other work, then the next few."""
        for done, reading in found[:_SETTLED_A_TURN]:
            if not done.done():
                done.set_result(reading)
        if left := found[_SETTLED_A_TURN:]:
            asyncio.get_running_loop().call_soon(self._hand_out, left)
