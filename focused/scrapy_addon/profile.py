"""What a session of a crawl spent, and on what: for its report."""

from __future__ import annotations

import time
from typing import Any

from focused.crawl.stages import Stages
from focused.scrapy_addon.reactor_watch import LONG_S, ReactorWatch
from focused.scrapy_addon.reading_workers import ReadingWorkers


class Profile:
    """Begins with the crawl; :meth:`as_json` tells what was spent until then."""

    def __init__(self) -> None:
        self.stages = Stages(time.perf_counter)
        self._watch = ReactorWatch()
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

    def as_json(self, pages: int, readers: ReadingWorkers) -> dict[str, Any]:
        """All figures of this session; ``pages`` came in all sessions.

        ``stages`` are seconds of the clock; ``seconds_there`` of them passed in other processes.
        """
        elapsed_s = time.perf_counter() - self._began[0]
        return {
            "elapsed_s": elapsed_s,
            "cpu_s": time.process_time() - self._began[1],
            "stages": dict(self.stages.seconds),
            "pages": pages - self._pages,
            "reading_processes": readers.most_at_once,
            "pages_read_there": readers.read,
            "seconds_there": readers.seconds,
            "reactor_blocked": {
                "longest_s": self._watch.longest_s,
                "times": self._watch.long_times,
                "counts_from_s": LONG_S,
            },
        }
