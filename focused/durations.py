"""Durations in seconds, a clock to measure them, and times as texts."""

from __future__ import annotations

import time
from datetime import UTC, datetime

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


def iso_time(at: float, timespec: str = "seconds") -> str:
    """Return seconds since the epoch in ISO 8601, UTC; cut to ``timespec``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
