"""What a session of a crawl spent, and on what: for its report."""

from __future__ import annotations

import time
from typing import Any

from scrapy.utils.asyncio import CallLaterResult, call_later

from focused.crawl.crawl_stats import StageTimes
from focused.scrapy_addon.parser_pool import ParserPool


class CrawlProfile:
    """Begins with the crawl; :meth:`as_json` tells what was spent until then."""

    def __init__(self) -> None:
        self.stages = StageTimes(time.perf_counter)
        self._watch = ReactorLagMonitor()
        self._pages = 0
        self._began = (time.perf_counter(), time.process_time())

    def start(self, pages: int) -> None:
        """The reactor runs from now on; ``pages`` came in earlier sessions."""
        self._pages = pages
        self._began = (time.perf_counter(), time.process_time())
        self._watch.start()

    def stop(self) -> None:
        """The reactor is about to end."""
        self._watch.stop()

    def as_json(self, pages: int, parser_processes: ParserPool) -> dict[str, Any]:
        """All figures of this session; ``pages`` came in all sessions.

        ``stages`` are seconds of the clock; ``parser_process_s`` of them passed in other processes.
        """
        elapsed_s = time.perf_counter() - self._began[0]
        return {
            "elapsed_s": elapsed_s,
            "cpu_s": time.process_time() - self._began[1],
            "stages": dict(self.stages.seconds),
            "pages": pages - self._pages,
            "parser_processes": parser_processes.max_running,
            "pages_parsed_in_processes": parser_processes.read,
            "parser_process_s": parser_processes.seconds,
            "reactor_blocked": {
                "longest_s": self._watch.longest_s,
                "times": self._watch.long_times,
                "threshold_s": BLOCKED_S,
            },
        }


BLOCKED_S = 0.05
"""Longer is too long: connections time out, turns are missed, Ctrl-C is not heard."""

_TICK_INTERVAL_S = 0.02


class ReactorLagMonitor:
    """Ticks, and notes how late it was. What the system gave to other processes counts."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.long_times = 0
        self._due_at = 0.0
        self._next: CallLaterResult | None = None

    def start(self) -> None:
        """Begin; the reactor must run."""
        self._due_at = time.perf_counter() + _TICK_INTERVAL_S
        self._next = call_later(_TICK_INTERVAL_S, self._tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _tick(self) -> None:
        late_s = time.perf_counter() - self._due_at
        self.longest_s = max(self.longest_s, late_s)
        self.long_times += late_s > BLOCKED_S
        self.start()
