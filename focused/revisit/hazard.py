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
from typing import NamedTuple

import numpy as np

from focused.durations import DAY_S
from focused.kernels.change_hazard import (
    SHORTEST_DAYS,
    Context,
    Group,
    Page,
    Weights,
    due_after,
    due_times,
    group_after,
    log_hazard,
    page_after,
    page_context,
    page_features,
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
_PRIOR_MEAN: Weights = (0.0, 0.8, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_PRIOR_PRECISION = 30.0
_CONSTANT_PRECISION = 1.0
_BATCH = 50
"""Visits per Newton step."""
_LONGEST = 1_000.0
"""Due times are computed up to so many mean intervals."""

# Site, directory, weight; time of the last visit in seconds; days between the first and the last
# visit, and between the last change and the last visit; changes, decayed with a half-life of 7, 30
# and 120 days to the last visit; all changes. Half floats decay only if a page is visited less than
# every 30 minutes or so.
_page = struct.Struct("<IIfIffeefH")
_all = struct.Struct("<ddd")  # time of the last visit; changes and days of all pages
_model = struct.Struct(f"<{len(FEATURES) * (len(FEATURES) + 1)}d")


class _Evaluation(NamedTuple):
    """The features of a page at a time, and the records that they come from."""

    page: int
    at: float
    state: Page
    directory: Group
    site: Group
    context: Context
    features: Weights


class Hazard:
    """The online hazard model, a :class:`focused.revisit.policy.RevisitPolicy`.

    Stores 34 bytes per page, 220 per directory and site, and one model of 1.7 kB.
    """

    follows_siblings = True
    forced_after = 3.0

    def __init__(self, inputs: RevisitInputs) -> None:
        self._records = inputs.records
        self._mean_days = inputs.mean_interval_s / DAY_S
        self._bin_days = bin_days_for(self._mean_days)
        self._weights: Weights = _PRIOR_MEAN
        self._precision = np.eye(len(FEATURES)) * _PRIOR_PRECISION
        self._precision[0, 0] = _CONSTANT_PRECISION
        self._batch: list[tuple[Sequence[float], bool, float]] = []
        self._evaluated: _Evaluation | None = None
        """The last evaluation: a page is valued, and then its visit is recorded."""
        everything = self._records.get("all", 0)
        self._all = (0.0, 0.0, 0.0) if everything is None else _all.unpack(everything)
        self._now = self._all[0]
        model = self._records.get("model", 0)
        if model is not None:
            values = _model.unpack(model)
            self._weights = values[: len(FEATURES)]
            shape = (len(FEATURES), len(FEATURES))
            self._precision = np.array(values[len(FEATURES) :]).reshape(shape)

    @property
    def weights(self) -> Sequence[float]:
        """The weights of :data:`FEATURES`."""
        return self._weights

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        self._evaluated = None
        self._now = max(self._now, at)
        record = _page.pack(site, directory, weight, int(at), 0.0, 0.0, 0.0, 0.0, 0.0, 0)
        self._records.put("page", page, record)

    def record(self, visit: Visit) -> None:
        """Learn from a visit, and update the records of page, directory and site."""
        # The features must not know the outcome.
        before = self._evaluate(visit.page, visit.at)
        if visit.hazard_factor is not None:
            self._batch.append((before.features, visit.changed, math.log(visit.hazard_factor)))
        self._evaluated = None
        self._now = max(self._now, visit.at)
        page, changed, changed_at = before.state, visit.changed, visit.changed_at
        days = max((visit.at - page[3]) / DAY_S, SHORTEST_DAYS)
        after = page_after(page, visit.at, changed, changed_at)
        self._records.put("page", visit.page, _page.pack(*after))
        for kind, number, group in (
            ("site", page[0], before.site),
            ("directory", page[1], before.directory),
        ):
            group = group_after(group, visit.at, days, self._bin_days, changed, changed_at)
            self._records.put(kind, number, pack_group(group))
        _, all_changes, all_days = self._all
        self._all = self._now, all_changes + visit.changed, all_days + days
        self._records.put("all", 0, _all.pack(*self._all))
        if len(self._batch) >= _BATCH:
            self._learn()

    def due_at(self, page: int, price: float) -> float:
        """Return when the value of a visit reaches ``price``; infinity without a weight."""
        evaluated = self._evaluated
        # A page that was valued is due soon.
        if evaluated is None or evaluated.page != page:
            evaluated = self._evaluation(page)
        _, _, (_, _, weight, last, *_), _, _, context, features = evaluated
        if not weight:
            return math.inf
        log_price = math.log(price / weight)
        longest = math.log(self._mean_days * _LONGEST)
        days = due_after(context, features, self._weights, self._slope(), log_price, longest)
        return last + days * DAY_S

    def due_at_many(
        self, pages: Sequence[int], prices: Sequence[float], latest: float = math.inf
    ) -> Sequence[float]:
        """Return due times of pages of one site; accurate for those that are due about now."""
        records = [self._records.get("page", page) for page in pages]
        if None in records:
            raise KeyError(pages[records.index(None)])
        states: list[Page] = list(_page.iter_unpack(b"".join(filter(None, records))))
        directories: dict[int, Group] = {
            number: self._group("directory", number) for number in {state[1] for state in states}
        }
        _, changes, days = self._all
        return due_times(
            states,
            directories,
            self._group("site", states[0][0]),
            changes,
            days,
            self._now,
            self._weights,
            self._slope(),
            list(prices),
            math.log(self._mean_days * _LONGEST),
            latest,
        )

    def value(self, page: int, at: float) -> float:
        """Return the value of a visit, in days."""
        evaluated = self._evaluate(page, at)
        hazard = math.exp(log_hazard(evaluated.features, self._weights))
        weight, last = evaluated.state[2], evaluated.state[3]
        days = max((at - last) / DAY_S, SHORTEST_DAYS)
        return weight * math.expm1(-hazard) ** 2 * days / hazard

    def change_probability(self, page: int, at: float) -> float:
        """Return the probability that the page changed since its last visit."""
        features = self._evaluate(page, at).features
        return -math.expm1(-math.exp(log_hazard(features, self._weights)))

    def take_moved(self) -> Sequence[int]:
        """Return nothing."""
        return ()

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._evaluated = None
        self._records.delete("page", page)

    def _evaluate(self, page: int, at: float) -> _Evaluation:
        """Evaluate a page at a time, and keep the evaluation."""
        last = self._evaluated
        if last is None or last.page != page or last.at != at:
            last = self._evaluated = self._evaluation(page, at)
        return last

    def _slope(self) -> float:
        """Slope of log L by log time; above 1 the value of a visit would have a maximum."""
        return min(max(self._weights[_LOG_TIME], 0.1), 1.0)

    def _evaluation(self, page: int, at: float | None = None) -> _Evaluation:
        """Evaluate a page, by default a mean interval after its last visit."""
        record = self._records.get("page", page)
        if record is None:
            raise KeyError(page)
        state: Page = _page.unpack(record)
        if at is None:
            at = state[3] + self._mean_days * DAY_S
        directory, site = self._group("directory", state[1]), self._group("site", state[0])
        _, changes, days = self._all
        context = page_context(state, directory, site, changes, days)
        return _Evaluation(page, at, state, directory, site, context, page_features(context, at))

    def _group(self, kind: str, number: int) -> Group:
        record = self._records.get(kind, number)
        return empty_group(self._now, self._bin_days) if record is None else unpack_group(record)

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
        self._weights = tuple((weights + np.linalg.solve(self._precision, gradient)).tolist())
        record = _model.pack(*self._weights, *self._precision.ravel().tolist())
        self._records.put("model", 0, record)


# Records of groups of pages: the recent visits and changes of a directory, or of a site.
#
# A group counts the changes that visits found and the page-days that visits covered: in all, with
# exponential decay, and in bins of time. A visit that finds a change spreads it evenly over the
# interval since the previous visit, unless the time of the change is known.
#
# The bins tell how often the pages of the group have changed since a given time: a page that was
# visited before a burst of changes has probably changed; one that was visited after it has not. See
# focused.kernels.change_hazard.Group.

BINS = 24
_BINS_PER_MEAN_INTERVAL = 8
_ZEROS = (0.0,) * BINS
_HEAD = 6
_group = struct.Struct(f"<d5f{2 * BINS}f")


def empty_group(at: float, bin_days: float) -> Group:
    """Return a group without visits."""
    return at, 0.0, 0.0, 0.0, 0.0, bin_days, _ZEROS, _ZEROS


def unpack_group(record: bytes) -> Group:
    """Read a record."""
    values = _group.unpack(record)
    at, changes, days, recent_changes, recent_days, bin_days = values[:_HEAD]
    changes_by_bin, days_by_bin = values[_HEAD : _HEAD + BINS], values[_HEAD + BINS :]
    return (
        at, changes, days, recent_changes, recent_days, bin_days, changes_by_bin, days_by_bin
    )  # fmt: skip


def pack_group(group: Group) -> bytes:
    """Return the record of 220 bytes."""
    return _group.pack(*group[:_HEAD], *group[6], *group[7])


def bin_days_for(mean_interval_days: float) -> float:
    """Return the width of the bins.

    A power of two: the bins keep their width while the mean interval changes a little.
    """
    return 2.0 ** round(math.log2(mean_interval_days / _BINS_PER_MEAN_INTERVAL))
