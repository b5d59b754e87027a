"""Print the crawl's progress instead of Scrapy's messages for each page.

One updated line on a terminal, else a line now and then.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, TextIO

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.logformatter import LogFormatter
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import create_looping_call

from focused.crawl import Crawl
from focused.crawl.crawl_stats import Counters
from focused.durations import HOUR_S
from focused.errors import escape_control_characters
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.run_status import CRAWL_CLOSING
from focused.topic import Budget, Topic

_SHOWN_KINDS = 3


class ProgressExtension:
    """Prints a line every ``FOCUSED_PROGRESS_INTERVAL_S`` seconds."""

    def __init__(self, driver: Driver, every_s: float, out: TextIO) -> None:
        self._driver = driver
        self._every_s = every_s
        self._out = out
        self._terminal = out.isatty()
        self._last_fetched = 0
        self._last_at: float | None = None
        self._loop = create_looping_call(self._show)

    @classmethod
    def of_driver(cls, driver: Driver) -> ProgressExtension:
        """Create and connect; raises NotConfigured if disabled."""
        every_s = driver.crawler.settings.getfloat("FOCUSED_PROGRESS_INTERVAL_S")
        if every_s <= 0:
            raise NotConfigured
        extension = cls(driver, every_s, sys.stderr)
        connect = driver.crawler.signals.connect
        connect(extension.opened, signals.spider_opened)
        connect(extension.closing, signals.engine_stopped)
        connect(extension.closing, CRAWL_CLOSING)
        return extension

    def opened(self) -> None:
        """Start; report if an earlier crawl is resumed."""
        crawl = self._driver.slot.crawl
        counters = crawl.counters
        self._last_fetched = counters.downloads
        if counters.settled:
            folder = escape_control_characters(str(self._driver.topic.output.folder))
            print(
                f"focused: resuming in {folder}: {counters.fetched} pages "
                f"fetched before, {len(crawl.frontier)} links queued (--fresh starts anew)",
                file=self._out,
            )
        self._loop.start(1.0 if self._terminal else self._every_s, now=False)

    def closing(self) -> None:
        """Stop, and end the terminal's line."""
        if self._loop.running:
            self._loop.stop()
            if self._terminal:
                print(file=self._out)

    def _show(self) -> None:
        if not self._driver.slot.is_open:
            return
        now = self._driver.clock()
        crawl = self._driver.slot.crawl
        pages = crawl.counters.downloads
        real_s = self._every_s
        if self._last_at is not None:
            real_s = self._driver.clock.real_s(now - self._last_at)
        speed = (pages - self._last_fetched) / max(real_s, 1e-3)
        self._last_at, self._last_fetched = now, pages
        line = progress_line(self._driver.topic, crawl, now, speed, self._driver.status.waiting)
        if self._terminal:
            print(f"\r\x1b[K{line}", end="", file=self._out, flush=True)
        else:
            print(line, file=self._out, flush=True)


def progress_line(
    topic: Topic, crawl: Crawl, now: float, pages_per_s: float, waiting: str = ""
) -> str:
    """Return a crawl's progress in one line; ``pages_per_s`` counts all downloads.

    ``waiting`` describes what the crawl waits for.
    """
    counters, budget, frontier = crawl.counters, topic.budget, crawl.frontier
    of = f"/{budget.pages}" if budget.pages else ""
    parts = [
        f"{counters.fetched}{of} pages",
        f"{pages_per_s:.1f}/s",
        f"harvest {counters.harvest_rate:.2f} (last 100: {counters.recent_harvest_rate:.2f})",
        f"frontier {len(frontier)} on {len(frontier.hosts)} hosts",
    ]
    parts += feature_downloads(counters)
    active_s = crawl.active_s(now)
    if topic.revisit.continuous:
        hours = topic.revisit.hours
        left_s = None if hours is None else max(0.0, hours * HOUR_S - active_s)
    else:
        left_s = remaining_s(budget, counters.fetched, active_s)
    if left_s is not None:
        parts.append(f"{_format_duration(left_s)} left")
    if waiting:
        parts.append(waiting)
    if counters.is_unproductive:
        parts.append("is the topic exhausted?")
    return " | ".join(parts)


def feature_downloads(counters: Counters) -> Iterator[str]:
    """Yield the numbers of features' downloads, in all and of the most frequent kinds."""
    for name, kinds in counters.feature_downloads():
        by_kind = (f"{count} {kind}" for kind, count in Counter(kinds).most_common(_SHOWN_KINDS))
        yield f"{sum(kinds.values())} {name}: {', '.join(by_kind)}"


def remaining_s(budget: Budget, fetched: int, active_s: float) -> float | None:
    """Return the seconds until the budget is spent at the mean speed; None if unknown."""
    estimates = []
    if budget.pages is not None and fetched:
        estimates.append((budget.pages - fetched) * active_s / fetched)
    if budget.hours is not None:
        estimates.append(budget.hours * HOUR_S - active_s)
    return max(0.0, min(estimates)) if estimates else None


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class QuietLogFormatter(LogFormatter):
    """Scrapy's formatter without messages for each page and item."""

    def crawled(self, *args: Any) -> Any:
        """Return None."""

    def scraped(self, *args: Any) -> Any:
        """Return None."""


def install_quiet_formatter(settings: BaseSettings) -> None:
    """Set the formatter, unless DEBUG messages are logged or the user set one."""
    level = settings["LOG_LEVEL"]
    number = level if isinstance(level, int) else logging.getLevelName(str(level))
    if isinstance(number, int) and number > logging.DEBUG:
        settings.set("LOG_FORMATTER", QuietLogFormatter, priority="addon")
