"""Bounds for revisit policies: policies that know what no crawler can know.

:func:`optimal` is the allocation of Cho and Garcia-Molina ("Effective page refresh policies for Web
crawlers", 2003) with each page's true change rate. :func:`clairvoyant` knows the time of each
change.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from focused.experiments.freshness.windows import PageLife, Window
from focused.revisit.policy import PolicyInputs, RevisitPolicyFactory, Visit


class _KnownPages:
    """What both bounds share: the pages of a window, and their last visits."""

    follows_siblings = False
    forced_after = math.inf

    def __init__(self, window: Window) -> None:
        self._lives = window.pages
        self._until = window.duration_s
        self._last: dict[int, float] = {}

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


class _Optimal(_KnownPages):
    """Visit a page when the marginal freshness of its interval falls to the price.

    A page of rate r that is visited at intervals u is fresh (1 - exp(-ru)) / (ru) of the time. The
    derivative by the frequency 1/u is (1 - (1 + ru) exp(-ru)) / r, and the optimal allocation makes
    it equal for all pages. It never exceeds 1 / r: pages that change too fast are not visited.
    """

    name = "optimal-true-rates"

    def __init__(self, window: Window) -> None:
        super().__init__(window)
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


class _Clairvoyant(_KnownPages):
    """Visit a page right after a change that is followed by a long time without one.

    The value of such a visit is the time that the copy stays fresh; with one price for all pages
    the freshness is the largest that the budget can buy.
    """

    name = "clairvoyant"

    def due_at(self, page: int, price: float) -> float:
        """Return the time of the next change that is followed by ``price`` seconds without one."""
        times = self._times(page)
        for number in range(bisect_right(times, self._last[page]), len(times) - 1):
            if times[number + 1] - times[number] >= price:
                return times[number]
        return math.inf

    def value(self, page: int, at: float) -> float:
        """Return how long the copy would stay fresh; 0 when the page has not changed."""
        times = self._times(page)
        next_one = bisect_right(times, at)
        if bisect_right(times, self._last[page]) == next_one or next_one == len(times):
            return 0.0
        return times[next_one] - at

    def change_probability(self, page: int, at: float) -> float:
        """Return 1 if the page has changed, else 0."""
        return float(self.value(page, at) > 0)

    def _times(self, page: int) -> tuple[float, ...]:
        life = self._lives[page]
        deletion = () if life.deleted_at == math.inf else (life.deleted_at,)
        return (*life.changes, *deletion, self._until)


def optimal(window: Window) -> RevisitPolicyFactory:
    """Return the factory of the optimal allocation with the true rates of the window's pages."""

    def make_policy(_: PolicyInputs) -> _Optimal:
        return _Optimal(window)

    return make_policy


def clairvoyant(window: Window) -> RevisitPolicyFactory:
    """Return the factory of the clairvoyant policy for the window's pages."""

    def make_policy(_: PolicyInputs) -> _Clairvoyant:
        return _Clairvoyant(window)

    return make_policy


def _true_rate(life: PageLife, duration_s: float) -> float:
    """Return the page's events per second of its life within the window; a deletion is one."""
    events = len(life.changes) + (life.deleted_at < math.inf)
    time_s = min(life.deleted_at, duration_s) - life.created_at
    return events / time_s if time_s > 0 else 0.0
