"""Parse and settle responses: in parser processes, or in batches in the crawl's own process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scrapy.exceptions import IgnoreRequest

from focused.crawl import SettledFetch
from focused.crawl.page_parser import EarlyResult, ParsedPage
from focused.documents.formats import document_format, needs_process
from focused.parser_process import ParsingLimits
from focused.scrapy_addon.crawl_clock import Clock
from focused.scrapy_addon.open_crawls import OpenCrawls
from focused.scrapy_addon.parser_pool import PageBatcher, ParserPool
from focused.scrapy_addon.run_status import RunStatus
from focused.web.html.parse import needs_parser_process
from focused.web.page import Failed, Fetched, Outcome
from focused.web.robots.robots_rules import RobotsFile, is_long_robots_file, product_token


class PageParsers:
    """Parses in parser processes, or in batches in the crawl's own process."""

    def __init__(
        self,
        crawls: OpenCrawls,
        *,
        processes: int | None = None,
        limits: ParsingLimits | None = None,
    ) -> None:
        """``processes`` and ``limits`` as for :class:`ParserPool`."""
        self._crawls = crawls
        self._batcher = PageBatcher(lambda: crawls.group.page_parser())
        self.pool = ParserPool(
            processes,
            lambda: crawls.group.page_parser(),
            limits=limits,
            is_idle=lambda: self._batcher.is_idle,
            charge=self._charge,
        )
        """The parser processes."""

    async def parse(self, fetched: Fetched, *, is_long: bool) -> ParsedPage | Failed | None:
        """Parse a page; None if settling must parse it."""
        parsed = await self.pool.parse(fetched, is_long=is_long)
        if parsed is None:
            return await self._batcher.parse(fetched)
        return await self._batcher.wait_to_settle(parsed)

    def _charge(self, url: str, cpu_s: float) -> None:
        if self._crawls.is_open:
            self._crawls.of_url(url).charge_parsing(url, cpu_s)


class ParseEarly(Protocol):
    """Parses a response of a lease before it is settled."""

    async def __call__(self, lease: int, outcome: Outcome) -> ParsedPage | Failed | None:
        """Return the parsed page; None if settling will parse it."""


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
        crawls: OpenCrawls,
        clock: Clock,
        status: RunStatus,
        parsers: PageParsers,
        user_agent: str,
        stages: Sequence[PageStage] = (),
    ) -> None:
        """``stages`` process each page before it is settled."""
        self._crawls = crawls
        self._clock = clock
        self._status = status
        self._stages = stages
        self._parsers = parsers
        self._robots_token = product_token(user_agent)

    async def parse_early(self, lease: int, outcome: Outcome) -> ParsedPage | Failed | None:
        """Parse a response before it is settled; None if settling will parse it."""
        crawl = self._crawls.of_lease(lease)
        if crawl is None or not isinstance(outcome, Fetched):
            return None
        if not crawl.may_parse(lease, outcome):
            return None
        is_long = _is_long(outcome)
        if is_long:
            crawl.begin_parsing(lease)
        return await self._parsers.parse(outcome, is_long=is_long)

    async def parse_robots(self, outcome: Outcome) -> RobotsFile | Failed | None:
        """Parse a long robots.txt in a parser process; None if it is not one."""
        if not isinstance(outcome, Fetched) or not is_long_robots_file(outcome):
            return None
        return await self._parsers.pool.parse_robots(outcome, self._robots_token)

    async def parse_and_classify(self, outcome: Outcome) -> ParsedPage | None:
        """Parse and classify a page that is not the frontier's; None if it is not a page."""
        if not self._crawls.is_open or not isinstance(outcome, Fetched):
            return None
        if not self._crawls.of_url(outcome.url).is_page(outcome):
            return None
        parsed = await self._parsers.parse(outcome, is_long=_is_long(outcome))
        if parsed is None and self._crawls.is_open:
            parsed = self._crawls.group.page_parser().read(outcome)
        return parsed if isinstance(parsed, ParsedPage) else None

    async def parse_and_settle(self, lease: int, outcome: Outcome) -> SettledFetch | None:
        """Parse a response and settle its lease; raises IgnoreRequest if the crawl has ended."""
        parsed = await self.parse_early(lease, outcome)
        if parsed is not None and isinstance(outcome, Fetched):
            for stage in self._stages:
                outcome, parsed = await stage.process(lease, outcome, parsed, self.parse_early)
        robots_file = await self._parse_robots_of(lease, outcome)
        if not self._crawls.is_leased(lease):
            raise IgnoreRequest("the crawl ended before its page was parsed")
        return self.settle(lease, outcome, robots_file or parsed)

    def settle(
        self, lease: int, outcome: Outcome, parsed: EarlyResult = None
    ) -> SettledFetch | None:
        """Settle a lease; an error stops the crawl."""
        try:
            return self._crawls.group.settle(lease, outcome, self._clock(), parsed)
        except Exception as error:  # continuing would lose the link and block its host
            self._status.fail(error)
            raise

    async def _parse_robots_of(self, lease: int, outcome: Outcome) -> RobotsFile | Failed | None:
        crawl = self._crawls.of_lease(lease)
        if crawl is None or not crawl.is_long_robots_file(lease, outcome):
            return None
        return await self.parse_robots(outcome)


def _is_long(fetched: Fetched) -> bool:
    shown = fetched.as_shown()
    return needs_process(document_format(shown)) or needs_parser_process(shown)
