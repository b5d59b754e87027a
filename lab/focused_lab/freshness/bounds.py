"""Bounds for revisit policies: what no crawler can know, and what no policy can exceed.

:func:`optimal` is the allocation of Cho and Garcia-Molina ("Effective page refresh policies for Web
crawlers", 2003) with each page's true change rate. Policies that follow bursts or signals may be
fresher. :func:`upper_bound` is the solution of a linear program over the true times of all changes,
which no policy can exceed.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from focused.revisit.policies import RevisitPolicyFactory
from focused.revisit.policy import RevisitInputs, Visit
from focused_lab.freshness.simulator import FreshnessResult, PageFreshness
from focused_lab.freshness.windows import PageLife, Window

_BUDGET_TIMES = 100
"""The budget is checked from so many times on, evenly spread over the window."""


class _Optimal:
    """Visit a page when the marginal freshness of its interval falls to the price.

    A page of rate r that is visited at intervals u is fresh (1 - exp(-ru)) / (ru) of the time. The
    derivative by the frequency 1/u is (1 - (1 + ru) exp(-ru)) / r, and the optimal allocation makes
    it equal for all pages. It never exceeds 1 / r: pages that change too fast are not visited.
    """

    follows_siblings = False
    forced_after = math.inf

    def __init__(self, window: Window) -> None:
        self._last: dict[int, float] = {}
        self._rates = [_true_rate(life, window.duration_s) for life in window.pages]

    def due_at(self, page: int, price: float) -> float:
        """Return when the marginal freshness reaches ``price``."""
        rate = self._rates[page]
        target = price * rate
        if not 0 < target < 1:
            return math.inf
        low, high = 0.0, 64.0
        for _ in range(40):
            middle = (low + high) / 2
            if 1 - (1 + middle) * math.exp(-middle) < target:
                low = middle
            else:
                high = middle
        return self._last[page] + high / rate

    def value(self, page: int, at: float) -> float:
        """Return the marginal freshness at the interval since the last visit."""
        rate = self._rates[page]
        if not rate:
            return 0.0
        expected = rate * (at - self._last[page])
        return (1 - (1 + expected) * math.exp(-expected)) / rate

    def change_probability(self, page: int, at: float) -> float:
        """Return the probability of a change under the Poisson model."""
        return -math.expm1(-self._rates[page] * (at - self._last[page]))

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch; weights are ignored."""
        self._last[page] = at

    def record(self, visit: Visit) -> None:
        """Note the time of the visit."""
        self._last[visit.page] = visit.at

    def take_moved(self) -> tuple[int, ...]:
        """Return nothing."""
        return ()

    def remove(self, page: int) -> None:
        """Forget a page."""
        del self._last[page]


def optimal(window: Window) -> RevisitPolicyFactory:
    """Return the factory of the optimal allocation with the true rates of the window's pages."""

    def make_policy(_: RevisitInputs) -> _Optimal:
        return _Optimal(window)

    return make_policy


def upper_bound(window: Window, mean_interval_s: float) -> FreshnessResult:
    """Return the freshness that no policy exceeds at a mean interval, by a linear program.

    A variable in [0, 1] for each change says whether the page is visited right after it; then the
    copy is fresh until the next change. Visits for the changes after a time t come after t, so they
    are at most as many as the budget allows from t to the end. Visits of pages that are gone cost
    nothing here, and the budget counts all pages that were ever created. Age, changes and visits of
    the result are 0.
    """
    fresh_s = np.zeros(len(window.pages))
    pages, times, gains = [], [], []
    budget_starts = np.linspace(0.0, window.duration_s, _BUDGET_TIMES, endpoint=False)
    # One more than the mean: visits are whole.
    budgets = np.ones(_BUDGET_TIMES)
    ends = np.array([min(life.deleted_at, window.duration_s) for life in window.pages])
    for number, life in enumerate(window.pages):
        bounds = (life.created_at, *life.changes, float(ends[number]))
        for change, (begin, end) in enumerate(pairwise(bounds)):
            gain = end - max(begin, window.warm_up_s)
            if gain <= 0:
                continue
            if change == 0:
                fresh_s[number] += gain  # the first fetch
            else:
                pages.append(number)
                times.append(begin)
                gains.append(gain)
        budgets += (
            window.duration_s - np.maximum(budget_starts, life.created_at)
        ) / mean_interval_s
    if gains:
        later = csr_array(np.asarray(times)[None, :] > budget_starts[:, None], dtype=np.float64)
        found = linprog(-np.array(gains), A_ub=later, b_ub=budgets, bounds=(0, 1), method="highs")
        np.add.at(fresh_s, pages, found.x * gains)
    return FreshnessResult(
        tuple(
            PageFreshness(
                life.site,
                time_s=max(float(ends[number]) - max(life.created_at, window.warm_up_s), 0.0),
                fresh_s=float(fresh_s[number]),
                age_s2=0.0,
                changes=0,
                caught=0,
                visits=0,
            )
            for number, life in enumerate(window.pages)
        )
    )


def _true_rate(life: PageLife, duration_s: float) -> float:
    """Return the page's events per second of its life within the window; a deletion is one."""
    events = len(life.changes) + (life.deleted_at < math.inf)
    time_s = min(life.deleted_at, duration_s) - life.created_at
    return events / time_s if time_s > 0 else 0.0
