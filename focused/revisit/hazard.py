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
from typing import Any, NamedTuple

import numpy as np

from focused.durations import DAY_S
from focused.revisit.group_activity import (
    HALF_LIFE_DAYS,
    GroupActivity,
    activity_of_pages,
    bin_days_for,
    decay,
    mean_decay,
)
from focused.revisit.policy import RevisitInputs, Visit

FEATURES = (
    "constant",
    "log time since the last visit",
    "log change rate",
    "page's activity, 7 days",
    "page's activity, 30 days",
    "page's activity, 120 days",
    "directory's activity, 60 days",
    "directory's activity since the last visit",
    "site's activity, 60 days",
    "site's activity since the last visit",
    "log quiet time",
    "log age",
    "log change rate of the directory",
    "log change rate of the site",
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
_MAX_LOG_HAZARD = 2.0
"""A page has surely changed then. Without the limit the value of a visit might fall with time."""
_SHORTEST_DAYS = 60.0 / DAY_S
_MAX_CHANGES = 0xFFFF
_LONGEST = 1_000.0
"""Due times are computed up to so many mean intervals."""
_CROSSING_STEPS = 4
_PRECISE = 0.001
"""A step in log time after which a crossing is precise enough."""
_HALF_LIVES = (7.0, 30.0, 120.0)
"""Of the page's activity, in days."""
_LN2 = math.log(2)

# Half floats decay only if a page is visited less than every 30 minutes or so.
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
_all = struct.Struct("<ddd")  # time of the last visit; changes and days of all pages
_model = struct.Struct(f"<{len(FEATURES) * (len(FEATURES) + 1)}d")

# Features and due times are computed for one page with ``math``, for many with NumPy.
_SCALAR: Any = SimpleNamespace(
    exp=math.exp, log=math.log, expm1=math.expm1, maximum=max, minimum=min
)


class _Group(NamedTuple):
    """What a page, or each of many pages, takes from its directory or site."""

    at: Any
    recent_changes: Any
    expected_changes: Any
    """Recent changes that the change rate predicts."""
    log_rate: Any
    activity_since: Any
    """Activity since the last visit of the page."""


_Context = tuple[Any, _Group, _Group, Any]
"""Record of a page, its directory and site, and its change rate per day."""


class Hazard:
    """The online hazard model, a :class:`focused.revisit.policy.RevisitPolicy`.

    Stores 34 bytes per page, 220 per directory and site, and one model of 1.7 kB.
    """

    name = "hazard"
    follows_siblings = True
    forced_after = 3.0

    def __init__(self, inputs: RevisitInputs) -> None:
        self._records = inputs.records
        self._mean_days = inputs.mean_interval_s / DAY_S
        self._bin_days = bin_days_for(self._mean_days)
        self._weights: list[float] = list(_PRIOR_MEAN)
        self._precision = np.eye(len(FEATURES)) * _PRIOR_PRECISION
        self._precision[0, 0] = _CONSTANT_PRECISION
        self._batch: list[tuple[Sequence[float], bool, float]] = []
        self._evaluated: tuple[int, float, _Context, Sequence[float]] | None = None
        """The last evaluation: a page is valued, and then its visit is recorded."""
        everything = self._records.get("all", 0)
        self._all = (0.0, 0.0, 0.0) if everything is None else _all.unpack(everything)
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
        if visit.hazard_factor is not None:
            self._batch.append((features, visit.changed, math.log(visit.hazard_factor)))
        self._evaluated = None
        self._now = max(self._now, visit.at)
        site, directory, weight, last, observed, quiet, r7, r30, r120, changes = context[0]
        days = max((visit.at - last) / DAY_S, _SHORTEST_DAYS)
        since = days / 2 if visit.changed_at is None else (visit.at - visit.changed_at) / DAY_S
        # A change counts by its age; if that is unknown, by the mean over the interval.
        credits = [0.0] * len(_HALF_LIVES)
        if visit.changed_at is not None:
            credits = [decay(since, half_life) for half_life in _HALF_LIVES]
        elif visit.changed:
            credits = [mean_decay(days, half_life) for half_life in _HALF_LIVES]
        r7, r30, r120 = (
            recent * decay(days, half_life) + credit
            for recent, half_life, credit in zip((r7, r30, r120), _HALF_LIVES, credits, strict=True)
        )
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
                r7,
                r30,
                r120,
                min(changes + visit.changed, _MAX_CHANGES),
            ),
        )
        activity = GroupActivity.of_visit(
            visit.at, days, self._bin_days, changed=visit.changed, changed_at=visit.changed_at
        )
        for kind, number in (("site", site), ("directory", directory)):
            group = GroupActivity.unpack(self._group(kind, number)).merged(activity)
            self._records.put(kind, number, group.pack())
        _, all_changes, all_days = self._all
        self._all = self._now, all_changes + visit.changed, all_days + days
        self._records.put("all", 0, _all.pack(*self._all))
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
        numbers, positions = np.unique(states["directory"], return_inverse=True)
        state = [states[name].astype(np.float64) for name in _PAGE_FIELDS.fields or ()]
        weight, last = np.maximum(state[2], 1e-30), state[3]
        directories = [self._group("directory", int(number)) for number in numbers]
        sites = [self._group("site", int(states["site"][0]))]
        context = self._with_rates(
            np,
            state,
            activity_of_pages(directories, positions, last),
            activity_of_pages(sites, np.zeros(len(states), np.intp), last),
        )
        features = _features(np, context, self._now)
        log_hazard = np.minimum(sum(map(mul, features, self._weights)), _MAX_LOG_HAZARD)
        log_price = np.log(np.array(prices) / weight)
        longest = math.log(self._mean_days * _LONGEST)
        slope = self._slope()
        crossing = _crossing(np, features[_LOG_TIME], log_hazard, slope, log_price, longest)
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
        directory = GroupActivity.unpack(self._group("directory", state[1]))
        site = GroupActivity.unpack(self._group("site", state[0]))
        last = state[3]
        return self._with_rates(
            _SCALAR, state, (directory, directory.since(last)), (site, site.since(last))
        )

    def _with_rates(self, xp: Any, state: Any, directory: Any, site: Any) -> _Context:
        """Add change rates, each shrunk to that of the group above."""
        _, changes, days = self._all
        rate = (changes + 1.0) / (days + _PRIOR_DAYS)
        groups = []
        for fields, (changes_since, days_since) in (site, directory):
            at, changes, days, recent_changes, recent_days, *_ = fields
            rate = (changes + _PRIOR_CHANGES) / (days + _PRIOR_CHANGES / rate)
            since = xp.log((changes_since + _SMOOTHING) / (days_since * rate + _SMOOTHING))
            groups.append(_Group(at, recent_changes, recent_days * rate, xp.log(rate), since))
        page_rate = (state[9] + 1.0) / (state[4] + 1.0 / rate)
        return state, groups[1], groups[0], page_rate

    def _group(self, kind: str, number: int) -> bytes:
        record = self._records.get(kind, number)
        return GroupActivity.empty(self._now, self._bin_days).pack() if record is None else record

    def _learn(self) -> None:
        """Take one Newton step on the batch.

        The precision accumulates the curvature of all batches, so later steps are smaller.
        """
        x = np.array([features for features, _, _ in self._batch])
        y = np.array([changed for _, changed, _ in self._batch], dtype=np.float64)
        log_factor = np.array([log_factor for _, _, log_factor in self._batch])
        self._batch.clear()
        weights = np.array(self._weights)
        hazard = np.exp(np.clip(x @ weights + log_factor, -20.0, 4.0))
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
    state, directory, site, page_rate = context
    exp, log, maximum = xp.exp, xp.log, xp.maximum
    _, _, _, last, observed, quiet, *recent, _ = state
    days = maximum((at - last) / DAY_S, _SHORTEST_DAYS)
    a = _SMOOTHING

    def activity_of_page(changes: Any, half_life: float) -> Any:
        changes = changes * exp(days * (-_LN2 / half_life))
        return log((changes + a) / (page_rate * (half_life / _LN2) + a))

    def recent_activity(group: _Group) -> Any:
        left = exp(maximum(at - group.at, 0.0) * (-_LN2 / HALF_LIFE_DAYS / DAY_S))
        return log((group.recent_changes * left + a) / (group.expected_changes * left + a))

    return (
        1.0 + 0.0 * days,
        log(days),
        log(page_rate),
        *map(activity_of_page, recent, _HALF_LIVES),
        recent_activity(directory),
        directory.activity_since,
        recent_activity(site),
        site.activity_since,
        log(1.0 + (days + quiet) * page_rate),
        log(1.0 + observed + days) - 5.0,
        directory.log_rate,
        site.log_rate,
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
