"""Durations in seconds, and a clock to measure them."""

from __future__ import annotations

import time

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
