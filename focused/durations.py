"""Durations in seconds, clocks to measure them, and times as texts."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
YEAR_S = 365.25 * DAY_S
"""A Julian year."""


def uptime_s() -> float:
    """Return monotonic seconds that include suspension, if the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


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
    """Real time: seconds since the epoch that ignore changes of the system's clock."""

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


def iso_time(at: float, timespec: str = "seconds") -> str:
    """Return seconds since the epoch in ISO 8601, UTC; cut to ``timespec``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
