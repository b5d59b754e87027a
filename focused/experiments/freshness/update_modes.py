"""Simulate how a crawl updates its collection: steady or batch, in-place or shadowed.

:class:`focused.revisit.allocation.UpdateMode` has the closed forms for Poisson pages; here the same
four modes run over any change times (Cho and Garcia-Molina, "The evolution of the Web and
implications for an incremental crawler", VLDB 2000).

Freshness of a page is 1 while its copy in the collection equals it; that of the collection is the
mean over pages, and over time. Age is 0 while the copy is fresh. For a stale copy it is the time
since the first change that the copy lacks (Cho and Garcia-Molina), or since the last modification
of the page (as Meng, Wang and Yan write).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from focused.revisit.allocation import FloatArray, UpdateMode


@dataclass(frozen=True, slots=True)
class CollectionState:
    """Time averages of each page, shape (pages,)."""

    freshness: FloatArray
    age_s: FloatArray

    @property
    def collection_freshness(self) -> float:
        """The mean freshness over pages."""
        return float(self.freshness.mean())

    @property
    def collection_age_s(self) -> float:
        """The mean age over pages."""
        return float(self.age_s.mean())


def simulate_update_mode(
    changes: Sequence[Sequence[float]],
    mode: UpdateMode,
    cycles: int,
    age: Literal["first-missed-change", "last-modification"] = "first-missed-change",
) -> CollectionState:
    """Update a collection of pages for some cycles; the first two are not measured.

    ``changes`` holds the sorted change times of each page, from 0. Pages are fetched in the order
    of their numbers, evenly spaced over the crawl of each cycle.
    """
    if cycles < 3:
        raise ValueError("the first two cycles are not measured: simulate three or more")
    since, until = 2 * mode.cycle_s, cycles * mode.cycle_s
    freshness, ages = np.zeros(len(changes)), np.zeros(len(changes))
    for page, times in enumerate(changes):
        offset = mode.crawl_s * (page + 0.5) / len(changes)
        moments = np.append(np.asarray(times, dtype=np.float64), np.inf)
        for fetched_at, begin, end in _copies(mode, offset, cycles):
            begin, end = max(begin, since), min(end, until)
            if end <= begin:
                continue
            first = int(np.searchsorted(moments, fetched_at, side="right"))
            stale_at = max(float(moments[first]), begin)
            freshness[page] += min(stale_at, end) - begin
            if stale_at >= end:
                continue
            if age == "first-missed-change":
                ages[page] += _integral(float(moments[first]), stale_at, end)
            else:
                ages[page] += _age_since_last(moments, first, stale_at, end)
    return CollectionState(freshness / (until - since), ages / (until - since))


def _copies(mode: UpdateMode, offset: float, cycles: int) -> Iterator[tuple[float, float, float]]:
    """Yield when each copy was fetched, entered the collection and left it."""
    shown = offset if mode.update == "in-place" else mode.crawl_s
    for cycle in range(cycles):
        start = cycle * mode.cycle_s
        yield start + offset, start + shown, start + mode.cycle_s + shown


def _integral(since: float, begin: float, end: float) -> float:
    """The integral of the time since a moment."""
    return ((end - since) ** 2 - (begin - since) ** 2) / 2


def _age_since_last(moments: FloatArray, first: int, begin: float, end: float) -> float:
    total, position = 0.0, first
    while moments[position] < end:
        low = max(float(moments[position]), begin)
        high = min(float(moments[position + 1]), end)
        if high > low:
            total += _integral(float(moments[position]), low, high)
        position += 1
    return total
