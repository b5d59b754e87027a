"""What a session of a crawl spent, and on what: for its report."""

from __future__ import annotations

import time
from typing import Any

from focused.crawl.stages import Stages
from focused.scrapy_addon.reactor_watch import LONG_S, ReactorWatch


class Profile:
    """Begins with the crawl; :meth:`as_json` tells what was spent until then."""

    def __init__(self) -> None:
        self.stages = Stages(time.perf_counter)
        self._watch = ReactorWatch()
        self._began = (time.perf_counter(), time.process_time())

    def start(self) -> None:
        """The reactor runs from now on."""
        self._began = (time.perf_counter(), time.process_time())
        self._watch.start()

    def stop(self) -> None:
        """The reactor is about to end."""
        self._watch.stop()

    def as_json(self, processes: int, read_there: int) -> dict[str, Any]:
        """All figures; ``processes`` read pages besides, ``read_there`` in all.

        Seconds are of this session. ``stages`` are of the clock; those of pages that were read in
        other processes are theirs.
        """
        elapsed_s = time.perf_counter() - self._began[0]
        return {
            "elapsed_s": elapsed_s,
            "cpu_s": time.process_time() - self._began[1],
            "stages": dict(self.stages.seconds),
            "reading_processes": processes,
            "pages_read_there": read_there,
            "reactor_blocked": {
                "longest_s": self._watch.longest_s,
                "times": self._watch.long_times,
                "counts_from_s": LONG_S,
            },
        }
