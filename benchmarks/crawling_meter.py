"""Measure a crawl from its first page on: a Scrapy extension for stock and our crawl alike.

The clock starts with the first page, so that imports and models don't count. Pages per second and
CPU end at nearly the last page; the work after it is reported apart. Memory is that of the whole
process.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import call_later

_LOOK_EVERY_S = 0.005
_COUNT_EVERY_S = 0.02


def cpu_s() -> float:
    """CPU seconds of this process and of its children, finished or not."""
    running = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(os.times()[:4]) + sum(map(_cpu_s_of, running))


def _cpu_s_of(process: str) -> float:
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")  # proc(5): utime, stime


def peak_mb() -> float:
    """Peak memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no VmHWM in /proc/self/status")


class Clock:
    """Counts pages; writes the figures at the end of the process."""

    def __init__(self, result: Path, began_at: float) -> None:
        """``began_at`` is the start of the process, in seconds of the system's clock."""
        self._result = result
        self._began_at = began_at
        self.pages = 0
        self._start: dict[str, float] = {}
        # The last sample with new pages may come late, after the final writing: use the one before.
        self._looks: deque[tuple[int, float, float]] = deque(maxlen=2)
        atexit.register(self._write)

    def page(self) -> None:
        """Count a page."""
        self.counted(self.pages + 1)

    def counted(self, pages: int) -> None:
        """Set the number of pages so far."""
        if pages > self.pages:
            self.pages = pages
            self._looks.append((pages, time.perf_counter(), cpu_s()))
        if not self._start:
            self._start = {
                "pages": pages,
                "at": time.perf_counter(),
                "cpu": cpu_s(),
                "memory": peak_mb(),
                "to_first_page_s": time.time() - self._began_at,
            }

    def _write(self) -> None:
        start = self._start
        pages, at, cpu = self._looks[0]
        result: dict[str, Any] = {
            "pages": self.pages,
            "crawled_pages": pages - start["pages"],
            "crawled_s": at - start["at"],
            "crawled_cpu_s": cpu - start["cpu"],
            "wall_s": time.perf_counter() - start["at"],
            "end_cpu_s": cpu_s() - cpu,
            "peak_mb": peak_mb(),
            "before_mb": start["memory"],
            "to_first_page_s": start["to_first_page_s"],
        }
        self._result.write_text(json.dumps(result))


class Meter:
    """Reports a crawl's pages, without robots.txt files.

    Uses Scrapy's own count: a handler of each page's signal would cost what no user pays.
    """

    def __init__(self, clock: Clock, stats: StatsCollector) -> None:
        self._clock = clock
        self._stats = stats
        self._ended = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Settings ``METER_RESULT`` and ``METER_BEGAN_AT`` give the target and the start time."""
        settings = crawler.settings
        clock = Clock(Path(settings["METER_RESULT"]), settings.getfloat("METER_BEGAN_AT"))
        meter = cls(clock, crawler.stats)
        crawler.signals.connect(meter.look, signals.spider_opened)
        crawler.signals.connect(meter.closed, signals.spider_closed)
        return meter

    def look(self) -> None:
        """Sample the count until the crawl ends."""
        if (pages := self._pages()) > 0:
            self._clock.counted(pages)
        if not self._ended:
            call_later(_COUNT_EVERY_S if pages else _LOOK_EVERY_S, self.look)

    def closed(self) -> None:
        """Store the count."""
        self._ended = True
        self._clock.counted(self._pages())

    def _pages(self) -> int:
        counted = self._stats.get_value("response_received_count", 0)
        return int(counted - self._stats.get_value("robotstxt/response_count", 0))
