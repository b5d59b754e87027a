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
from functools import lru_cache
from operator import add
from typing import NamedTuple

from focused.durations import DAY_S
from focused.kernels.change_hazard import HALF_LIFE_DAYS, activity_since

BINS = 24
_BINS_PER_MEAN_INTERVAL = 8
_ZEROS = (0.0,) * BINS
_ONES = (1.0,) * BINS
_record = struct.Struct(f"<d5f{2 * BINS}f")


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
    def empty(cls, at: float, bin_days: float) -> GroupActivity:
        """Return a group without visits."""
        return cls(at, 0.0, 0.0, 0.0, 0.0, bin_days, _ZEROS, _ZEROS)

    @classmethod
    def of_visit(
        cls, at: float, days: float, bin_days: float, *, changed: bool, changed_at: float | None
    ) -> GroupActivity:
        """Return the activity of one visit, ``days`` after the previous one of the page.

        ``changed_at`` is the time of the change, where a visit found one and the time is known.
        """
        mean_fade = mean_decay(days, HALF_LIFE_DAYS)
        # Positions are counted in bins, from the end of the newest bin into the past.
        end = math.floor(at / DAY_S / bin_days) + 1
        begin = end - at / DAY_S / bin_days
        stop = min(begin + days / bin_days, BINS)
        if stop <= 1:
            days_by_bin = (days, *_ZEROS[1:])
        else:
            first, whole, last = 1 - begin, int(stop) - 1, stop % 1
            shares = (first, *_ONES[:whole], last, *_ZEROS[whole + 2 :])
            days_by_bin = tuple([share * bin_days for share in shares[:BINS]])
        changes_by_bin, recent = _ZEROS, 0.0
        if changed_at is not None:
            number = int(end - changed_at / DAY_S / bin_days)
            changes_by_bin = tuple(float(each == number) for each in range(BINS))
            recent = decay((at - changed_at) / DAY_S, HALF_LIFE_DAYS)
        elif changed:
            changes_by_bin = tuple(each / days for each in days_by_bin)
            recent = mean_fade
        recent_days = days * mean_fade
        return cls(
            at, float(changed), days, recent, recent_days, bin_days, changes_by_bin, days_by_bin
        )

    @staticmethod
    @lru_cache(maxsize=1024)
    def unpack(record: bytes) -> GroupActivity:
        """Read a record."""
        at, changes, days, recent_changes, recent_days, bin_days, *bins = _record.unpack(record)
        by_bin = tuple(bins[:BINS]), tuple(bins[BINS:])
        return GroupActivity(at, changes, days, recent_changes, recent_days, bin_days, *by_bin)

    def pack(self) -> bytes:
        """Return the record of 220 bytes."""
        return _record.pack(*self[:6], *self.changes_by_bin, *self.days_by_bin)

    def merged(self, visit: GroupActivity) -> GroupActivity:
        """Add a visit. Bins of another width are dropped."""
        group = self
        if self.bin_days != visit.bin_days:
            group = self._replace(
                bin_days=visit.bin_days, changes_by_bin=_ZEROS, days_by_bin=_ZEROS
            )
        if group.at < visit.at:
            group = group._aged_until(visit.at)
        elif visit.at < group.at:
            visit = visit._aged_until(group.at)
        changes_by_bin = group.changes_by_bin
        if visit.changes:
            changes_by_bin = tuple(map(add, changes_by_bin, visit.changes_by_bin))
        return GroupActivity(
            group.at,
            group.changes + visit.changes,
            group.days + visit.days,
            group.recent_changes + visit.recent_changes,
            group.recent_days + visit.recent_days,
            group.bin_days,
            changes_by_bin,
            tuple(map(add, group.days_by_bin, visit.days_by_bin)),
        )

    def since(self, at: float) -> tuple[float, float]:
        """Return changes and page-days after a time, as far as the bins reach."""
        return activity_since(self, at)

    def _aged_until(self, at: float) -> GroupActivity:
        fade = decay((at - self.at) / DAY_S, HALF_LIFE_DAYS)
        width = self.bin_days * DAY_S
        passed = min(math.floor(at / width) - math.floor(self.at / width), BINS)
        changes_by_bin, days_by_bin = self.changes_by_bin, self.days_by_bin
        if passed:
            kept = BINS - passed
            changes_by_bin = (*_ZEROS[:passed], *changes_by_bin[:kept])
            days_by_bin = (*_ZEROS[:passed], *days_by_bin[:kept])
        return GroupActivity(
            at,
            self.changes,
            self.days,
            self.recent_changes * fade,
            self.recent_days * fade,
            self.bin_days,
            changes_by_bin,
            days_by_bin,
        )


def bin_days_for(mean_interval_days: float) -> float:
    """Return the width of the bins.

    A power of two: the bins keep their width while the mean interval changes a little.
    """
    return 2.0 ** round(math.log2(mean_interval_days / _BINS_PER_MEAN_INTERVAL))


def decay(days: float, half_life: float) -> float:
    """Return what is left after a time."""
    return math.exp(-math.log(2) / half_life * days)


def mean_decay(days: float, half_life: float) -> float:
    """Return the mean decay of an event that happened at any time within the last ``days``."""
    exponent = math.log(2) / half_life * days
    return -math.expm1(-exponent) / exponent
