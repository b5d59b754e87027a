"""Time and resources of one session of a crawl, for its report."""

from __future__ import annotations

import time
from typing import Any

from scrapy.utils.asyncio import CallLaterResult, call_later

from focused.crawl.crawl_stats import StageTimes
from focused.scrapy_addon.parser_pool import ParserPool


class CrawlProfile:
    """Measures one session."""

    def __init__(self) -> None:
        self.stages = StageTimes(time.perf_counter)
        self._watch = ReactorLagMonitor()
        self._pages = 0
        self._began = (time.perf_counter(), time.process_time())

    def start(self, pages: int) -> None:
        """Start measuring; ``pages`` came in earlier sessions."""
        self._pages = pages
        self._began = (time.perf_counter(), time.process_time())
        self._watch.start()

    def stop(self) -> None:
        """Stop the reactor monitor."""
        self._watch.stop()

    def as_json(self, pages: int, pool: ParserPool) -> dict[str, Any]:
        """Return all figures of this session; ``pages`` came in all sessions.

        ``stages`` are seconds of wall-clock time; ``parser_process_s`` of them passed in other
        processes.
        """
        elapsed_s = time.perf_counter() - self._began[0]
        return {
            "elapsed_s": elapsed_s,
            "cpu_s": time.process_time() - self._began[1],
            "stages": dict(self.stages.seconds),
            "pages": pages - self._pages,
            "parser_processes": pool.max_running,
            "pages_parsed_in_processes": pool.parsed_count,
            "parser_process_s": pool.seconds,
            "reactor_blocked": {
                "longest_s": self._watch.longest_s,
                "times": self._watch.long_times,
                "threshold_s": BLOCKED_S,
            },
        }


BLOCKED_S = 0.05
"""Longer delays block the reactor: connections time out, Ctrl-C is not handled."""

_TICK_INTERVAL_S = 0.02


class ReactorLagMonitor:
    """Measures how late a periodic call in the reactor is, the load of other processes included."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.long_times = 0
        self._due_at = 0.0
        self._next: CallLaterResult | None = None

    def start(self) -> None:
        """Start; the reactor must run."""
        self._due_at = time.perf_counter() + _TICK_INTERVAL_S
        self._next = call_later(_TICK_INTERVAL_S, self._tick)

    def stop(self) -> None:
        """Stop."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _tick(self) -> None:
        late_s = time.perf_counter() - self._due_at
        self.longest_s = max(self.longest_s, late_s)
        self.long_times += late_s > BLOCKED_S
        self.start()
