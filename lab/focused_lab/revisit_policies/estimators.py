"""Estimators of a page's change rate from visits that see only whether the page changed.

A visit after ``interval_s`` seconds reports one bit: changed or not. Several changes between two
visits look like one, so the plain ratio is too low for fast pages. Rates are changes per second.

Sources: Cho, Garcia-Molina, "Estimating frequency of change" (ACM TOIT 2003) for the ratio, the
bias-reduced logarithm, the last-modified estimator and frequency classes; Castillo, "Effective web
crawling" (PhD thesis 2004) for WIRE's form; Barbosa and others, "Looking at both the present and
the past" (WIDM 2005) for the model on page features; Cho, Roy, Adams, "Page quality" (SIGMOD 2005)
for the quality of a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from focused.durations import DAY_S


@dataclass(slots=True)
class CheckHistory:
    """The sums over one page's visits from which the estimators compute its rate."""

    checks: int = 0
    changes: int = 0
    watched_s: float = 0.0
    """Time between the first and the last visit."""
    changed_s: float = 0.0
    """The part of ``watched_s`` in intervals that ended with a change."""
    quiet_s: float = 0.0
    """Time known to be free of changes: unchanged intervals, and the time since the last change
    where a change has a date."""
    dated: int = 0
    """Changes whose date is known."""

    def add(self, interval_s: float, changed: bool, since_change_s: float | None = None) -> None:
        """Add a visit; ``since_change_s`` is the age of the last change if the server dated it."""
        self.checks += 1
        self.watched_s += interval_s
        if not changed:
            self.quiet_s += interval_s
            return
        self.changes += 1
        self.changed_s += interval_s
        if since_change_s is not None:
            self.dated += 1
            self.quiet_s += min(max(since_change_s, 0.0), interval_s)


RateEstimator = Callable[[CheckHistory], float]


def ratio_rate(history: CheckHistory) -> float:
    """Detected changes per time, X/T. Its limit is (1 - exp(-r)) f: too low for fast pages."""
    return history.changes / history.watched_s if history.watched_s > 0 else 0.0


def logarithmic_rate(history: CheckHistory) -> float:
    """The bias-reduced logarithm, -log((Y + 0.5) / (n + 0.5)) per mean interval.

    An unchanged page has the rate 0. The largest estimate after n visits is log(2n + 1) f.
    """
    if history.watched_s <= 0:
        return 0.0
    unchanged = history.checks - history.changes
    frequency = history.checks / history.watched_s
    return -math.log((unchanged + 0.5) / (history.checks + 0.5)) * frequency


def last_modified_rate(history: CheckHistory) -> float:
    """The rate from dates of the last change: X' / T with T the time known to be quiet.

    X' = (X - 1) - X / (n log(1 - X/n)) removes the bias of X / T. WIRE prints X' / (S T); that has
    the unit of a rate only if T is the quiet share of the S seconds, and then equals this.
    Changes without a date count as in :func:`grouped_likelihood_rate`, at the same mean interval.
    """
    if history.changes == 0 or history.quiet_s <= 0:
        return logarithmic_rate(history)
    if history.dated < history.changes:
        return grouped_likelihood_rate(history)
    checks, changes = history.checks, history.changes
    corrected = float(changes - 1)
    if changes < checks:
        corrected -= changes / (checks * math.log1p(-changes / checks))
    return corrected / history.quiet_s


def grouped_likelihood_rate(history: CheckHistory) -> float:
    """The maximum-likelihood rate as if all changed intervals had their mean length.

    A closed form on bounded state; exact for equal intervals. Half a change and half a quiet
    interval are added, as the logarithmic estimator does.
    """
    if history.watched_s <= 0:
        return 0.0
    mean_s = history.watched_s / history.checks
    changed_s = history.changed_s / history.changes if history.changes else mean_s
    quiet_s = history.watched_s - history.changed_s + 0.5 * mean_s
    return math.log1p(history.changes * changed_s / quiet_s) / changed_s


CLASS_INTERVALS_DAYS = (1.0, 7.0, 30.0, 120.0, 365.0)
"""Mean change intervals of the frequency classes: daily to yearly."""


@dataclass(slots=True)
class FrequencyClasses:
    """The probabilities that a page belongs to each class of change frequency, by Bayes' rule.

    Starts from ``prior``, shape (classes,), or from equal probabilities; each visit multiplies by
    its likelihood and the posterior becomes the next prior.
    """

    intervals_days: tuple[float, ...] = CLASS_INTERVALS_DAYS
    prior: Sequence[float] | None = None
    probabilities: list[float] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.intervals_days)
        start = self.prior if self.prior is not None else [1.0 / count] * count
        if len(start) != count:
            raise ValueError(f"{len(start)} prior probabilities for {count} classes")
        total = sum(start)
        self.probabilities = [each / total for each in start]

    def add(self, interval_s: float, changed: bool) -> None:
        """Update the probabilities by a visit after ``interval_s`` seconds."""
        updated = []
        for probability, days in zip(self.probabilities, self.intervals_days, strict=True):
            quiet = math.exp(-interval_s / (days * DAY_S))
            updated.append(probability * ((1.0 - quiet) if changed else quiet))
        total = sum(updated)
        if total > 0:  # underflow after a very long interval changes nothing
            self.probabilities = [each / total for each in updated]

    @property
    def most_likely(self) -> int:
        """The number of the most likely class."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)

    @property
    def rate(self) -> float:
        """The change rate of the most likely class, as Cho and Garcia-Molina use it."""
        return 1.0 / (self.intervals_days[self.most_likely] * DAY_S)

    @property
    def mean_rate(self) -> float:
        """The change rate averaged over the classes by their probabilities."""
        return sum(
            probability / (days * DAY_S)
            for probability, days in zip(self.probabilities, self.intervals_days, strict=True)
        )


class LinearRateModel:
    """A linear model of a page's change rate on its features, fitted online by least squares.

    Barbosa and others (2005) predict the rate of a page first from static features (links, images,
    size, depth, a Last-Modified header), then from its changes. One row is one visit: the
    features before it, and the bias-reduced rate that it showed. Ridge regression on running sums;
    solves again after ``refit_rows`` rows.
    """

    def __init__(self, features: int, ridge: float = 1.0, refit_rows: int = 200) -> None:
        self._ridge = ridge
        self._refit_rows = refit_rows
        self._gram = np.zeros((features + 1, features + 1))
        self._moment = np.zeros(features + 1)
        self._weights: list[float] = [0.0] * (features + 1)
        self._pending = 0
        self.rows = 0

    def add(self, features: Sequence[float], rate: float, weight: float = 1.0) -> None:
        """Add a row; ``weight`` is how much it counts, such as the length of the interval."""
        row = np.array([1.0, *features])
        self._gram += weight * np.outer(row, row)
        self._moment += weight * rate * row
        self.rows += 1
        self._pending += 1
        if self._pending >= self._refit_rows or self.rows in (1, 10, 50):
            self.refit()

    def refit(self) -> None:
        """Solve the normal equations of all rows so far."""
        penalty = np.eye(len(self._moment)) * self._ridge
        penalty[0, 0] = 1e-9  # the intercept is free
        self._weights = np.linalg.solve(self._gram + penalty, self._moment).tolist()
        self._pending = 0

    def predict(self, features: Sequence[float]) -> float:
        """Predict the rate; never negative."""
        intercept, *weights = self._weights
        total = intercept + sum(w * x for w, x in zip(weights, features, strict=True))
        return max(total, 0.0)


def page_quality(
    popularity_before: float, popularity_now: float, elapsed_s: float, visits_per_s: float
) -> float:
    """Estimate a page's quality from its popularity in two crawls (Cho, Roy, Adams 2005).

    Popularity grows as P(t) = Q / (1 + (Q/P(0) - 1) exp(-v Q t)), so Q = (dP/dt) / (v P) + P, with
    v visits per user and second at full popularity. A popular old page has Q = P; a young page
    that gains visitors fast has more.
    """
    if popularity_now <= 0 or elapsed_s <= 0:
        return max(popularity_now, 0.0)
    if popularity_before <= 0:
        return popularity_now
    # The logarithm's slope is exact for small P where a difference quotient is not.
    growth = math.log(popularity_now / popularity_before) / elapsed_s
    middle = math.sqrt(popularity_before * popularity_now)
    return max(growth / visits_per_s + middle, 0.0)
