"""What the literature's policies store of a page, and how they know its change rate.

:class:`PageVisits` holds the sums over a page's visits. A :class:`RateModel` estimates the rate
from them, from the page's group, or from its features.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from focused.durations import DAY_S
from focused.revisit.policy import RecordStore, RevisitInputs, Visit
from focused_lab.revisit_policies.estimators import (
    CheckHistory,
    FrequencyClasses,
    LinearRateModel,
    RateEstimator,
    grouped_likelihood_rate,
    logarithmic_rate,
)

PAGE, COLLECTION = "page", "collection"
_HISTORY = struct.Struct("<IIIfff")
_PAGE = struct.Struct("<dfII")
_NO_PAGE = 0xFFFFFFFF
FORCED_AFTER = 3.0
"""Mean intervals after which these policies' pages are visited in any case.

Estimators that give an unchanged page the rate 0 would never visit it again: at a mean interval of
90 days a collection loses a third of its freshness.
"""
LEAST_CHECKS = 3
"""Visits from which on a page has a rate of its own: one unchanged visit says little."""


@dataclass(slots=True)
class PageVisits:
    """A page's last visit, place, weight and the sums over its visits: 44 bytes."""

    last_at: float
    weight: float
    site: int
    directory: int
    history: CheckHistory = field(default_factory=CheckHistory)

    def add(self, visit: Visit) -> None:
        """Add a visit to the sums."""
        add_visit(self.history, visit)
        self.last_at = visit.at


def add_visit(history: CheckHistory, visit: Visit) -> None:
    """Add a visit to the sums of its page or of a group."""
    since = None if visit.changed_at is None else visit.at - visit.changed_at
    history.add(visit.at - visit.previous_at, visit.changed, since)


def read_page_visits(records: RecordStore, page: int) -> PageVisits:
    """Return a page's record. Raises KeyError for an unknown page."""
    record = records.get(PAGE, page)
    if record is None:
        raise KeyError(page)
    last_at, weight, site, directory = _PAGE.unpack_from(record)
    return PageVisits(last_at, weight, site, directory, _unpack_history(record, _PAGE.size))


def write_page_visits(records: RecordStore, page: int, record: PageVisits) -> None:
    """Store a page's record."""
    packed = _PAGE.pack(record.last_at, record.weight, record.site, record.directory)
    records.put(PAGE, page, packed + _pack_history(record.history))


def read_history(records: RecordStore, kind: str, number: int) -> CheckHistory:
    """Return the sums of a group of pages; empty for an unknown group."""
    record = records.get(kind, number)
    return CheckHistory() if record is None else _unpack_history(record, 0)


def write_history(records: RecordStore, kind: str, number: int, history: CheckHistory) -> None:
    """Store the sums of a group of pages."""
    records.put(kind, number, _pack_history(history))


def _pack_history(history: CheckHistory) -> bytes:
    return _HISTORY.pack(
        history.checks,
        history.changes,
        history.dated,
        history.watched_s,
        history.changed_s,
        history.quiet_s,
    )


def _unpack_history(record: bytes, offset: int) -> CheckHistory:
    checks, changes, dated, watched_s, changed_s, quiet_s = _HISTORY.unpack_from(record, offset)
    return CheckHistory(checks, changes, watched_s, changed_s, quiet_s, dated)


class PackedRecords:
    """Records of one kind: a few numbers in a fixed layout."""

    def __init__(self, records: RecordStore, kind: str, layout: str) -> None:
        """``layout`` is a format of :mod:`struct`."""
        self._records = records
        self._kind = kind
        self._layout = struct.Struct(layout)

    def get(self, number: int) -> tuple[Any, ...] | None:
        """Return the numbers of a record, or None."""
        packed = self._records.get(self._kind, number)
        return None if packed is None else self._layout.unpack(packed)

    def read(self, number: int) -> tuple[Any, ...]:
        """Return the numbers of a record. Raises KeyError for an unknown one."""
        values = self.get(number)
        if values is None:
            raise KeyError(number)
        return values

    def put(self, number: int, *values: float) -> None:
        """Store a record."""
        self._records.put(self._kind, number, self._layout.pack(*values))

    def delete(self, number: int) -> None:
        """Delete a record."""
        self._records.delete(self._kind, number)


class PageLists:
    """The pages of each group as doubly linked lists of records: 8 bytes a page.

    A record store has no scan; policies that allocate per period need the pages of a group.
    """

    def __init__(self, records: RecordStore, kind: str) -> None:
        self._links = PackedRecords(records, kind, "<II")
        self._heads = PackedRecords(records, f"{kind}-head", "<II")

    def add(self, group: int, page: int) -> None:
        """Insert a page at the front of a group's list."""
        head = self._head(group)
        self._links.put(page, _NO_PAGE, head)
        if head != _NO_PAGE:
            _, after = self._links.read(head)
            self._links.put(head, page, after)
        self._heads.put(group, page, 0)

    def remove(self, group: int, page: int) -> None:
        """Take a page out of its group's list."""
        before, after = self._links.read(page)
        if before == _NO_PAGE:
            self._heads.put(group, after, 0)
        else:
            self._links.put(before, self._links.read(before)[0], after)
        if after != _NO_PAGE:
            self._links.put(after, before, self._links.read(after)[1])
        self._links.delete(page)

    def pages(self, group: int) -> Iterator[int]:
        """Yield the pages of a group, the latest first; the list must not change meanwhile."""
        page = self._head(group)
        while page != _NO_PAGE:
            yield page
            page = self._links.read(page)[1]

    def _head(self, group: int) -> int:
        head = self._heads.get(group)
        return _NO_PAGE if head is None else int(head[0])


class StoredPolicy:
    """What the literature's policies share: records, forced visits, and pages that moved."""

    follows_siblings = False
    forced_after = FORCED_AFTER

    def __init__(self, inputs: RevisitInputs) -> None:
        self._records = inputs.records
        self._unit_s = inputs.mean_interval_s
        self._moved: list[int] = []

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        write_page_visits(self._records, page, PageVisits(at, weight, site, directory))

    def take_moved(self) -> Iterable[int]:
        """Return the pages that a visit of another page moved, once."""
        moved, self._moved = self._moved, []
        return moved

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._records.delete(PAGE, page)
        self._moved = [each for each in self._moved if each != page]


class RateModel(Protocol):
    """Estimates change rates of pages, in changes per second."""

    @property
    def shares_groups(self) -> bool:
        """Whether a visit changes the rates of other pages of the directory or site."""

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Learn from a visit; ``page`` is the record before the visit."""

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the rate of a page."""

    def remove(self, number: int) -> None:
        """Forget a page."""


class CollectionRate:
    """The rate of the whole collection: what is known of a page before its first revisit."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self.history = read_history(records, COLLECTION, 0)

    def add(self, visit: Visit) -> None:
        """Add a visit of any page."""
        add_visit(self.history, visit)
        write_history(self._records, COLLECTION, 0, self.history)

    @property
    def rate(self) -> float:
        """The mean rate, never 0; a change a month before the first revisit."""
        if self.history.changes == 0:
            return 1.0 / (30 * DAY_S + self.history.watched_s)
        return grouped_likelihood_rate(self.history)


class CollectionRates:
    """The rate of the collection for all pages; models that start from it add what they know."""

    shares_groups = False

    def __init__(self, records: RecordStore) -> None:
        self._collection = CollectionRate(records)

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Add the visit to the collection; the policy adds it to the page."""
        self._collection.add(visit)

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the rate of a page."""
        return self._collection.rate

    def remove(self, number: int) -> None:
        """Keep nothing of the page, and its past visits in all sums."""


class HistoryRates(CollectionRates):
    """The rate of a page from its own visits; that of the collection before the third."""

    def __init__(self, records: RecordStore, estimate: RateEstimator) -> None:
        super().__init__(records)
        self._estimate = estimate

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the estimate."""
        history = page.history
        return self._estimate(history) if history.checks >= LEAST_CHECKS else self._collection.rate


class ShrunkRates(CollectionRates):
    """The likelihood estimate of a page, shrunk to the rate of the collection by one change.

    No page has the rate 0. Kolobov and others (2019) smooth their likelihood alike.
    """

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the shrunk estimate."""
        return shrunk_rate(page.history, self._collection.rate)


def smoothed_rate(history: CheckHistory) -> float:
    """The likelihood estimate with half a changed and half an unchanged visit added."""
    if history.checks == 0:
        return 0.0
    mean_s = history.watched_s / history.checks
    changes = history.changes + 0.5
    changed_s = (history.changed_s + 0.5 * mean_s) / changes
    quiet_s = history.watched_s - history.changed_s + 0.5 * mean_s
    return math.log1p(changes * changed_s / quiet_s) / changed_s


def shrunk_rate(history: CheckHistory, prior_rate: float) -> float:
    """The likelihood estimate with one change at the prior rate added."""
    rate = grouped_likelihood_rate(history)
    exposure_s = history.changes / rate if rate > 0 else history.watched_s
    return (history.changes + 1.0) / (exposure_s + 1.0 / prior_rate)


class ClassRates:
    """The rate of a page's frequency class, by Bayes' rule: 4 bytes a class and page."""

    shares_groups = False

    def __init__(self, records: RecordStore) -> None:
        layout = f"<{len(FrequencyClasses().intervals_days)}f"
        self._probabilities = PackedRecords(records, "classes", layout)

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Update the probabilities of the page's classes."""
        classes = self._classes(visit.page)
        classes.add(visit.at - visit.previous_at, visit.changed)
        self._probabilities.put(visit.page, *classes.probabilities)

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the rate of the most likely class; the mean before the first revisit."""
        classes = self._classes(number)
        return classes.rate if page.history.checks else classes.mean_rate

    def remove(self, number: int) -> None:
        """Forget the page's classes."""
        self._probabilities.delete(number)

    def _classes(self, number: int) -> FrequencyClasses:
        return FrequencyClasses(prior=self._probabilities.get(number))


GroupOf = Callable[[PageVisits], int]


def site_of(page: PageVisits) -> int:
    """Group pages by site."""
    return page.site


def directory_of(page: PageVisits) -> int:
    """Group pages by directory."""
    return page.directory


def rate_class_of(page: PageVisits) -> int:
    """Group pages by their own estimate, in powers of two of a change a day; 0: no change yet.

    Pages without a change are grouped by the number of their visits.
    """
    history = page.history
    if history.changes == 0:
        return 1000 + min(history.checks, 20)
    return 100 + round(math.log2(logarithmic_rate(history) * DAY_S))


class GroupRates(CollectionRates):
    """The rate of a page's group: the representative of Carney, Lee, Zdonik (2003).

    Small groups are shrunk to the rate of the collection.
    """

    def __init__(
        self, records: RecordStore, kind: str, group_of: GroupOf, *, shares_groups: bool
    ) -> None:
        super().__init__(records)
        self.shares_groups = shares_groups
        self._records = records
        self._kind = f"{kind}-rate"
        self._group_of = group_of

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Add the visit to the page's group."""
        super().learn(visit, page)
        group = self._group_of(page)
        history = read_history(self._records, self._kind, group)
        add_visit(history, visit)
        write_history(self._records, self._kind, group, history)

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the group's rate."""
        history = read_history(self._records, self._kind, self._group_of(page))
        return shrunk_rate(history, self._collection.rate)


class FeatureRates:
    """The rate by a linear model of features (Barbosa and others 2005).

    Features: the page's own smoothed rate, its share of changed visits, the rates of its directory
    and site, and its weight. Rates are per mean interval. The model
    lives in memory and is stored with each fit.
    """

    shares_groups = True

    def __init__(self, records: RecordStore, mean_interval_s: float) -> None:
        self._unit_s = mean_interval_s
        self._directories = GroupRates(records, "directory", directory_of, shares_groups=True)
        self._sites = GroupRates(records, "site", site_of, shares_groups=True)
        self._model = LinearRateModel(5, ridge=1.0)

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Add the visit to model and groups; the features are those before the visit."""
        interval = (visit.at - visit.previous_at) / self._unit_s
        if interval > 0:
            self._model.add(self._features(visit.page, page), visit.changed / interval, interval)
        self._directories.learn(visit, page)
        self._sites.learn(visit, page)

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the predicted rate, at least a tenth of the site's."""
        features = self._features(number, page)
        return max(self._model.predict(features), 0.1 * features[3]) / self._unit_s

    def remove(self, number: int) -> None:
        """Keep the model: it includes the page's past visits."""

    def _features(self, number: int, page: PageVisits) -> list[float]:
        history = page.history
        site = self._sites.rate(number, page)
        own = smoothed_rate(history) if history.checks else site
        return [
            own * self._unit_s,
            history.changes / (history.checks + 1),
            self._directories.rate(number, page) * self._unit_s,
            site * self._unit_s,
            page.weight,
        ]


class CommittedRates(CollectionRates):
    """Explore, then commit (Upadhyay and others 2020): a rate that is fixed after some visits.

    While it explores, a page has the collection's rate, so all such pages are visited alike. The
    regret is least when the exploration grows with the square root of the horizon: here the square
    root of the number of mean intervals in it. A committed rate is at least one change per horizon.
    """

    def __init__(self, records: RecordStore, mean_interval_s: float, horizon_s: float) -> None:
        super().__init__(records)
        self._committed = PackedRecords(records, "committed", "<f")
        self._horizon_s = horizon_s
        self._explored = max(1, round(math.sqrt(horizon_s / mean_interval_s)))

    def learn(self, visit: Visit, page: PageVisits) -> None:
        """Commit to the estimate at the last visit of the exploration."""
        super().learn(visit, page)
        if page.history.checks + 1 != self._explored:
            return
        history = replace(page.history)
        add_visit(history, visit)
        # Explored at even intervals, where moment matching and the likelihood agree.
        rate = max(grouped_likelihood_rate(history), 1 / self._horizon_s)
        self._committed.put(visit.page, rate)

    def rate(self, number: int, page: PageVisits) -> float:
        """Return the committed rate, or the collection's."""
        committed = self._committed.get(number)
        return self._collection.rate if committed is None else float(committed[0])

    def remove(self, number: int) -> None:
        """Forget the page's rate."""
        self._committed.delete(number)
