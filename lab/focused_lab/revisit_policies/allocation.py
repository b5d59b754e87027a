"""How often each page is visited, given its change rate: allocation rules and closed forms.

A rule gives the marginal value of one more visit to a page, as a function of the time since the
last visit. A page is due when that value reaches the price of a download, and the price is the
Lagrange multiplier of the budget: all visited pages have the same marginal value. So the optimum is
found without a scan over the pages, by adjusting one number.

``rate``: changes per second; ``weight``: what the page counts; ``r``: changes per visit interval.

Sources: Cho, Garcia-Molina, "Synchronizing a database to improve freshness" (SIGMOD 2000) and
"Effective page refresh policies for Web crawlers" (ACM TODS 2003) for uniform, proportional and
optimal allocation and the orders of visits; the same, "The evolution of the Web and implications
for an incremental crawler" (VLDB 2000) for update modes; Azar and others, "Tractable near-optimal
policies for crawling" (PNAS 2018); Kolobov and others, "Staying up to date with online content
changes" (NeurIPS 2019); Talim and others, "Controlling the robots of Web search engines"
(SIGMETRICS 2001); Wolf and others, "Optimal crawling strategies for Web search engines" (WWW 2002);
Carney, Lee, Zdonik, "Scalable application-aware data freshening" (ICDE 2003).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincinv

FloatArray = NDArray[np.float64]

NEVER = math.inf
_SMALL = 1e-5  # below it, series replace differences that cancel


@dataclass(frozen=True, slots=True)
class AllocationRule:
    """The marginal value of a visit and its inverse, for one objective.

    ``value(rate, weight, elapsed_s)`` grows with the time since the last visit;
    ``interval(rate, weight, price)`` is the time at which it reaches the price, infinite if it
    never does.
    """

    name: str
    value: Callable[[float, float, float], float]
    interval: Callable[[float, float, float], float]


def _uniform_value(rate: float, weight: float, elapsed_s: float) -> float:
    return elapsed_s


def _uniform_interval(rate: float, weight: float, price: float) -> float:
    return price


def _proportional_value(rate: float, weight: float, elapsed_s: float) -> float:
    return weight * rate * elapsed_s


def _proportional_interval(rate: float, weight: float, price: float) -> float:
    demand = weight * rate
    return price / demand if demand > 0 else NEVER


def _freshness_value(rate: float, weight: float, elapsed_s: float) -> float:
    """The gain of freshness per visit: w (1 - exp(-r) (1 + r)) / rate with r = rate elapsed."""
    r = rate * elapsed_s
    if r < _SMALL:
        return weight * rate * elapsed_s * elapsed_s / 2
    return weight * (1.0 - math.exp(-r) * (1.0 + r)) / rate


def _freshness_interval(rate: float, weight: float, price: float) -> float:
    if rate <= 0 or weight <= 0:
        return NEVER
    share = price * rate / weight
    if share >= 1:
        return NEVER  # it changes too fast: no visit is worth the price
    # 1 - exp(-r) (1 + r) is the distribution function of the gamma distribution of shape 2.
    return float(gammaincinv(2.0, share)) / rate


def _age_value(rate: float, weight: float, elapsed_s: float) -> float:
    """The cut of age per visit: w (r^2 / 2 - 1 + exp(-r) (1 + r)) / rate^2."""
    r = rate * elapsed_s
    if r < 1e-3:
        return weight * rate * elapsed_s**3 * (1 / 3 - r / 8)
    return weight * (r * r / 2 - 1.0 + math.exp(-r) * (1.0 + r)) / (rate * rate)


def _age_interval(rate: float, weight: float, price: float) -> float:
    if rate <= 0 or weight <= 0:
        return NEVER
    target = price * rate * rate / weight
    r = math.sqrt(2 * target + 2)  # above the root, and for small targets the cubic bound is nearer
    if 4.8 * target < 1:
        r = min(r, (4.8 * target) ** (1 / 3))
    for _ in range(60):  # the function is convex: Newton's steps approach from above
        excess = _age_value(1.0, 1.0, r) - target
        step = excess / (r * -math.expm1(-r))
        r -= step
        if step <= 1e-12 * r:
            break
    return r / rate


def _random_freshness_value(rate: float, weight: float, elapsed_s: float) -> float:
    r = rate * elapsed_s
    return weight * r * elapsed_s / (1.0 + r) ** 2


def _random_freshness_interval(rate: float, weight: float, price: float) -> float:
    if rate <= 0 or weight <= 0:
        return NEVER
    frequency = math.sqrt(weight * rate / price) - rate
    return 1.0 / frequency if frequency > 0 else NEVER


def _harmonic_value(rate: float, weight: float, elapsed_s: float) -> float:
    r = rate * elapsed_s
    return weight * r * elapsed_s / (1.0 + r)


def _harmonic_interval(rate: float, weight: float, price: float) -> float:
    if rate <= 0 or weight <= 0:
        return NEVER
    return 2.0 / (math.sqrt(rate * rate + 4.0 * weight * rate / price) - rate)


UNIFORM = AllocationRule("uniform", _uniform_value, _uniform_interval)
"""The same interval for all pages."""
PROPORTIONAL = AllocationRule("proportional", _proportional_value, _proportional_interval)
"""As often as the page changes."""
OPTIMAL_FRESHNESS = AllocationRule("optimal-freshness", _freshness_value, _freshness_interval)
"""Most freshness with even intervals: equal dF/df; too fast pages get nothing."""
OPTIMAL_AGE = AllocationRule("optimal-age", _age_value, _age_interval)
"""Least age with even intervals; each page is visited."""
RANDOM_FRESHNESS = AllocationRule(
    "random-freshness", _random_freshness_value, _random_freshness_interval
)
"""Most freshness with visits at random times (Azar and others 2018): f = sqrt(w λ / μ) - λ."""
HARMONIC = AllocationRule("harmonic", _harmonic_value, _harmonic_interval)
"""Least harmonic staleness (Kolobov and others 2019): the n-th missed change costs 1/n;
f = (sqrt(λ² + 4 w λ / μ) - λ) / 2, so no page is starved."""


def polling_rule(mean_fetch_gap_s: float) -> AllocationRule:
    """The rule of a polling server with exponential gaps between its fetches (Talim and others).

    Frequencies are proportional to ln(1/h) with h = E[exp(-rate X)] = 1 / (1 + rate mean); for a
    constant gap that is proportional allocation.
    """

    def value(rate: float, weight: float, elapsed_s: float) -> float:
        return weight * math.log1p(rate * mean_fetch_gap_s) * elapsed_s

    def interval(rate: float, weight: float, price: float) -> float:
        demand = weight * math.log1p(rate * mean_fetch_gap_s)
        return price / demand if demand > 0 else NEVER

    return AllocationRule("polling", value, interval)


def allocate(
    rule: AllocationRule, rates: FloatArray, weights: FloatArray, budget: float
) -> FloatArray:
    """The visits per second of each page, shape (pages,), that add up to ``budget``.

    Pages that the rule never visits get 0. The sum is exact to one part in a million.
    """

    def frequencies(price: float) -> FloatArray:
        intervals = [
            rule.interval(float(rate), float(weight), price)
            for rate, weight in zip(rates, weights, strict=True)
        ]
        return np.array([1.0 / interval for interval in intervals])

    if not (rates > 0).any():
        return np.full(len(rates), budget / max(len(rates), 1))
    start = max(float(np.max(weights)), 1e-12) * len(rates) / budget

    def excess(log_price: float) -> float:
        return float(np.log(max(frequencies(math.exp(log_price)).sum(), 1e-300) / budget))

    low = high = math.log(start)
    while excess(low) < 0:
        low -= 2
    while excess(high) > 0:
        high += 2
    price = math.exp(brentq(excess, low, high, xtol=1e-9)) if high > low else start
    found = frequencies(price)
    return np.asarray(found * (budget / found.sum()))


def allocate_by_group(
    rule: AllocationRule,
    rates: FloatArray,
    weights: FloatArray,
    groups: NDArray[np.int64],
    budget: float,
) -> FloatArray:
    """Allocate to one representative per group and hand its frequency down to its pages.

    The representative has the group's mean rate and weight (Carney, Lee, Zdonik 2003); ``groups``
    holds each page's group number.
    """
    names, place = np.unique(groups, return_inverse=True)
    sizes = np.bincount(place)
    mean_rates = np.bincount(place, rates) / sizes
    mean_weights = np.bincount(place, weights) / sizes

    def excess(log_price: float) -> float:
        price = math.exp(log_price)
        total = sum(
            size / rule.interval(float(rate), float(weight), price)
            for size, rate, weight in zip(sizes, mean_rates, mean_weights, strict=True)
        )
        return math.log(max(total, 1e-300) / budget)

    low = high = math.log(max(float(mean_weights.max()), 1e-12) * len(rates) / budget)
    while excess(low) < 0:
        low -= 2
    while excess(high) > 0:
        high += 2
    price = math.exp(brentq(excess, low, high, xtol=1e-9) if high > low else low)
    per_group = np.array(
        [
            1.0 / rule.interval(float(mean_rates[g]), float(mean_weights[g]), price)
            for g in range(len(names))
        ]
    )
    found = per_group[place]
    return np.asarray(found * (budget / found.sum()))


def allocate_visits(
    rates: Sequence[float], weights: Sequence[float], visits: int, period_s: float
) -> list[int]:
    """The whole number of visits of each page in a period that gives the most freshness.

    Greedy, which is exact because the freshness of k even visits is concave in k: the discrete
    resource allocation of Wolf and others (2002).
    """

    def gain(page: int, visited: int) -> float:
        now, after = (
            float(freshness_fixed(rates[page] * period_s / k)) if k else 0.0
            for k in (visited, visited + 1)
        )
        return weights[page] * (after - now)

    counts = [0] * len(rates)
    queue = [(-gain(page, 0), page) for page in range(len(rates)) if rates[page] > 0]
    heapq.heapify(queue)
    for _ in range(visits if queue else 0):
        page = queue[0][1]
        counts[page] += 1
        heapq.heapreplace(queue, (-gain(page, counts[page]), page))
    return counts


# Time averages by the order of visits (Cho and Garcia-Molina 2000). r: changes per interval.


def _fresh_share(r: FloatArray | float) -> FloatArray:
    """(1 - exp(-r)) / r, and 1 for r = 0."""
    r = np.asarray(r, dtype=np.float64)
    return np.where(r < 1e-12, 1.0, -np.expm1(-r) / np.maximum(r, 1e-12))


def freshness_fixed(r: FloatArray | float) -> FloatArray:
    """Freshness of a page visited at even intervals."""
    return _fresh_share(r)


def freshness_random(r: FloatArray | float) -> FloatArray:
    """Freshness of a page visited once in each round, at a random time of the round."""
    r = np.maximum(np.asarray(r, dtype=np.float64), 1e-6)
    return np.asarray((1.0 - _fresh_share(r) ** 2) / r)


def freshness_purely_random(r: FloatArray | float) -> FloatArray:
    """Freshness of a page visited by a Poisson process."""
    return np.asarray(1.0 / (1.0 + np.asarray(r, dtype=np.float64)))


def age_fixed(r: FloatArray | float, interval_s: float) -> FloatArray:
    """Age of a page visited at even intervals."""
    r = np.maximum(np.asarray(r, dtype=np.float64), 1e-6)
    return np.asarray(interval_s * (0.5 - (1.0 - _fresh_share(r)) / r))


def age_random(r: FloatArray | float, interval_s: float) -> FloatArray:
    """Age of a page visited once in each round, at a random time of the round."""
    r = np.maximum(np.asarray(r, dtype=np.float64), 1e-3)
    last = (_fresh_share(r) / r) ** 2
    return np.asarray(interval_s * (1 / 3 + (0.5 - 1.0 / r) ** 2 - last))


def age_purely_random(r: FloatArray | float, interval_s: float) -> FloatArray:
    """Age of a page visited by a Poisson process."""
    r = np.asarray(r, dtype=np.float64)
    return np.asarray(interval_s * r / (1.0 + r))


@dataclass(frozen=True, slots=True)
class UpdateMode:
    """How a crawl updates its collection (Cho and Garcia-Molina, VLDB 2000).

    Each cycle fetches each page once: over the whole cycle (steady), or in its first ``batch_s``
    seconds (batch). A fetched page replaces the old copy at once (in-place), or the whole new
    collection replaces the old one at the end of the crawl (shadowed).
    """

    crawl: Literal["steady", "batch"]
    update: Literal["in-place", "shadowed"]
    cycle_s: float
    batch_s: float

    @property
    def crawl_s(self) -> float:
        """How long the crawl of a cycle takes."""
        return self.cycle_s if self.crawl == "steady" else self.batch_s

    def freshness(self, rate: float) -> float:
        """The time-averaged freshness of pages of this change rate."""
        share = float(_fresh_share(rate * self.cycle_s))
        if self.update == "in-place":
            return share
        return share * float(_fresh_share(rate * self.crawl_s))

    def age_s(self, rate: float) -> float:
        """The time-averaged age: the mean age of the copies, less the mean time they were fresh."""
        mean_copy_s = self.cycle_s / 2
        if self.update == "shadowed":
            mean_copy_s += self.crawl_s / 2
        if rate * mean_copy_s < 1e-6:
            return 0.0
        return mean_copy_s - (1.0 - self.freshness(rate)) / rate


def optimal_sample_size(
    shares: Sequence[float], site_pages: float, fetched_share: float, bins: int = 20
) -> int:
    """The pages to sample per site before the best sites are fetched (Cho and Ntoulas 2002).

    ``shares``: the share of changed pages of each site; ``site_pages``: pages per site (N);
    ``fetched_share``: the part of all pages that the budget fetches (r). The size is
    sqrt(N r f(t) / (6 (m - a))): t the share of the worst site that is fetched, f(t) the density of
    the sites there, m the mean share above t and a the mean of all. At least 1, at most N.
    """
    ordered = np.sort(np.asarray(shares, dtype=np.float64))[::-1]
    if not len(ordered) or site_pages < 1:
        return 1
    best = ordered[: max(1, round(fetched_share * len(ordered)))]
    threshold, mean_best, mean_all = float(best[-1]), float(best.mean()), float(ordered.mean())
    width = 1.0 / bins
    density = np.count_nonzero(np.abs(ordered - threshold) <= width / 2) / (len(ordered) * width)
    if mean_best - mean_all < 1e-9:
        return 1  # all sites are alike: any sample is wasted
    size = math.sqrt(site_pages * fetched_share * density / (6 * (mean_best - mean_all)))
    return int(min(max(round(size), 1), site_pages))


def staleness_of_gaps(gaps_s: FloatArray, rate: float) -> float:
    """The share of time that a page is stale when visits are a renewal process with these gaps.

    ``gaps_s`` is a sample of the gap distribution, shape (gaps,); Wolf and others (2002):
    1 - E[1 - exp(-rate G)] / (rate E[G]).
    """
    if rate <= 0:
        return 0.0
    return float(1.0 - np.mean(-np.expm1(-rate * gaps_s)) / (rate * np.mean(gaps_s)))
