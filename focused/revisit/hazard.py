"""The hazard model: predict from recent activity whether a page has changed, learned online.

The probability that a page changed since its last visit is 1 - exp(-L), where log L is linear in
features: the time since the last visit, the page's change rate, its recent changes, and the recent
changes of its directory and its site. Real changes come in bursts that the pages of a site share,
so the activity of the site carries most of the information.

The weights are learned from the crawl's own visits, by Newton steps in batches under a Gaussian
prior. The value of a visit is (1 - exp(-L))² u / L, where u is the time since the last visit. For a
constant rate L / u that is close to the marginal freshness of the optimal allocation by Cho and
Garcia-Molina ("Effective page refresh policies for Web crawlers", 2003).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from operator import mul
from types import SimpleNamespace
from typing import Any

import numpy as np

from focused.durations import DAY_S
from focused.revisit.policy import PolicyInputs, Visit

FEATURES = (
    "constant",
    "log time since the last visit",
    "log change rate",
    "page's activity, 7 days",
    "page's activity, 30 days",
    "page's activity, 120 days",
    "directory's activity, 1 day",
    "directory's activity, 7 days",
    "directory's activity, 60 days",
    "site's activity, 1 day",
    "site's activity, 7 days",
    "site's activity, 60 days",
    "log quiet time",
    "log age",
)
"""Activity is the log of recent changes by those that the long-run rate predicts; the days are its
half-life. Quiet time is the time since the last change, in units of the mean time between two."""
_LOG_TIME = 1
_PRIOR_MEAN = (0.0, 0.8, 0.8, *(0.0,) * (len(FEATURES) - 3))
_PRIOR_PRECISION = 30.0
_CONSTANT_PRECISION = 1.0
_BATCH = 50
"""Visits per Newton step."""
_PRIOR_DAYS = 200.0
"""Days between two changes of a page, before any visit."""
_PRIOR_CHANGES = 2.0
"""A group's rate starts from that of the group above, as if it had so many changes."""
_SMOOTHING = 0.5
_MAX_LOG_HAZARD = 6.0
_SHORTEST_DAYS = 60.0 / DAY_S
_MAX_CHANGES = 0xFFFF
_LONGEST = 1_000.0
"""Due times are computed up to so many mean intervals."""
_CROSSING_STEPS = 4
_PRECISE = 0.001
"""A step in log time after which a crossing is precise enough."""
_LN2 = math.log(2)

_PAGE_FIELDS = np.dtype(
    [
        ("site", "<u4"),
        ("directory", "<u4"),
        ("weight", "<f4"),
        ("last", "<u4"),  # seconds
        ("observed", "<f4"),  # days between the first and the last visit
        ("quiet", "<f4"),  # days between the last change and the last visit
        ("recent_7", "<f2"),  # changes, decayed with a half-life of 7 days to the last visit
        ("recent_30", "<f2"),
        ("recent_120", "<f4"),
        ("changes", "<u2"),
    ]
)
_page = struct.Struct("<IIfIffeefH")
# Time of the last visit; changes and days observed: with half-lives of 1, 7, 60 days, and in all.
_group = struct.Struct("<dffffffff")
_model = struct.Struct(f"<{len(FEATURES) * (len(FEATURES) + 1)}d")

# Features and due times are computed for one page with ``math``, for many with NumPy.
_SCALAR: Any = SimpleNamespace(
    exp=math.exp, log=math.log, expm1=math.expm1, maximum=max, minimum=min
)
_Context = tuple[Any, Any, Any, Any, Any, Any]
"""Records of page, directory and site; change rates of site, directory and page per day."""


class Hazard:
    """The online hazard model, a :class:`focused.revisit.policy.RevisitPolicy`.

    Stores 34 bytes per page, 40 per directory and site, and one model of 1.7 kB.
    """

    name = "hazard"
    follows_siblings = True
    forced_after = 3.0

    def __init__(self, inputs: PolicyInputs) -> None:
        self._records = inputs.records
        self._mean_days = inputs.mean_interval_s / DAY_S
        self._weights: list[float] = list(_PRIOR_MEAN)
        self._precision = np.eye(len(FEATURES)) * _PRIOR_PRECISION
        self._precision[0, 0] = _CONSTANT_PRECISION
        self._batch: list[tuple[Sequence[float], bool]] = []
        self._evaluated: tuple[int, float, _Context, Sequence[float]] | None = None
        """The last evaluation: a page is valued, and then its visit is recorded."""
        self._now = 0.0
        self._all = self._group("all", 0)
        self._now = self._all[0]
        model = self._records.get("model", 0)
        if model is not None:
            values = _model.unpack(model)
            self._weights = list(values[: len(FEATURES)])
            shape = (len(FEATURES), len(FEATURES))
            self._precision = np.array(values[len(FEATURES) :]).reshape(shape)

    @property
    def weights(self) -> Sequence[float]:
        """The weights of :data:`FEATURES`."""
        return tuple(self._weights)

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        self._evaluated = None
        self._now = max(self._now, at)
        record = _page.pack(site, directory, weight, int(at), 0.0, 0.0, 0.0, 0.0, 0.0, 0)
        self._records.put("page", page, record)

    def record(self, visit: Visit) -> None:
        """Learn from a visit, and update the records of page, directory and site."""
        # The features must not know the outcome.
        context, features = self._evaluate(visit.page, visit.at)
        self._batch.append((features, visit.changed))
        self._evaluated = None
        self._now = max(self._now, visit.at)
        site, directory, weight, last, observed, quiet, r7, r30, r120, changes = context[0]
        days = max((visit.at - last) / DAY_S, _SHORTEST_DAYS)
        changed = float(visit.changed)
        since = days / 2 if visit.changed_at is None else (visit.at - visit.changed_at) / DAY_S
        # A change counts by its age; if that is unknown, by the mean over the interval.
        half_lives = (1, 7, 30, 60, 120)
        credits = [_mean_decay(days, half_life) for half_life in half_lives]
        e1, e7, _, e60, _ = (days * credit for credit in credits)
        if not visit.changed:
            credits = [0.0] * len(half_lives)
        elif visit.changed_at is not None:
            credits = [_decay(since, half_life) for half_life in half_lives]
        k1, k7, k30, k60, k120 = credits
        self._records.put(
            "page",
            visit.page,
            _page.pack(
                site,
                directory,
                weight,
                int(visit.at),
                observed + days,
                since if visit.changed else quiet + days,
                r7 * _decay(days, 7) + k7,
                r30 * _decay(days, 30) + k30,
                r120 * _decay(days, 120) + k120,
                min(changes + visit.changed, _MAX_CHANGES),
            ),
        )
        for kind, number, group in (
            ("site", site, context[2]),
            ("directory", directory, context[1]),
            ("all", 0, self._all),
        ):
            at, c1, d1, c7, d7, c60, d60, c, d = group
            passed = max(visit.at - at, 0.0) / DAY_S
            f1, f7, f60 = _decay(passed, 1), _decay(passed, 7), _decay(passed, 60)
            record = _group.pack(
                max(at, visit.at),
                c1 * f1 + k1,
                d1 * f1 + e1,
                c7 * f7 + k7,
                d7 * f7 + e7,
                c60 * f60 + k60,
                d60 * f60 + e60,
                c + changed,
                d + days,
            )
            self._records.put(kind, number, record)
        self._all = self._group("all", 0)
        if len(self._batch) >= _BATCH:
            self._learn()

    def due_at(self, page: int, price: float) -> float:
        """Return when the value of a visit reaches ``price``; infinity without a weight."""
        evaluated = self._evaluated
        if evaluated is not None and evaluated[0] == page:
            # A page that was valued is due soon.
            context, features = evaluated[2], evaluated[3]
        else:
            context = self._context(page)
            features = _features(_SCALAR, context, context[0][3] + self._mean_days * DAY_S)
        weight, last = context[0][2], context[0][3]
        if not weight:
            return math.inf
        log_price = math.log(price / weight)
        longest = math.log(self._mean_days * _LONGEST)
        # log L is nearly linear in log time: two evaluations are enough.
        first, at_first = features[_LOG_TIME], self._log_hazard(features)
        slope = self._slope()
        second = _crossing(_SCALAR, first, at_first, slope, log_price, longest)
        if abs(second - first) < 0.05:
            return float(last + math.exp(second) * DAY_S)
        features = _features(_SCALAR, context, last + math.exp(second) * DAY_S)
        at_second = self._log_hazard(features)
        slope = min(max((at_second - at_first) / (second - first), 0.1), 1.0)
        crossing = _crossing(_SCALAR, second, at_second, slope, log_price, longest)
        return float(last + math.exp(crossing) * DAY_S)

    def due_at_many(self, pages: Sequence[int], prices: Sequence[float]) -> Sequence[float]:
        """Return due times of pages of one site; accurate for those that are due about now."""
        records = self._records.get_many("page", pages)
        states = np.frombuffer(b"".join(filter(None, records)), dtype=_PAGE_FIELDS)
        if len(states) < len(pages):
            raise KeyError(pages[records.index(None)])
        numbers, position = np.unique(states["directory"], return_inverse=True)
        directories = np.array([self._group("directory", int(number)) for number in numbers])
        site = self._group("site", int(states["site"][0]))
        state = [states[name].astype(np.float64) for name in _PAGE_FIELDS.fields or ()]
        context = self._with_rates(state, directories.T[:, position], site)
        weight, last = np.maximum(state[2], 1e-30), state[3]
        features = _features(np, context, self._now)
        log_hazard = np.minimum(sum(map(mul, features, self._weights)), _MAX_LOG_HAZARD)
        log_price = np.log(np.array(prices) / weight)
        longest = math.log(self._mean_days * _LONGEST)
        crossing = _crossing(np, features[_LOG_TIME], log_hazard, self._slope(), log_price, longest)
        due: Sequence[float] = (last + np.exp(crossing) * DAY_S).tolist()
        return due

    def value(self, page: int, at: float) -> float:
        """Return the value of a visit, in days."""
        context, features = self._evaluate(page, at)
        hazard = math.exp(self._log_hazard(features))
        weight, last = context[0][2], context[0][3]
        days = max((at - last) / DAY_S, _SHORTEST_DAYS)
        return float(weight * math.expm1(-hazard) ** 2 * days / hazard)

    def change_probability(self, page: int, at: float) -> float:
        """Return the probability that the page changed since its last visit."""
        _, features = self._evaluate(page, at)
        return -math.expm1(-math.exp(self._log_hazard(features)))

    def take_moved(self) -> Sequence[int]:
        """Return nothing."""
        return ()

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._evaluated = None
        self._records.delete("page", page)

    def _evaluate(self, page: int, at: float) -> tuple[_Context, Sequence[float]]:
        """Return the context and the features of a page."""
        last = self._evaluated
        if last is None or last[0] != page or last[1] != at:
            context = self._context(page)
            last = self._evaluated = (page, at, context, _features(_SCALAR, context, at))
        return last[2], last[3]

    def _log_hazard(self, features: Sequence[float]) -> float:
        return float(min(sum(map(mul, features, self._weights)), _MAX_LOG_HAZARD))

    def _slope(self) -> float:
        """Slope of log L by log time; above 1 the value of a visit would have a maximum."""
        return min(max(self._weights[_LOG_TIME], 0.1), 1.0)

    def _context(self, page: int) -> _Context:
        record = self._records.get("page", page)
        if record is None:
            raise KeyError(page)
        state = _page.unpack(record)
        site, directory = self._group("site", state[0]), self._group("directory", state[1])
        return self._with_rates(state, directory, site)

    def _with_rates(self, state: Any, directory: Any, site: Any) -> _Context:
        """Add change rates, each shrunk to that of the group above."""
        everything = self._all
        rate = (everything[7] + 1.0) / (everything[8] + _PRIOR_DAYS)
        site_rate = (site[7] + _PRIOR_CHANGES) / (site[8] + _PRIOR_CHANGES / rate)
        directory_rate = (directory[7] + _PRIOR_CHANGES) / (
            directory[8] + _PRIOR_CHANGES / site_rate
        )
        page_rate = (state[9] + 1.0) / (state[4] + 1.0 / directory_rate)
        return state, directory, site, site_rate, directory_rate, page_rate

    def _group(self, kind: str, number: int) -> tuple[float, ...]:
        record = self._records.get(kind, number)
        return (self._now, *(0.0,) * 8) if record is None else _group.unpack(record)

    def _learn(self) -> None:
        """Take one Newton step on the batch.

        The precision accumulates the curvature of all batches, so later steps are smaller.
        """
        x = np.array([features for features, _ in self._batch])
        y = np.array([changed for _, changed in self._batch], dtype=np.float64)
        self._batch.clear()
        weights = np.array(self._weights)
        hazard = np.exp(np.clip(x @ weights, -20.0, 4.0))
        unchanged = np.exp(-hazard)
        ratio = hazard * unchanged / np.maximum(-np.expm1(-hazard), 1e-9)
        gradient = x.T @ (y * ratio - (1 - y) * hazard)
        # The expected curvature vanishes where a change was certain; the step would be too long if
        # none came.
        curvature = np.where(y > 0, hazard * ratio, hazard)
        self._precision = self._precision + (x.T * curvature) @ x
        self._weights = (weights + np.linalg.solve(self._precision, gradient)).tolist()
        record = _model.pack(*self._weights, *self._precision.ravel().tolist())
        self._records.put("model", 0, record)


def _features(xp: Any, context: _Context, at: float) -> Any:
    """Return :data:`FEATURES` at a time, of one page or of many."""
    state, directory, site, site_rate, directory_rate, page_rate = context
    exp, log, maximum = xp.exp, xp.log, xp.maximum
    _, _, _, last, observed, quiet, r7, r30, r120, _ = state
    days = maximum((at - last) / DAY_S, _SHORTEST_DAYS)
    directory_days = maximum(at - directory[0], 0.0) * (-_LN2 / DAY_S)
    site_days = maximum(at - site[0], 0.0) * (-_LN2 / DAY_S)
    d1, d7, d60 = exp(directory_days), exp(directory_days / 7), exp(directory_days / 60)
    s1, s7, s60 = exp(site_days), exp(site_days / 7), exp(site_days / 60)
    a, rate = _SMOOTHING, page_rate / _LN2
    return (
        1.0 + 0.0 * days,
        log(days),
        log(page_rate),
        log((r7 * exp(days * (-_LN2 / 7)) + a) / (rate * 7 + a)),
        log((r30 * exp(days * (-_LN2 / 30)) + a) / (rate * 30 + a)),
        log((r120 * exp(days * (-_LN2 / 120)) + a) / (rate * 120 + a)),
        log((directory[1] * d1 + a) / (directory[2] * d1 * directory_rate + a)),
        log((directory[3] * d7 + a) / (directory[4] * d7 * directory_rate + a)),
        log((directory[5] * d60 + a) / (directory[6] * d60 * directory_rate + a)),
        log((site[1] * s1 + a) / (site[2] * s1 * site_rate + a)),
        log((site[3] * s7 + a) / (site[4] * s7 * site_rate + a)),
        log((site[5] * s60 + a) / (site[6] * s60 * site_rate + a)),
        log(1.0 + (days + quiet) * page_rate),
        log(1.0 + observed + days) - 5.0,
    )


def _crossing(
    xp: Any, time: Any, log_hazard: Any, slope: float, log_price: Any, longest: float
) -> Any:
    """Return the log time at which the value reaches the price, by Newton's method.

    ``log_hazard`` is log L at the log time ``time``; it grows linearly with ``slope``.
    """
    shortest = math.log(_SHORTEST_DAYS)
    at = time
    for _ in range(_CROSSING_STEPS):
        log_l = xp.minimum(log_hazard + slope * (at - time), _MAX_LOG_HAZARD)
        hazard = xp.exp(log_l)
        p = -xp.expm1(-hazard)
        gap = 2 * xp.log(p) + at - log_l - log_price
        step = gap / (2 * slope * hazard * (1 - p) / p + 1.001 - slope)
        at = xp.minimum(xp.maximum(at - step, shortest), longest)
        if xp is _SCALAR and -_PRECISE < step < _PRECISE:
            break
    return at


def _decay(days: float, half_life: float) -> float:
    return math.exp(-_LN2 / half_life * days)


def _mean_decay(days: float, half_life: float) -> float:
    """Return the mean decay of an event that happened at any time within the last ``days``."""
    exponent = _LN2 / half_life * days
    return -math.expm1(-exponent) / exponent
