"""The clock of a crawl: real time, or a faster one in a replay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from focused.durations import uptime_s


class Clock(Protocol):
    """The clock of a crawl, in seconds since the epoch; it may run faster than real time."""

    def __call__(self) -> float:
        """Return the time."""

    def real_s(self, duration_s: float) -> float:
        """Return how many real seconds pass during ``duration_s`` of this clock."""

    def advance_to(self, last: float) -> None:
        """Let the clock continue after ``last``, the end of the previous session.

        Raises ConfigurationError if it cannot.
        """


class CrawlClock:
    """Seconds since the epoch that ignore changes of the system's clock."""

    def __init__(
        self, wall: Callable[[], float] | None = None, count: Callable[[], float] = uptime_s
    ) -> None:
        self._count = count
        self._ahead = (wall or time.time)() - count()

    def __call__(self) -> float:
        """Return the time."""
        return self._count() + self._ahead

    def real_s(self, duration_s: float) -> float:
        """Return ``duration_s``."""
        return duration_s

    def advance_to(self, last: float) -> None:
        """Set the clock forward to ``last``, the end of the previous session."""
        self._ahead = max(self._ahead, last - self._count())
