"""Revisit policies of crawlers: Nutch, Tianwang, WebFountain.

Nutch's AdaptiveFetchSchedule (Apache Nutch); Tianwang (Meng, Wang, Yan, "Web evolution and
incremental crawling", 2006); WebFountain (Edwards, McCurley, Tomlin, "An adaptive model for
optimizing performance of an incremental Web crawler", WWW 2001). These systems have intervals and
cycles of their own; here the price stretches all intervals alike, so that they meet the budget.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from focused.durations import DAY_S
from focused.revisit.policy import RevisitInputs, Visit
from focused_lab.revisit_policies.estimators import logarithmic_rate
from focused_lab.revisit_policies.rate_models import (
    LEAST_CHECKS,
    PAGE,
    PackedRecords,
    PageLists,
    PageVisits,
    StoredPolicy,
    add_visit,
    read_history,
    read_page_visits,
    smoothed_rate,
    write_history,
    write_page_visits,
)

FloatArray = NDArray[np.float64]


class NutchAdaptive(StoredPolicy):
    """Nutch's AdaptiveFetchSchedule: a changed page's interval shrinks, another's grows.

    With a date of the last change the interval is at least the time since that change, and the next
    visit is counted from a point between change and visit (``sync_delta``).
    """

    def __init__(
        self,
        inputs: RevisitInputs,
        increase: float = 0.2,
        decrease: float = 0.2,
        sync_share: float = 0.3,
        min_interval_s: float = 60.0,
        max_interval_s: float = 365 * DAY_S,
    ) -> None:
        super().__init__(inputs)
        self._pages = PackedRecords(inputs.records, PAGE, "<dff")  # counted from, weight, interval
        self._increase = increase
        self._decrease = decrease
        self._sync_share = sync_share
        self._min_interval_s = min_interval_s
        self._max_interval_s = max(max_interval_s, inputs.mean_interval_s)

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page with the default interval."""
        self._pages.put(page, at, weight, self._unit_s)

    def record(self, visit: Visit) -> None:
        """Shorten or lengthen the page's interval."""
        _, weight, interval_s = self._pages.read(visit.page)
        interval_s *= (1.0 - self._decrease) if visit.changed else (1.0 + self._increase)
        begin = visit.at
        if visit.changed_at is not None:
            since_s = visit.at - visit.changed_at
            interval_s = max(interval_s, since_s)
            begin -= since_s * self._sync_share
        interval_s = min(max(interval_s, self._min_interval_s), self._max_interval_s)
        self._pages.put(visit.page, begin, weight, interval_s)

    def due_at(self, page: int, price: float) -> float:
        """Return when the interval, stretched by the price, has passed."""
        begin, weight, interval_s = self._pages.read(page)
        return begin + interval_s * price / (self._unit_s * weight) if weight else math.inf

    def value(self, page: int, at: float) -> float:
        """Return the time since the last visit in intervals of the page, in mean intervals."""
        begin, weight, interval_s = self._pages.read(page)
        return float(self._unit_s * weight * max(at - begin, 0.0) / interval_s)

    def change_probability(self, page: int, at: float) -> float:
        """Return one half after the page's interval, where growth and shrinkage balance."""
        begin, _, interval_s = self._pages.read(page)
        return -math.expm1(-math.log(2) * max(at - begin, 0.0) / interval_s)


class Tianwang(StoredPolicy):
    """Tianwang's cycle: pages whose next crawl time falls into a cycle are assigned to it.

    The crawl interval is the reciprocal of the logarithmic estimate, at most ``longest`` mean
    intervals. Temporal locality: after a change the page is fetched again soon, for ``recent``
    visits. What a cycle leaves over comes first in the next, because it has been due for longest.
    Index pages first is the crawler's task: they bring new links.
    """

    _kind = "recent-change"

    def __init__(
        self,
        inputs: RevisitInputs,
        cycles_per_interval: int = 20,
        longest: float = 4.0,
        recent: int = 2,
        recent_share: float = 0.25,
    ) -> None:
        super().__init__(inputs)
        self._cycle_s = inputs.mean_interval_s / cycles_per_interval
        self._longest = longest
        self._recent = recent
        self._recent_share = recent_share

    def record(self, visit: Visit) -> None:
        """Count the visit, and note a change for the visits that follow it soon."""
        record = read_page_visits(self._records, visit.page)
        record.add(visit)
        write_page_visits(self._records, visit.page, record)
        left = self._recent if visit.changed else max(self._recent_left(visit.page) - 1, 0)
        self._records.put(self._kind, visit.page, bytes([left]))

    def due_at(self, page: int, price: float) -> float:
        """Return the start of the cycle into which the stretched crawl interval falls."""
        record = read_page_visits(self._records, page)
        if not record.weight:
            return math.inf
        interval_s = self._interval_s(page, record) * price / (self._unit_s * record.weight)
        due = record.last_at + interval_s
        return max(math.floor(due / self._cycle_s) * self._cycle_s, record.last_at)

    def value(self, page: int, at: float) -> float:
        """Return the time since the last visit in crawl intervals, in mean intervals."""
        record = read_page_visits(self._records, page)
        elapsed_s = max(at - record.last_at, 0.0)
        return self._unit_s * record.weight * elapsed_s / self._interval_s(page, record)

    def change_probability(self, page: int, at: float) -> float:
        """Return 1 - exp(-rate elapsed) with the smoothed rate."""
        record = read_page_visits(self._records, page)
        return -math.expm1(-smoothed_rate(record.history) * max(at - record.last_at, 0.0))

    def remove(self, page: int) -> None:
        """Forget a page."""
        super().remove(page)
        self._records.delete(self._kind, page)

    def _interval_s(self, page: int, record: PageVisits) -> float:
        rate = logarithmic_rate(record.history)
        longest_s = self._longest * self._unit_s
        interval_s = min(1 / rate, longest_s) if rate > 0 else longest_s
        if record.history.checks < LEAST_CHECKS:
            interval_s = self._unit_s
        return interval_s * (self._recent_share if self._recent_left(page) else 1.0)

    def _recent_left(self, page: int) -> int:
        record = self._records.get(self._kind, page)
        return 0 if record is None else record[0]


BUCKET_LIMITS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Changes per mean interval that divide WebFountain's buckets."""
PERIODS_AHEAD = 3


@dataclass(slots=True)
class _Bucket:
    """The pages of a bucket, how many of them are obsolete by the plan, and their interval."""

    pages: int
    obsolete: float
    interval_s: float


def plan_periods(
    pages: FloatArray, obsolete: FloatArray, rates: FloatArray, bandwidth: float, periods: int
) -> tuple[FloatArray, FloatArray]:
    """Plan the fetches per bucket in the next periods: WebFountain's non-linear programme.

    ``pages``, ``obsolete`` and ``rates`` (changes per period), shape (buckets,). Minimises the sum
    over periods of a growing weight times the obsolete pages at the end of the period, under the
    bandwidth per period. Returns the fetches, shape (periods, buckets), and the obsolete pages
    after the first period, shape (buckets,).
    """
    buckets = len(pages)
    quiet = np.exp(-rates)
    importance = np.arange(1, periods + 1, dtype=np.float64)
    present = np.maximum(pages, 1e-9)

    def after_period(stale: FloatArray, fetches: FloatArray) -> FloatArray:
        left = stale * (1.0 - np.minimum(fetches / present, 1.0))
        return np.asarray(pages - (pages - left) * quiet)

    def cost(plan: FloatArray) -> float:
        stale, total = obsolete, 0.0
        for weight, fetches in zip(importance, plan.reshape(periods, buckets), strict=True):
            stale = after_period(stale, fetches)
            total += weight * float(stale.sum())
        return total / float(pages.sum())

    bandwidth = min(bandwidth, float(pages.sum()))
    even = np.tile(pages * bandwidth / pages.sum(), periods)
    per_period = np.kron(np.eye(periods), np.ones(buckets))
    solved = minimize(
        cost,
        even,
        bounds=[(0.0, float(limit)) for limit in np.tile(pages, periods)],
        constraints=LinearConstraint(per_period, 0.0, bandwidth),
        method="SLSQP",
        options={"maxiter": 60, "ftol": 1e-7},
    )
    plan = solved.x if np.isfinite(solved.x).all() and solved.fun <= cost(even) else even
    fetches = np.clip(plan.reshape(periods, buckets), 0.0, pages)
    return fetches, after_period(obsolete, fetches[0])


class WebFountain(StoredPolicy):
    """Plans the fetches of each bucket of change rates anew in each period.

    Buckets, their mean rates and the obsolete pages in them are learned; a page moves between
    buckets with its own estimate. Bucket b with n pages and x fetches in a period is visited every
    n / x periods. New pages compete in the crawler, not here. State beside the page records: the
    sums per bucket.
    """

    def __init__(self, inputs: RevisitInputs) -> None:
        super().__init__(inputs)
        self._period_s = inputs.mean_interval_s / 2
        self._lists = PageLists(inputs.records, "bucket-page")
        self._period = -1
        self._plans = PackedRecords(inputs.records, "bucket-plan", "<Idd")
        self._buckets = [self._read_bucket(number) for number in range(len(BUCKET_LIMITS) + 1)]

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page to the bucket of pages without a history."""
        super().add(page, site, directory, weight, at)
        self._enter(page, self._bucket(PageVisits(at, weight, site, directory)))

    def record(self, visit: Visit) -> None:
        """Learn from a visit, and plan a new period when one begins."""
        record = read_page_visits(self._records, visit.page)
        before = self._bucket(record)
        history = read_history(self._records, "bucket", before)
        add_visit(history, visit)
        write_history(self._records, "bucket", before, history)
        record.add(visit)
        write_page_visits(self._records, visit.page, record)
        after = self._bucket(record)
        if after != before:
            self._leave(visit.page, before)
            self._enter(visit.page, after)
        period = int(visit.at // self._period_s)
        if period != self._period:
            self._period = period
            self._plan()

    def due_at(self, page: int, price: float) -> float:
        """Return when the bucket's interval, stretched by the price, has passed."""
        record = read_page_visits(self._records, page)
        interval_s = self._buckets[self._bucket(record)].interval_s
        if not record.weight:
            return math.inf
        return record.last_at + interval_s * price / (self._unit_s * record.weight)

    def value(self, page: int, at: float) -> float:
        """Return the time since the last visit in intervals of the bucket, in mean intervals."""
        record = read_page_visits(self._records, page)
        elapsed_s = max(at - record.last_at, 0.0)
        interval_s = self._buckets[self._bucket(record)].interval_s
        return self._unit_s * record.weight * elapsed_s / interval_s

    def change_probability(self, page: int, at: float) -> float:
        """Return 1 - exp(-rate elapsed) with the bucket's rate."""
        record = read_page_visits(self._records, page)
        rate = self._rates()[self._bucket(record)]
        return -math.expm1(-rate * max(at - record.last_at, 0.0))

    def remove(self, page: int) -> None:
        """Forget a page."""
        bucket = self._bucket(read_page_visits(self._records, page))
        self._leave(page, bucket)
        super().remove(page)

    def _bucket(self, record: PageVisits) -> int:
        if record.history.checks == 0:
            return 2
        rate = smoothed_rate(record.history) * self._unit_s
        return bisect_right(BUCKET_LIMITS, rate)

    def _enter(self, page: int, number: int) -> None:
        self._lists.add(number, page)
        self._buckets[number].pages += 1
        self._write_bucket(number)

    def _leave(self, page: int, number: int) -> None:
        self._lists.remove(number, page)
        bucket = self._buckets[number]
        bucket.obsolete -= bucket.obsolete / bucket.pages
        bucket.pages -= 1
        self._write_bucket(number)

    def _rates(self) -> Sequence[float]:
        """The change rate of each bucket; the middle of its limits before its first visit."""
        middles = (*BUCKET_LIMITS, 2 * BUCKET_LIMITS[-1])
        histories = (read_history(self._records, "bucket", each) for each in range(len(middles)))
        return [
            smoothed_rate(history) if history.checks else middle / self._unit_s
            for history, middle in zip(histories, middles, strict=True)
        ]

    def _plan(self) -> None:
        pages = np.array([bucket.pages for bucket in self._buckets], dtype=np.float64)
        obsolete = np.clip([bucket.obsolete for bucket in self._buckets], 0.0, pages)
        rates = np.array(self._rates()) * self._period_s
        bandwidth = pages.sum() * self._period_s / self._unit_s
        fetches, obsolete = plan_periods(pages, obsolete, rates, bandwidth, PERIODS_AHEAD)
        # Plans fetch a bucket in one period and not in the next; pages are visited evenly. A bucket
        # without fetches is visited every hundred periods, to keep its rate known.
        shares = np.maximum(fetches.mean(axis=0) / np.maximum(pages, 1.0), 0.01)
        for number, bucket in enumerate(self._buckets):
            bucket.obsolete = float(obsolete[number])
            interval_s = self._period_s / float(shares[number])
            if abs(math.log(interval_s / bucket.interval_s)) > 0.2:
                bucket.interval_s = interval_s
                self._moved += self._lists.pages(number)
            self._write_bucket(number)

    def _read_bucket(self, number: int) -> _Bucket:
        plan = self._plans.get(number)
        return _Bucket(0, 0.0, self._unit_s) if plan is None else _Bucket(*plan)

    def _write_bucket(self, number: int) -> None:
        bucket = self._buckets[number]
        self._plans.put(number, bucket.pages, bucket.obsolete, bucket.interval_s)
