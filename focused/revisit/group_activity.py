"""Recent visits and changes of a group of pages: those of a directory, or of a site.

A group counts the changes that visits found and the page-days that visits covered: in all, with
exponential decay, and in bins of time. A visit that finds a change spreads it evenly over the
interval since the previous visit, unless the time of the change is known.

The bins tell how often the pages of the group have changed since a given time: a page that was
visited before a burst of changes has probably changed; one that was visited after it has not.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from focused.durations import DAY_S

HALF_LIFE_DAYS = 60.0
BINS = 24
_BINS_PER_MEAN_INTERVAL = 8
_record = struct.Struct(f"<d5f{2 * BINS}f")
_RECORD_FIELDS = np.dtype(
    [
        ("at", "<f8"),
        ("changes", "<f4"),
        ("days", "<f4"),
        ("recent_changes", "<f4"),
        ("recent_days", "<f4"),
        ("bin_days", "<f4"),
        ("changes_by_bin", "<f4", BINS),
        ("days_by_bin", "<f4", BINS),
    ]
)


class GroupActivity(NamedTuple):
    """The visits and changes of one group."""

    at: float
    """Time of the last visit, in seconds."""
    changes: float
    days: float
    """Page-days between the visits of its pages."""
    recent_changes: float
    """Changes, decayed with :data:`HALF_LIFE_DAYS` to the last visit."""
    recent_days: float
    bin_days: float
    """Width of a bin."""
    changes_by_bin: tuple[float, ...]
    """Newest first. Bins begin at multiples of their width, and the newest holds ``at``."""
    days_by_bin: tuple[float, ...]

    @classmethod
    def empty(cls, at: float, mean_interval_days: float) -> GroupActivity:
        """Return a group without visits."""
        # A power of two: the bins keep their width while the mean interval changes a little.
        width = 2.0 ** round(math.log2(mean_interval_days / _BINS_PER_MEAN_INTERVAL))
        zeros = (0.0,) * BINS
        return cls(at, 0.0, 0.0, 0.0, 0.0, width, zeros, zeros)

    @classmethod
    def unpack(cls, record: bytes) -> GroupActivity:
        """Read a record."""
        at, changes, days, recent_changes, recent_days, bin_days, *bins = _record.unpack(record)
        by_bin = tuple(bins[:BINS]), tuple(bins[BINS:])
        return cls(at, changes, days, recent_changes, recent_days, bin_days, *by_bin)

    def pack(self) -> bytes:
        """Return the record of 220 bytes."""
        return _record.pack(*self[:6], *self.changes_by_bin, *self.days_by_bin)

    def with_visit(
        self, at: float, days: float, *, changed: bool, changed_at: float | None
    ) -> GroupActivity:
        """Add the visit of a page, ``days`` after the previous one.

        ``changed_at`` is the time of the change, where a visit found one and the time is known.
        """
        newest = max(self.at, at)
        fade = decay((newest - self.at) / DAY_S, HALF_LIFE_DAYS)
        mean_fade = mean_decay(days, HALF_LIFE_DAYS)
        changes, days_by_bin = self._bins_until(newest)
        # Positions are counted in bins, from the end of the newest bin into the past.
        end = math.floor(newest / DAY_S / self.bin_days) + 1
        position = end - at / DAY_S / self.bin_days
        length = days / self.bin_days
        is_spread = changed and changed_at is None
        for number in range(int(position), min(math.ceil(position + length), BINS)):
            overlap = min(position + length, number + 1) - max(position, number)
            days_by_bin[number] += overlap * self.bin_days
            if is_spread:
                changes[number] += overlap / length
        recent = 0.0
        if is_spread:
            recent = mean_fade
        elif changed_at is not None:
            recent = decay((newest - changed_at) / DAY_S, HALF_LIFE_DAYS)
            number = int(end - changed_at / DAY_S / self.bin_days)
            if number < BINS:
                changes[number] += 1.0
        return self._replace(
            at=newest,
            changes=self.changes + changed,
            days=self.days + days,
            recent_changes=self.recent_changes * fade + recent,
            recent_days=self.recent_days * fade + days * mean_fade,
            changes_by_bin=tuple(changes),
            days_by_bin=tuple(days_by_bin),
        )

    def since(self, at: float) -> tuple[float, float]:
        """Return changes and page-days after a time, as far as the bins reach."""
        number, share = self._position(at)
        return (
            sum(self.changes_by_bin[:number]) + share * self.changes_by_bin[number],
            sum(self.days_by_bin[:number]) + share * self.days_by_bin[number],
        )

    def _position(self, at: float) -> tuple[int, float]:
        """Return the bin of a time, and the share of the bin after it."""
        width = self.bin_days * DAY_S
        start = math.floor(self.at / width) * width
        if at >= start:
            return 0, max(self.at - at, 0.0) / max(self.at - start, 1.0)
        position = (start - at) / width
        number = math.ceil(position)
        return (BINS - 1, 1.0) if number >= BINS else (number, 1.0 - number + position)

    def _bins_until(self, at: float) -> tuple[list[float], list[float]]:
        """Return the bins, shifted so that the newest one holds ``at``."""
        width = self.bin_days * DAY_S
        passed = math.floor(at / width) - math.floor(self.at / width)
        if passed == 0:
            return list(self.changes_by_bin), list(self.days_by_bin)
        zeros = [0.0] * min(passed, BINS)
        kept = BINS - len(zeros)
        return [*zeros, *self.changes_by_bin[:kept]], [*zeros, *self.days_by_bin[:kept]]


def activity_of_pages(
    groups: Sequence[GroupActivity], positions: Any, last: Any
) -> tuple[Any, Any]:
    """Return fields of the groups of many pages, and changes and page-days since the pages' visits.

    ``positions`` are the groups of the pages, ``last`` the times of their last visits.
    """
    table = np.frombuffer(b"".join(group.pack() for group in groups), dtype=_RECORD_FIELDS)
    at, width = table["at"][positions], table["bin_days"][positions] * DAY_S
    start = np.floor(at / width) * width
    position = np.maximum((start - last) / width, 0.0)
    number = np.minimum(np.ceil(position).astype(np.intp), BINS - 1)
    in_newest = np.maximum(at - last, 0.0) / np.maximum(at - start, 1.0)
    share = np.where(last >= start, in_newest, np.minimum(1.0 - number + position, 1.0))
    since = []
    for name in ("changes_by_bin", "days_by_bin"):
        bins = table[name].astype(np.float64)
        before = np.cumsum(bins, axis=1) - bins
        since.append(before[positions, number] + share * bins[positions, number])
    fields = tuple(
        table[name][positions].astype(np.float64)
        for name in _RECORD_FIELDS.names[:5]  # type: ignore[index]
    )
    return fields, tuple(since)


def decay(days: float, half_life: float) -> float:
    """Return what is left after a time."""
    return math.exp(-math.log(2) / half_life * days)


def mean_decay(days: float, half_life: float) -> float:
    """Return the mean decay of an event that happened at any time within the last ``days``."""
    exponent = math.log(2) / half_life * days
    return -math.expm1(-exponent) / exponent
