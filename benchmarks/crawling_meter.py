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
from typing import NamedTuple, Self

from machine import cpu_s_of, peak_mb
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import call_later

_LOOK_EVERY_S = 0.005
_COUNT_EVERY_S = 0.1  # reading the CPU time takes half a millisecond


def cpu_s() -> float:
    """CPU seconds of this process and of its children, finished or not."""
    running = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(os.times()[:4]) + sum(map(cpu_s_of, running))


class _Sample(NamedTuple):
    """The number of pages so far, the time by the clock and of the CPU."""

    pages: int
    at: float
    cpu_s: float


class Meter:
    """Counts a crawl's pages, without robots.txt files; writes the figures when the process ends.

    Uses Scrapy's own count: a handler of each page's signal would cost what no user pays.
    """

    def __init__(self, result: Path, began_at: float, stats: StatsCollector) -> None:
        """``began_at`` is the start of the process, in seconds of the system's clock."""
        self._result = result
        self._began_at = began_at
        self._stats = stats
        self._ended = False
        self._first: _Sample | None = None
        self._to_first_page_s = 0.0
        # The last sample with new pages may come late, after the final writing: use the one before.
        self._samples: deque[_Sample] = deque(maxlen=2)
        atexit.register(self._write)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Settings ``METER_RESULT`` and ``METER_BEGAN_AT`` give the target and the start time."""
        assert crawler.stats is not None
        settings = crawler.settings
        result, began_at = Path(settings["METER_RESULT"]), settings.getfloat("METER_BEGAN_AT")
        meter = cls(result, began_at, crawler.stats)
        crawler.signals.connect(meter.look, signals.spider_opened)
        crawler.signals.connect(meter.closed, signals.spider_closed)
        return meter

    def look(self) -> None:
        """Sample the count until the crawl ends."""
        self._sample()
        if not self._ended:
            call_later(_COUNT_EVERY_S if self._first else _LOOK_EVERY_S, self.look)

    def closed(self) -> None:
        """Take the last sample."""
        self._ended = True
        self._sample()

    def _sample(self) -> None:
        counted = self._stats.get_value("response_received_count", 0)
        pages = int(counted - self._stats.get_value("robotstxt/response_count", 0))
        if pages > (self._samples[-1].pages if self._samples else 0):
            self._samples.append(_Sample(pages, time.perf_counter(), cpu_s()))
        if self._first is None and self._samples:
            self._first = self._samples[0]
            self._to_first_page_s = time.time() - self._began_at

    def _write(self) -> None:
        first, last = self._first, self._samples[0]
        assert first is not None
        figures = {
            "crawled_pages": last.pages - first.pages,
            "crawled_s": last.at - first.at,
            "crawled_cpu_s": last.cpu_s - first.cpu_s,
            "wall_s": time.perf_counter() - first.at,
            "peak_mb": peak_mb(),
            "to_first_page_s": self._to_first_page_s,
        }
        self._result.write_text(json.dumps(figures))
