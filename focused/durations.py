"""Durations in seconds."""

from __future__ import annotations

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
YEAR_S = 365.25 * DAY_S
"""A Julian year."""
