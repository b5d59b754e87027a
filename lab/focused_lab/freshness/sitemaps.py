"""Sitemaps of simulated sites, with the faults of real ones.

A :class:`SiteList` is what a site states of its pages: when they changed, and when one can read so.
:func:`site_list` turns the pages of a window into one with a :class:`ListFault`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from focused.durations import DAY_S, HOUR_S, WEEK_S
from focused_lab.freshness.windows import PageLife, Window


class ListFault(StrEnum):
    """How the sitemap of a site states changes."""

    NONE = "none"
    LATE = "late"
    MISSING = "missing"
    ROUNDED = "rounded"
    FROZEN = "frozen"
    STOPS = "stops"
    TOUCHED = "touched"
    CLOCK = "clock"
    PARTIAL = "partial"


class Statement(NamedTuple):
    """From ``at`` on the list states that a page changed at ``changed_at``.

    None: the list does not name the page any more.
    """

    at: float
    page: int
    changed_at: float | None


@dataclass(frozen=True, slots=True)
class SiteList:
    """A list of one site; statements are in order of time.

    ``is_complete``: its silence may be news, as that of sitemaps and not of feeds.
    """

    site: int
    pages: int
    statements: Sequence[Statement]
    is_complete: bool = True


_LATE_S = 5 * DAY_S
_MISSING = 0.3
_BUILD_S = WEEK_S
_CLOCK_ERROR_S = 40 * DAY_S


def site_list(window: Window, site: int, fault: ListFault, rng: np.random.Generator) -> SiteList:
    """Return what a site's sitemap states of its pages in a window.

    - late: changes are stated five days later on average;
    - missing: three changes in ten are never stated;
    - rounded: times are those of the day's beginning;
    - frozen: no change is stated;
    - stops: no change is stated after two fifths of the window;
    - touched: all pages are stated as changed every week;
    - clock: the site's clock is forty days behind;
    - partial: half of the pages are listed.
    """
    found: list[Statement] = []
    listed = 0
    for number, life in enumerate(window.pages):
        if life.site != site or (fault is ListFault.PARTIAL and rng.random() < 0.5):
            continue
        listed += 1
        found += [
            Statement(at, number, stated)
            for at, stated in _stated(life, window.duration_s, fault, rng)
        ]
        if life.deleted_at < window.duration_s and fault not in (ListFault.FROZEN, ListFault.STOPS):
            found.append(Statement(life.deleted_at, number, None))
    return SiteList(site, listed, sorted(found, key=itemgetter(0)))


def _stated(
    life: PageLife, until: float, fault: ListFault, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """When changes of a page are stated, and the times that are stated."""
    created = life.created_at
    if fault is ListFault.TOUCHED:
        first = math.ceil(created / _BUILD_S) * _BUILD_S
        builds = np.arange(first, min(life.deleted_at, until), _BUILD_S).tolist()
        return [(created, created), *((at, at) for at in builds)]
    changes = [at for at in life.changes if fault is not ListFault.FROZEN]
    if fault is ListFault.STOPS:
        changes = [at for at in changes if at < 0.4 * until]
    if fault is ListFault.MISSING:
        changes = [at for at in changes if rng.random() >= _MISSING]
    delay_s = _LATE_S if fault is ListFault.LATE else HOUR_S
    later = [(at + float(rng.exponential(delay_s)), at) for at in changes]
    stated = [(created, created), *later]
    if fault is ListFault.ROUNDED:
        return [(at, changed_at // DAY_S * DAY_S) for at, changed_at in stated]
    if fault is ListFault.CLOCK:
        return [(at, changed_at - _CLOCK_ERROR_S) for at, changed_at in stated]
    return stated


_FAULTS = [fault for fault in ListFault if fault is not ListFault.NONE]
_LIES = [ListFault.FROZEN, ListFault.STOPS, ListFault.TOUCHED]


def _mixed(position: int) -> ListFault | None:
    """A third of the sites is right, a third has one of the faults, a third has no list."""
    third = position % 3
    if third == 0:
        return ListFault.NONE
    return _FAULTS[position // 3 % len(_FAULTS)] if third == 1 else None


def _same(fault: ListFault, _: int) -> ListFault | None:
    return fault


SIGNALS: Mapping[str, Callable[[int], ListFault | None]] = MappingProxyType(
    {
        "none": lambda _: None,
        "half": lambda position: ListFault.NONE if position % 2 == 0 else None,
        "all": lambda _: ListFault.NONE,
        "mixed": _mixed,
        "lying": lambda position: _LIES[position % len(_LIES)],
        **{fault.value: partial(_same, fault) for fault in _FAULTS},
    }
)
"""Faults of the sites' lists by their positions in a random order; None for a site without."""


def draw_lists(window: Window, signals: str, seed: int) -> list[SiteList]:
    """Return the lists of a window's sites for one of :data:`SIGNALS`."""
    rng = np.random.default_rng((seed, 1))
    order = rng.permutation(len(window.sites))
    found = []
    for position, site in enumerate(order.tolist()):
        fault = SIGNALS[signals](position)
        if fault is not None:
            found.append(site_list(window, site, fault, rng))
    return [each for each in found if each.pages]
