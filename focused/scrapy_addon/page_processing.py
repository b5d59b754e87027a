"""Parse and settle responses: in parser processes, or in batches in the crawl's own process."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from scrapy.exceptions import IgnoreRequest

from focused.crawl import SettledFetch
from focused.crawl.page_parser import EarlyResult, PageParser, ParsedPage
from focused.durations import Clock
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.run_status import RunStatus
from focused.web.page import Failed, Fetched, Outcome
from focused.web.robots.robots_rules import RobotsFile, is_long_robots_file, product_token
from focused.web.urls import host_of

if TYPE_CHECKING:
    from focused.parser_process import ParsingLimits
    from focused.scrapy_addon.parser_pool import ParserPool

BUSY_SHARE = 0.6
"""Share of a core's time from which on the crawl's process is busy."""
MAX_BATCH_BYTES = 120_000
"""Bytes to parse in one turn."""
MAX_SETTLED_PER_TURN = 3
MAX_LINKS_PER_TURN = 200
"""Links of the pages settled in one turn."""
ParseResult = ParsedPage | Failed | None
_ParseFuture = asyncio.Future[ParseResult]


def _wall_and_cpu() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class PageBatcher:
    """Batches the pages of one crawl; parsed pages are settled before others are parsed.

    Code and data for one page exceed a core's caches: several pages in a row cost some tenth less
    than alone. No page waits for a batch: it is parsed in the next turn. A turn either parses or
    settles pages, some 20 ms, so that the reactor can do other work.
    """

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


class ProcessLoad:
    """Tells whether this process is busy."""

    def __init__(self, clocks: Callable[[], tuple[float, float]] = _wall_and_cpu) -> None:
        """``clocks`` returns wall-clock and CPU seconds of this process."""
        self._clocks = clocks
        self._checked_at = clocks()

    def is_busy(self) -> bool:
        """Whether it has been busy since the last call."""
        now = self._clocks()
        elapsed_s, cpu_s = now[0] - self._checked_at[0], now[1] - self._checked_at[1]
        self._checked_at = now
        return cpu_s > BUSY_SHARE * elapsed_s


class PageParsers:
    """Parses in parser processes, or in batches in the crawl's own process."""

    def __init__(
        self,
        slot: CrawlSlot,
        *,
        processes: int | None,
        limits: Callable[[], ParsingLimits],
    ) -> None:
        """``processes`` and ``limits`` as for :class:`ParserPool`."""
        self._slot = slot
        self._batcher = PageBatcher(self._page_parser)
        self._processes = processes
        self._limits = limits
        self._load = ProcessLoad()
        self._pool: ParserPool | None = None

    def check_load(self) -> None:
        """Start parser processes if this one is busy; called about once a second."""
        if self._load.is_busy() and self._processes is None:
            self._started_pool().start()

    def classifier_swapped(self) -> None:
        """End the processes with the old classifier."""
        if self._pool is not None:
            self._pool.classifier_swapped()

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.close()

    def profile(self) -> dict[str, float]:
        """Return the most processes at once, their pages, and the seconds that these took."""
        pool = self._pool
        return {
            "parser_processes": 0 if pool is None else pool.max_running,
            "pages_parsed_in_processes": 0 if pool is None else pool.parsed_count,
            "parser_process_s": 0.0 if pool is None else pool.seconds,
        }

    async def parse(self, fetched: Fetched, *, is_long: bool) -> ParsedPage | Failed | None:
        """Parse a page; None if settling must parse it."""
        if self._pool is None and not (is_long or self._processes):
            return await self._batcher.parse(fetched)
        parsed = await self._started_pool().parse(fetched, is_long=is_long)
        assert not isinstance(parsed, RobotsFile)
        if parsed is None:
            return await self._batcher.parse(fetched)
        return await self._batcher.wait_to_settle(parsed)

    async def parse_robots(self, fetched: Fetched, token: str) -> RobotsFile | Failed | None:
        """Parse a long robots.txt in a process; None if the crawl ends."""
        parsed = await self._started_pool().parse(fetched, token, is_long=True)
        assert not isinstance(parsed, ParsedPage)
        return parsed

    def _started_pool(self) -> ParserPool:
        if self._pool is None:
            from focused.scrapy_addon.parser_pool import ParserPool  # many crawls need none

            self._pool = ParserPool(
                self._processes,
                self._page_parser,
                limits=self._limits(),
                is_idle=lambda: self._batcher.is_idle,
                charge=self._charge,
            )
        return self._pool

    def _page_parser(self) -> PageParser:
        return self._slot.crawl.parser.page_parser()

    def _charge(self, url: str, cpu_s: float) -> None:
        if self._slot.is_open:
            self._slot.crawl.hosts.policy.charge_parsing(host_of(url), cpu_s)


ParseEarly = Callable[[int, Outcome], Awaitable[ParseResult]]
"""Parses a response of a lease before it is settled; returns None if settling will parse it."""


class PageStage(Protocol):
    """A step between the arrival of a page and its settling, such as rendering it."""

    async def process(
        self, lease: int, fetched: Fetched, parsed: ParsedPage | Failed, parse: ParseEarly
    ) -> tuple[Fetched, ParsedPage | Failed]:
        """Return the page to settle; ``parse`` parses one that replaces it.

        Raises FetchPostponed when the crawl ends meanwhile: the link stays queued.
        """


class PageProcessor:
    """Parses and settles the responses of open crawls."""

    def __init__(
        self,
        slot: CrawlSlot,
        clock: Clock,
        status: RunStatus,
        parsers: PageParsers,
        user_agent: str,
        stages: Sequence[PageStage] = (),
    ) -> None:
        """``stages`` process each page before it is settled."""
        self._slot = slot
        self._clock = clock
        self._status = status
        self._stages = stages
        self._parsers = parsers
        self._robots_token = product_token(user_agent)

    async def parse_early(self, lease: int, outcome: Outcome) -> ParsedPage | Failed | None:
        """Parse a response before it is settled; None if settling will parse it."""
        crawl = self._slot.of_lease(lease)
        if crawl is None or not isinstance(outcome, Fetched):
            return None
        if not crawl.may_parse(lease, outcome):
            return None
        is_long = crawl.parser.needs_process(outcome)
        if is_long:
            crawl.begin_parsing(lease)
        return await self._parsers.parse(outcome, is_long=is_long)

    async def parse_robots(self, outcome: Outcome) -> RobotsFile | Failed | None:
        """Parse a long robots.txt in a parser process; None if it is not one."""
        if not isinstance(outcome, Fetched) or not is_long_robots_file(outcome):
            return None
        return await self._parsers.parse_robots(outcome, self._robots_token)

    async def parse_and_settle(self, lease: int, outcome: Outcome) -> SettledFetch | None:
        """Parse a response and settle its lease; raises IgnoreRequest if the crawl has ended."""
        parsed = await self.parse_early(lease, outcome)
        if parsed is not None and isinstance(outcome, Fetched):
            for stage in self._stages:
                outcome, parsed = await stage.process(lease, outcome, parsed, self.parse_early)
        robots_file = await self._parse_robots_of(lease, outcome)
        if not self._slot.is_leased(lease):
            raise IgnoreRequest("the crawl ended before its page was parsed")
        return self.settle(lease, outcome, robots_file or parsed)

    def settle(
        self, lease: int, outcome: Outcome, parsed: EarlyResult = None
    ) -> SettledFetch | None:
        """Settle a lease; an error stops the crawl."""
        try:
            return self._slot.crawl.settle(lease, outcome, self._clock(), parsed)
        except Exception as error:  # continuing would lose the link and block its host
            self._status.fail(error)
            raise

    async def _parse_robots_of(self, lease: int, outcome: Outcome) -> RobotsFile | Failed | None:
        crawl = self._slot.of_lease(lease)
        if crawl is None or not crawl.is_long_robots_file(lease, outcome):
            return None
        return await self.parse_robots(outcome)
