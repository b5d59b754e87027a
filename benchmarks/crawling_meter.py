"""What a crawl spent from its first page on: a Scrapy extension, the same for stock and ours.

The clock starts with the first page that came, so that neither imports nor models count, and is
read at the very end of the process: what is written at the close counts.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from pathlib import Path
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response


def cpu_s() -> float:
    """CPU seconds of this process and of its children that ended."""
    return sum(os.times()[:4])


def peak_mb() -> float:
    """Most memory of this process, in MB; Linux's word for it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no VmHWM in /proc/self/status")


class Clock:
    """Counts pages; what they took is written at the end of the process."""

    def __init__(self, result: Path, began_at: float) -> None:
        """``began_at`` is when the process was started, in seconds of the system's clock."""
        self._result = result
        self._began_at = began_at
        self.pages = 0
        self._start: dict[str, float] = {}
        atexit.register(self._write)

    def page(self) -> None:
        """Another page came."""
        if not self._start:
            self._start = {
                "at": time.perf_counter(),
                "cpu": cpu_s(),
                "memory": peak_mb(),
                "to_first_page_s": time.time() - self._began_at,
            }
        self.pages += 1

    def _write(self) -> None:
        start = self._start
        result: dict[str, Any] = {
            "pages": self.pages,
            "wall_s": time.perf_counter() - start["at"],
            "cpu_s": cpu_s() - start["cpu"],
            "peak_mb": peak_mb(),
            "before_mb": start["memory"],
            "to_first_page_s": start["to_first_page_s"],
        }
        self._result.write_text(json.dumps(result))


class Meter:
    """Reports a crawl's pages, not its robots.txt files."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Settings ``METER_RESULT`` and ``METER_BEGAN_AT`` tell where to, and since when."""
        settings = crawler.settings
        clock = Clock(Path(settings["METER_RESULT"]), settings.getfloat("METER_BEGAN_AT"))
        meter = cls(clock)
        crawler.signals.connect(meter.came, signals.response_received)
        return meter

    def came(self, response: Response) -> None:
        """Count a page."""
        if not response.url.endswith("/robots.txt"):
            self._clock.page()
