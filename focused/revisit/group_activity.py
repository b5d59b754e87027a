"""Records of groups of pages: the recent visits and changes of a directory, or of a site.

A group counts the changes that visits found and the page-days that visits covered: in all, with
exponential decay, and in bins of time. A visit that finds a change spreads it evenly over the
interval since the previous visit, unless the time of the change is known.

The bins tell how often the pages of the group have changed since a given time: a page that was
visited before a burst of changes has probably changed; one that was visited after it has not. See
:data:`focused.kernels.change_hazard.Group`.
"""

from __future__ import annotations

import math
import struct

from focused.kernels.change_hazard import Group

BINS = 24
_BINS_PER_MEAN_INTERVAL = 8
_ZEROS = (0.0,) * BINS
_HEAD = 6
_record = struct.Struct(f"<d5f{2 * BINS}f")


def empty_group(at: float, bin_days: float) -> Group:
    """Return a group without visits."""
    return at, 0.0, 0.0, 0.0, 0.0, bin_days, _ZEROS, _ZEROS


def unpack_group(record: bytes) -> Group:
    """Read a record."""
    values = _record.unpack(record)
    at, changes, days, recent_changes, recent_days, bin_days = values[:_HEAD]
    changes_by_bin, days_by_bin = values[_HEAD : _HEAD + BINS], values[_HEAD + BINS :]
    return (
        at, changes, days, recent_changes, recent_days, bin_days, changes_by_bin, days_by_bin
    )  # fmt: skip


def pack_group(group: Group) -> bytes:
    """Return the record of 220 bytes."""
    return _record.pack(*group[:_HEAD], *group[6], *group[7])


def bin_days_for(mean_interval_days: float) -> float:
    """Return the width of the bins.

    A power of two: the bins keep their width while the mean interval changes a little.
    """
    return 2.0 ** round(math.log2(mean_interval_days / _BINS_PER_MEAN_INTERVAL))
