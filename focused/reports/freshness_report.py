"""Estimate how fresh a crawl's collection is, from the outcomes of its revisits.

Freshness and age are those of Cho and Garcia-Molina ("Synchronizing a database to improve
freshness", SIGMOD 2000): a page is fresh while its stored version is the current one; its age is
the time since the first change that the crawl has not seen, 0 while it is fresh.

Whether a page changed after its last visit is unknown, so it is predicted: each page's change rate
has a gamma distribution around its host's rate, which is shrunk to that of all pages. Predictions
of that model for the visits made so far, each from the visits before it, are calibrated by the
visits' outcomes. Intervals come from a bootstrap over hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.archive.page_history import ENDS, VisitResult
from focused.durations import DAY_S, WEEK_S
from focused.reports.crawl_folder import CrawlFolder

FloatArray = NDArray[np.float64]
_Exposure = Mapping[str, Any] | pd.DataFrame | pd.Series

_CHANGED = (VisitResult.CHANGED, *ENDS)
_UNCHANGED = (VisitResult.IDENTICAL, VisitResult.COSMETIC, VisitResult.NOT_MODIFIED)

_PRIOR_INTERVAL_DAYS = 30.0
"""The mean time between changes that is assumed before the first visit."""
_PAGE_SHAPE = 0.5
"""Shape of the gamma distribution of change rates within a host: rates differ much."""

_REPLICATES = 1_000
_MIN_HOSTS, _MAX_GROUPS = 10, 1_000
_MAX_HOSTS_LISTED = 50
_RECENT_DAYS = 7.0
_BUDGET_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_RATE_BINS, _PRICES = 200, 400
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FreshnessReport:
    """The state of a collection at ``at``, in seconds since the epoch.

    ``pages`` counts the pages that are there, ``gone`` those that left. ``relevant`` is the
    freshness of the pages on topic, None without any. ``predicted`` is the mean probability of a
    change that the crawl predicted before its visits, ``observed`` the share that had changed.
    ``results`` counts all visits; ``visits_per_day`` are those of the last seven days.

    ``hosts`` are those with most changes: ``host``, ``pages``, ``visits``, ``changes``,
    ``change_rate`` (the mean of its pages, in changes a day) and ``freshness``. ``budgets`` say
    what visits a day buy: ``freshness`` is the average that ``pages_per_day`` can sustain,
    allocated optimally to pages of known Poisson rates; ``changes_found`` are the changed pages
    that one day finds.
    """

    at: float
    pages: int
    gone: int
    freshness: Estimate
    relevant: Estimate | None
    age_days: Estimate
    predicted: float
    observed: float
    visits_per_day: float
    results: Mapping[str, int]
    hosts: list[dict[Any, Any]]
    budgets: list[dict[str, float]]


def measure_freshness(crawl: CrawlFolder, seed: int = 0) -> FreshnessReport | None:
    """Estimate freshness and age as of the crawl's last visit; None without visits.

    ``seed`` is that of the bootstrap.
    """
    at = max(float(crawl.visits["at"].max()), float(crawl.pages["fetched_at"].max()))
    pages = crawl.pages[crawl.pages["first_seen"].notna()]
    there = pages[pages["gone_at"].isna()]
    told = _informative_visits(crawl.visits, pages)
    if told.empty or there.empty:
        return None
    calibration = _Calibration.fit(_rates_before(told), told)
    rates = _rates_now(told, there)
    elapsed = np.maximum(0.0, (at - there["last_seen"].to_numpy(float)) / DAY_S)
    stale = calibration.change_probability(rates, elapsed)
    age, squared_age = calibration.age_moments(rates, elapsed)
    intervals = _Intervals(told, calibration, np.random.default_rng(seed))
    on_topic = there["on_topic"].to_numpy(bool)
    recent = _recent_visits_per_day(crawl.visits, at)
    return FreshnessReport(
        at=at,
        pages=len(there),
        gone=len(pages) - len(there),
        freshness=intervals.freshness(stale),
        relevant=intervals.freshness(stale[on_topic]) if on_topic.any() else None,
        age_days=intervals.of_mean(age, squared_age),
        predicted=float(told["predicted"].mean()),
        observed=float(told["changed"].mean()),
        visits_per_day=recent,
        results={str(kind): int(n) for kind, n in crawl.visits["result"].value_counts().items()},
        hosts=_host_rows(told, there, calibration.rate(rates, told), stale),
        budgets=_budget_curve(
            calibration.rate(rates, told),
            calibration.change_probability(rates, elapsed + 0.5),
            recent,
        ),
    )


def _informative_visits(visits: pd.DataFrame, pages: pd.DataFrame) -> pd.DataFrame:
    """The visits that told whether a page had changed, with ``elapsed`` days and ``changed``.

    Visits of pages that were gone before are left out.
    """
    told = visits[visits["result"].isin([*_CHANGED, *_UNCHANGED, VisitResult.REAPPEARED])]
    told = told.sort_values("at", kind="stable")
    before = told.groupby("page")["result"].shift()
    told = told[~before.isin(list(ENDS)) & (told["result"] != VisitResult.REAPPEARED)]
    hosts = pages.set_index("seq")["host"]
    return told.assign(
        host=told["page"].map(hosts),
        changed=told["result"].isin(_CHANGED).astype(float),
        elapsed=np.maximum((told["at"] - told["previous_at"]) / DAY_S, 1e-6),
    ).dropna(subset=["host"])


@dataclass(frozen=True, slots=True)
class _Rates:
    """Gamma distributions of change rates: shapes, and rates in days; each of shape (pages,)."""

    shape: FloatArray
    days: FloatArray

    def hazard(self, elapsed: FloatArray) -> FloatArray:
        """Minus the logarithm of the probability of no change within ``elapsed`` days."""
        return np.asarray(self.shape * np.log1p(elapsed / self.days))


def _rates_from(every: _Exposure, host: _Exposure, page: _Exposure) -> _Rates:
    """The distributions by changes and days of exposure of all pages, of the host, of the page."""
    interval = (every["days"] + _PRIOR_INTERVAL_DAYS) / (every["changes"] + 1.0)
    interval = (host["days"] + interval) / (host["changes"] + 1.0)
    return _Rates(
        np.asarray(_PAGE_SHAPE + page["changes"]), np.asarray(_PAGE_SHAPE * interval + page["days"])
    )


def _exposure(told: pd.DataFrame) -> pd.DataFrame:
    """Changes, and days until the first: half of the interval if it had one."""
    days = told["elapsed"] * (1.0 - 0.5 * told["changed"])
    return pd.DataFrame({"changes": told["changed"], "days": days})


def _rates_before(told: pd.DataFrame) -> _Rates:
    """The distribution before each visit, by the visits before it."""
    own = _exposure(told)
    groups = (own, own.groupby(told["host"]), own.groupby(told["page"]))
    return _rates_from(*((group.cumsum() - own).clip(lower=0.0) for group in groups))


def _rates_now(told: pd.DataFrame, there: pd.DataFrame) -> _Rates:
    """The distribution of each page after all visits."""
    own = _exposure(told)

    def totals(key: str, keys: pd.Series[Any]) -> pd.DataFrame:
        found = own.groupby(told[key]).sum().reindex(keys)
        return found.fillna(0.0).reset_index(drop=True)

    return _rates_from(own.sum(), totals("host", there["host"]), totals("page", there["seq"]))


@dataclass(frozen=True, slots=True)
class _Calibration:
    """Calibrated probabilities: 1 - exp(-scale hazard**power), fitted to the visits' outcomes."""

    scale: float
    power: float
    predicted: FloatArray
    """The calibrated probability of a change at each visit."""

    @classmethod
    def fit(cls, before: _Rates, told: pd.DataFrame) -> _Calibration:
        changed = told["changed"].to_numpy()
        logs = np.log(np.maximum(before.hazard(told["elapsed"].to_numpy()), 1e-12))

        def loss(parameters: FloatArray) -> float:
            hazard = np.exp(np.minimum(parameters[0] + parameters[1] * logs, 5.0))
            gain = np.where(changed > 0, np.log(-np.expm1(-hazard) + 1e-12), -hazard)
            # Few visits change little: a prior of the weight of some ten visits.
            return float(-gain.sum() + 2.0 * ((parameters - (0.0, 1.0)) ** 2).sum())

        from scipy.optimize import minimize  # slow to import

        found = minimize(loss, np.array([0.0, 1.0]), method="Nelder-Mead").x
        hazard = np.exp(np.minimum(found[0] + found[1] * logs, 5.0))
        return cls(float(np.exp(found[0])), max(float(found[1]), 0.05), -np.expm1(-hazard))

    def change_probability(self, rates: _Rates, elapsed: FloatArray) -> FloatArray:
        """The probability of a change within ``elapsed`` days of the last visit."""
        return np.asarray(-np.expm1(-self.scale * rates.hazard(elapsed) ** self.power))

    def age_moments(self, rates: _Rates, elapsed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The expected age and squared age, in days, ``elapsed`` days after the last visit.

        With the time s since the visit, the age is the integral over s of whether the page changed
        before s.
        """
        mean, square = np.zeros(len(elapsed)), np.zeros(len(elapsed))
        for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
            since = elapsed * (node + 1) / 2
            part = weight / 2 * elapsed * self.change_probability(rates, since)
            mean += part
            square += 2 * part * (elapsed - since)
        return mean, square

    def rate(self, rates: _Rates, told: pd.DataFrame) -> FloatArray:
        """Each page's changes a day, by the probability of a change in a mean interval."""
        interval = np.full(len(rates.days), float(told["elapsed"].mean()))
        return np.asarray(self.scale * rates.hazard(interval) ** self.power / interval)


class _Intervals:
    """95% intervals of means over pages.

    A replicate multiplies predictions by the ratio of observed to predicted changes of resampled
    hosts (groups of pages where there are fewer than ten hosts), and adds the randomness of the
    pages' changes. Pages of a host change together, so the variance of that is multiplied by the
    dispersion of past changes, grouped by host and period.
    """

    def __init__(
        self, told: pd.DataFrame, calibration: _Calibration, rng: np.random.Generator
    ) -> None:
        self._rng = rng
        changed, predicted = told["changed"].to_numpy(), calibration.predicted
        by_host = told["host"].nunique() >= _MIN_HOSTS
        codes = pd.factorize(told["host" if by_host else "page"])[0] % _MAX_GROUPS
        groups = int(codes.max()) + 1
        draws = rng.multinomial(groups, np.full(groups, 1.0 / groups), _REPLICATES)
        observed, expected = np.bincount(codes, changed), np.bincount(codes, predicted)
        self._ratio = (draws @ observed + 1.0) / (draws @ expected + 1.0)
        # Visits whose intervals overlap see the same burst.
        period_s = max(WEEK_S, float(told["elapsed"].mean()) * DAY_S)
        periods = told.groupby(["host", told["at"] // period_s], sort=False)
        residuals = np.bincount(periods.ngroup().to_numpy(), changed - predicted)
        variance = float((predicted * (1.0 - predicted)).sum())
        self._dispersion = max(1.0, float((residuals**2).sum()) / max(variance, 1e-9))

    def of_mean(self, means: FloatArray, squares: FloatArray, most: float = np.inf) -> Estimate:
        """Estimate the mean of random values with these means and mean squares.

        ``most`` is the largest possible value.
        """
        value = float(means.mean())
        variance = self._dispersion * float((squares - means**2).sum()) / len(means) ** 2
        noise = self._rng.normal(0.0, np.sqrt(max(variance, 0.0)), _REPLICATES)
        replicates = np.clip(self._ratio * value + noise, 0.0, most)
        low, high = np.quantile(replicates, [0.025, 0.975])
        return Estimate(value, min(float(low), value), max(float(high), value))

    def freshness(self, stale: FloatArray) -> Estimate:
        """Estimate the share of fresh pages from the probabilities that they are stale."""
        found = self.of_mean(stale, stale, most=1.0)
        return Estimate(1.0 - found.value, 1.0 - found.high, 1.0 - found.low)


def _recent_visits_per_day(visits: pd.DataFrame, at: float) -> float:
    days = min(_RECENT_DAYS, max((at - float(visits["at"].min())) / DAY_S, 1 / 24))
    return float((visits["at"] > at - days * DAY_S).sum() / days)


def _host_rows(
    told: pd.DataFrame, there: pd.DataFrame, rate: FloatArray, stale: FloatArray
) -> list[dict[Any, Any]]:
    """The hosts with most changes a day."""
    pages = pd.DataFrame({"host": there["host"], "rate": rate, "fresh": 1.0 - stale})
    hosts = pages.groupby("host").agg(
        pages=("rate", "size"), change_rate=("rate", "mean"), freshness=("fresh", "mean")
    )
    visited = told.groupby("host")["changed"].agg(visits="size", changes="sum")
    hosts = hosts.join(visited).fillna(0).astype({"visits": int, "changes": int})
    load = (hosts["change_rate"] * hosts["pages"]).sort_values(ascending=False, kind="stable")
    most = hosts.loc[load.index[:_MAX_HOSTS_LISTED], _HOST_COLUMNS]
    rows: list[dict[Any, Any]] = most.reset_index().to_dict("records")
    return rows


_HOST_COLUMNS = ["pages", "visits", "changes", "change_rate", "freshness"]


def _budget_curve(rate: FloatArray, tomorrow: FloatArray, current: float) -> list[dict[str, float]]:
    """What multiples of the current budget buy.

    The optimal interval of a page of rate l at price m per visit has r = l I changes with
    1 - exp(-r) (1 + r) = m l (Cho and Garcia-Molina 2000).
    """
    budgets, freshness = optimal_freshness(rate)
    best = np.concatenate([[0.0], np.cumsum(np.sort(tomorrow)[::-1])])
    return [
        {
            "pages_per_day": float(per_day),
            "freshness": float(np.interp(per_day, budgets, freshness)),
            "changes_found": float(np.interp(per_day, np.arange(len(best)), best)),
        }
        for per_day in (factor * current for factor in _BUDGET_FACTORS)
        if per_day > 0
    ]


def optimal_freshness(rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return budgets in visits a day, ascending, and the freshness of their optimal allocation.

    ``rate`` holds each page's changes a day, above 0. Rates are rounded to 200 classes.
    """
    logs = np.log(rate)
    edges = np.linspace(logs.min() - 1e-9, logs.max() + 1e-9, _RATE_BINS + 1)
    bins = np.clip(np.digitize(logs, edges) - 1, 0, _RATE_BINS - 1)
    counts = np.bincount(bins, minlength=_RATE_BINS)
    kept = counts > 0
    classes = np.exp(np.bincount(bins, logs, _RATE_BINS)[kept] / counts[kept])
    counts = counts[kept]
    prices = np.geomspace(1e-6 / classes.max(), (1 - 1e-9) / classes.min(), _PRICES)[:, None]
    share = prices * classes
    from scipy.special import gammaincinv  # slow to import

    r = np.where(share < 1, gammaincinv(2.0, np.minimum(share, 1 - 1e-12)), np.inf)
    visits = (counts * classes / r).sum(axis=1)
    fresh = (counts * -np.expm1(-r) / r).sum(axis=1) / counts.sum()
    return visits[::-1], fresh[::-1]
