"""The time of a live crawl: no jump of the system's clock reaches it.

Delays, back-off and budgets are held by this clock. When the system's clock is set back by an hour
they would last an hour longer, and when it is set forward they would be over at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def _since_boot() -> float:
    """Seconds that count on while the machine sleeps, where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class CrawlClock:
    """Seconds since the epoch: read from the system's clock once, then counted."""

    def __init__(
        self, wall: Callable[[], float] | None = None, count: Callable[[], float] = _since_boot
    ) -> None:
        self._count = count
        self._ahead = (wall or time.time)() - count()

    def __call__(self) -> float:
        """The time now."""
        return self._count() + self._ahead

    def go_on_from(self, last: float) -> None:
        """It is ``last`` at least: an earlier session of the crawl was at work then."""
        self._ahead = max(self._ahead, last - self._count())
