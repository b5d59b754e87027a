"""Simulate revisits: a policy visits the pages of a window at the pace of a budget.

The policy and the schedule are those of the crawler. All pages that exist at the start are fetched
at time 0; a page that is created later enters the collection at its creation. Visits are evenly
spaced: as many pages as the collection has are visited per mean interval. A deleted page stays in
the collection, stale, until a visit finds it gone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from focused.experiments.freshness.windows import PageLife, Window
from focused.revisit.policy import (
    MemoryRecords,
    PolicyInputs,
    RevisitPolicyFactory,
    Visit,
)
from focused.revisit.schedule import MemoryDueQueue, RevisitSchedule


@dataclass(frozen=True, slots=True)
class PageResult:
    """Integrals over the measured time of one page in the collection."""

    site: int
    time_s: float
    """Time in the collection."""
    fresh_s: float
    """Time for which the copy equalled the page."""
    age_s2: float
    """Integral of the age: the time since the first change that the copy lacks."""
    changes: int
    caught: int
    """Changes after which a visit came before the next change."""
    visits: int


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a simulation."""

    pages: tuple[PageResult, ...]

    @property
    def freshness(self) -> float:
        """The mean share of fresh pages over time."""
        return sum(page.fresh_s for page in self.pages) / self._time_s

    @property
    def age_s(self) -> float:
        """The mean age over pages and time."""
        return sum(page.age_s2 for page in self.pages) / self._time_s

    @property
    def caught(self) -> float:
        """The share of changes whose version was fetched."""
        changes = sum(page.changes for page in self.pages)
        return sum(page.caught for page in self.pages) / changes if changes else math.nan

    @property
    def visits(self) -> int:
        """The number of visits."""
        return sum(page.visits for page in self.pages)

    @property
    def _time_s(self) -> float:
        return sum(page.time_s for page in self.pages)


def simulate(
    make_policy: RevisitPolicyFactory,
    window: Window,
    mean_interval_s: float,
    *,
    seed: int = 0,
    min_interval_s: float = 0.0,
    max_interval_s: float = math.inf,
    dated: bool = False,
) -> Result:
    """Run a policy over a window with one budget for all sites.

    With ``dated`` a visit that finds a change learns when the page changed last, as from a
    Last-Modified header.
    """
    records = MemoryRecords()
    policy = make_policy(PolicyInputs(mean_interval_s, records, seed))
    schedule = RevisitSchedule(
        policy,
        MemoryDueQueue(),
        records,
        mean_interval_s=mean_interval_s,
        min_interval_s=min_interval_s,
        max_interval_s=max_interval_s,
    )
    pages = window.pages
    arrivals = sorted(range(len(pages)), key=lambda page: pages[page].created_at)
    arrived = 0
    visits: list[list[float]] = [[] for _ in pages]
    now = 0.0
    while True:
        while arrived < len(arrivals) and pages[arrivals[arrived]].created_at <= now:
            page = arrivals[arrived]
            life = pages[page]
            schedule.add(page, life.site, life.directory, 1.0, life.created_at)
            visits[page].append(life.created_at)
            arrived += 1
        if not len(schedule):
            if arrived == len(arrivals):
                break
            now = pages[arrivals[arrived]].created_at
            continue
        now += mean_interval_s / len(schedule)
        if now >= window.duration_s:
            break
        taken = schedule.take(now)
        assert taken is not None, "no visit is in flight"
        life, previous_at = pages[taken], visits[taken][-1]
        visits[taken].append(now)
        gone = life.deleted_at <= now
        past = bisect_right(life.changes, now)
        changed = past > bisect_right(life.changes, previous_at)
        schedule.record(
            Visit(
                taken,
                life.site,
                life.directory,
                now,
                previous_at,
                changed=gone or changed,
                changed_at=life.changes[past - 1] if dated and changed and not gone else None,
                gone=gone,
            )
        )
    results = (
        measure_page(life, times, window.warm_up_s, window.duration_s)
        for life, times in zip(pages, visits, strict=True)
        if times
    )
    return Result(tuple(results))


def measure_page(life: PageLife, visits: Sequence[float], since: float, until: float) -> PageResult:
    """Integrate freshness and age of a page between two times.

    ``visits`` start with the first fetch. After a visit at or after the page's deletion the page is
    no longer in the collection.
    """
    changes = life.changes if life.deleted_at == math.inf else (*life.changes, life.deleted_at)
    time_s = fresh_s = age_s2 = 0.0
    measured = caught = counted = 0
    for number, begin in enumerate(visits):
        if begin >= life.deleted_at:
            counted += begin >= since
            break
        counted += number > 0 and begin >= since
        end = visits[number + 1] if number + 1 < len(visits) else until
        position = bisect_right(changes, begin)
        stale_at = min(changes[position], end) if position < len(changes) else end
        last = bisect_right(changes, end)
        if last > position and number + 1 < len(visits) and end < life.deleted_at:
            caught += end >= since and changes[last - 1] >= since
        measured += sum(since <= at for at in life.changes[position : min(last, len(life.changes))])
        low, high = max(begin, since), min(end, until)
        if high <= low:
            continue
        time_s += high - low
        fresh_s += max(stale_at - low, 0.0)
        if high > stale_at:
            age_s2 += ((high - stale_at) ** 2 - max(low - stale_at, 0.0) ** 2) / 2
    return PageResult(life.site, time_s, fresh_s, age_s2, measured, caught, counted)
