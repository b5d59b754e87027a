"""Simulate revisits: a policy visits the pages of a window at the pace of a budget.

The policy and the schedule are those of the crawler. All pages that exist at the start are fetched
at time 0; a page that is created later enters the collection at its creation. Visits are evenly
spaced: as many pages as the collection has are visited per mean interval. A deleted page stays in
the collection, stale, until a visit finds it gone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from operator import itemgetter

from focused.revisit.policies import RevisitPolicyFactory
from focused.revisit.policy import RevisitInputs, Visit
from focused.revisit.schedule import RevisitSchedule
from focused.revisit.signalled_policy import SignalledPolicy
from focused_lab.freshness.memory_schedule import MemorySchedule
from focused_lab.freshness.sitemaps import SiteList, Statement
from focused_lab.freshness.windows import PageLife, Window


@dataclass(frozen=True, slots=True)
class PageFreshness:
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
class FreshnessResult:
    """Freshness and age of the pages of a collection over the measured time."""

    pages: tuple[PageFreshness, ...]

    @property
    def freshness(self) -> float:
        """The mean share of fresh pages over time."""
        return sum(page.fresh_s for page in self.pages) / self.time_s

    @property
    def age_s(self) -> float:
        """The mean age over pages and time."""
        return sum(page.age_s2 for page in self.pages) / self.time_s

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
    def time_s(self) -> float:
        """The time that the pages were in the collection, summed over pages."""
        return sum(page.time_s for page in self.pages)


def simulate(
    make_policy: RevisitPolicyFactory,
    window: Window,
    mean_interval_s: float,
    *,
    seed: int = 0,
    min_interval_s: float = 0.0,
    dated: bool = False,
    lists: Sequence[SiteList] = (),
) -> FreshnessResult:
    """Run a policy over a window with one budget for all sites.

    With ``dated`` a visit that finds a change learns when the page changed last, as from a
    Last-Modified header. ``lists`` are read as the policy schedules it; a reading is a visit of the
    budget.
    """
    store = MemorySchedule()
    policy = SignalledPolicy(
        make_policy(RevisitInputs(mean_interval_s, store, seed)), store, mean_interval_s
    )
    schedule = RevisitSchedule(
        policy, store, mean_interval_s=mean_interval_s, min_interval_s=min_interval_s
    )
    pages = window.pages
    arrivals = sorted(range(len(pages)), key=lambda page: pages[page].created_at)
    arrived = 0
    visits: list[list[float]] = [[] for _ in pages]
    absent: set[int] = set()
    now = 0.0
    readers = {
        len(pages) + number: _ListReader(
            each, len(pages) + number, policy, schedule, visits, absent
        )
        for number, each in enumerate(lists)
    }
    for page, reader in readers.items():
        policy.add_list(
            page, page, reader.pages, 0.0, is_page=False, is_complete=reader.is_complete
        )
        schedule.add(page, page, page, 1.0, 0.0)
    started = False
    while True:
        while arrived < len(arrivals) and pages[arrivals[arrived]].created_at <= now:
            page = arrivals[arrived]
            life = pages[page]
            schedule.add(page, life.site, life.directory, 1.0, life.created_at)
            visits[page].append(life.created_at)
            arrived += 1
        if not started:
            for reader in readers.values():
                reader.read(0.0)
            started = True
        if len(schedule) <= len(readers):
            if arrived == len(arrivals):
                break
            now = pages[arrivals[arrived]].created_at
            continue
        now += mean_interval_s / (len(schedule) - len(readers))
        if now >= window.duration_s:
            break
        taken = schedule.take(now)
        if taken is None:  # All pages were visited within the minimal interval.
            continue
        if taken in readers:
            schedule.record(Visit(taken, now, readers[taken].read_at, changed=False))
            readers[taken].read(now)
            continue
        life, previous_at = pages[taken], visits[taken][-1]
        visits[taken].append(now)
        gone = life.deleted_at <= now
        past = bisect_right(life.changes, now)
        changed = past > bisect_right(life.changes, previous_at)
        schedule.record(
            Visit(
                taken,
                now,
                previous_at,
                changed=gone or changed,
                changed_at=life.changes[past - 1] if dated and changed and not gone else None,
            )
        )
        if gone:
            absent.add(taken)
            schedule.remove(taken)
    results = (
        measure_page(life, times, window.warm_up_s, window.duration_s)
        for life, times in zip(pages, visits, strict=True)
        if times
    )
    return FreshnessResult(tuple(results))


class _ListReader:
    """Reads a list: tells the policy what is new in it."""

    def __init__(
        self,
        site_list: SiteList,
        page: int,
        policy: SignalledPolicy,
        schedule: RevisitSchedule,
        visits: Sequence[Sequence[float]],
        absent: Set[int],
    ) -> None:
        self.pages = site_list.pages
        self.is_complete = site_list.is_complete
        self.read_at = 0.0
        self._statements = site_list.statements
        self._next = 0
        self._page = page
        self._policy = policy
        self._schedule = schedule
        self._visits = visits
        self._absent = absent
        self._early: list[Statement] = []

    def read(self, now: float) -> None:
        """Read what was stated since the last reading."""
        self.read_at = now
        stop = bisect_right(self._statements, now, lo=self._next, key=itemgetter(0))
        waiting, self._early = self._early, []
        for each in (*waiting, *self._statements[self._next : stop]):
            visits = self._visits[each.page]
            if each.page in self._absent:
                continue
            if not visits:
                self._early.append(each)
            elif each.changed_at is None:
                self._policy.unlist(each.page, self._page)
                self._schedule.reschedule(each.page)
            elif self._policy.state(each.page, self._page, visits[-1], each.changed_at, now):
                self._schedule.reschedule(each.page)
        self._next = stop


def measure_page(
    life: PageLife, visits: Sequence[float], since: float, until: float
) -> PageFreshness:
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
    return PageFreshness(life.site, time_s, fresh_s, age_s2, measured, caught, counted)
