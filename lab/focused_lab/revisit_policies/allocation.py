"""How often each page is visited, given its change rate: allocation rules.

A rule gives the marginal value of one more visit to a page, as a function of the time since the
last visit. A page is due when that value reaches the price of a download, and the price is the
Lagrange multiplier of the budget: all visited pages have the same marginal value. So the optimum is
found without a scan over the pages, by adjusting one number.

``rate``: changes per second; ``weight``: what the page counts; ``r``: changes per visit interval.

Sources: Cho, Garcia-Molina, "Synchronizing a database to improve freshness" (SIGMOD 2000) and
"Effective page refresh policies for Web crawlers" (ACM TODS 2003) for proportional and optimal
allocation; Azar and others, "Tractable near-optimal policies for crawling" (PNAS 2018); Kolobov and
others, "Staying up to date with online content changes" (NeurIPS 2019); Talim and others,
"Controlling the robots of Web search engines" (SIGMETRICS 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

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
