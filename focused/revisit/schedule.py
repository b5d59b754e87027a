"""Due times of pages, and the price of a visit that meets the budget.

:class:`RevisitSchedule` keeps the pages of a collection in a :class:`DueQueue`, ordered by the time
when the value of a visit reaches the price. The driver takes visits at the pace of its budget. The
value of the visits that it takes is the going price: it rises while more pages are due than the
budget allows, and falls while visits are taken before they are due.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Protocol

from focused.revisit.policy import RecordStore, RevisitPolicy, Visit

SIBLINGS = 8
"""So many pages of a group get new due times when a page of the group has changed."""
_PRICE_WINDOW = 0.05
"""The price follows the mean value of the last visits, as many as this share of the pages."""
_MIN_PRICE_WINDOW = 50
_LEAST_VALUE = 1e-12


class DueQueue(Protocol):
    """Pages in order of due time, over all and within each group."""

    def put(self, page: int, group: int, due_at: float, previous: float | None) -> None:
        """Insert a page, or move it from its ``previous`` due time."""

    def remove(self, page: int, group: int, due_at: float) -> None:
        """Remove a page."""

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""

    def first_of(self, group: int, limit: int) -> Sequence[int]:
        """Return the pages of the group that are due next."""


class MemoryDueQueue:
    """A :class:`DueQueue` of heaps in memory, for experiments."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}
        self._all: list[tuple[float, int]] = []
        self._groups: dict[int, list[tuple[float, int]]] = {}

    def put(self, page: int, group: int, due_at: float, previous: float | None) -> None:
        """Insert a page, or move it from its ``previous`` due time."""
        self._due[page] = due_at
        heappush(self._all, (due_at, page))
        heappush(self._groups.setdefault(group, []), (due_at, page))

    def remove(self, page: int, group: int, due_at: float) -> None:
        """Remove a page."""
        del self._due[page]

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        heap = self._all
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0] if heap else None

    def first_of(self, group: int, limit: int) -> Sequence[int]:
        """Return the pages of the group that are due next."""
        heap = self._groups.get(group, [])
        found: dict[int, float] = {}
        while heap and len(found) < limit:
            due_at, page = heappop(heap)
            if self._due.get(page) == due_at:
                found[page] = due_at
        for page, due_at in found.items():
            heappush(heap, (due_at, page))
        return list(found)


class RevisitSchedule:
    """The due times of a collection's pages; the price follows the budget.

    The caller commits where queue and records are on a disk.
    """

    _record = struct.Struct("<ddII")  # due, last visit, site, directory

    def __init__(
        self,
        policy: RevisitPolicy,
        queue: DueQueue,
        records: RecordStore,
        *,
        mean_interval_s: float,
        min_interval_s: float = 0.0,
        max_interval_s: float = math.inf,
    ) -> None:
        """``mean_interval_s`` is the budget: the mean time between two visits of a page."""
        self.policy = policy
        self._queue = queue
        self._records = records
        self._min_interval_s = min_interval_s
        self._max_interval_s = min(max_interval_s, policy.forced_after * mean_interval_s)
        self._pages = 0
        self._log_price = 0.0
        self._priced = 0

    @property
    def price(self) -> float:
        """The value that a visit must have."""
        return math.exp(self._log_price)

    def __len__(self) -> int:
        return self._pages

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch at ``at``."""
        self.policy.add(page, site, directory, weight, at)
        self._pages += 1
        self._put(page, at, site, directory, previous=None)

    def next_due_at(self) -> float | None:
        """Return when the next visit is due; None without pages."""
        first = self._queue.first()
        return None if first is None else first[0]

    def take(self, now: float) -> int | None:
        """Take the page that is due first, even before it is due; None without pages.

        The page is not taken again until its visit is recorded.
        """
        first = self._queue.first()
        if first is None:
            return None
        due_at, page = first
        _, last, site, directory = self._state(page)
        self._queue.remove(page, site, due_at)
        self._records.put("due", page, self._record.pack(math.inf, last, site, directory))
        if now - last < self._max_interval_s:
            self._follow(self.policy.value(page, now))
        return page

    def record(self, visit: Visit) -> None:
        """Record the outcome of a visit; a page that is gone is removed."""
        self.policy.record(visit)
        if visit.gone:
            self.remove(visit.page)
        else:
            due_at, _, site, directory = self._state(visit.page)
            previous = None if due_at == math.inf else due_at
            self._put(visit.page, visit.at, site, directory, previous)
        if visit.changed and self.policy.follows_siblings:
            for page in self._queue.first_of(visit.site, SIBLINGS):
                self.reschedule(page)
        for page in self.policy.take_moved():
            self.reschedule(page)

    def put_back(self, page: int, due_at: float) -> None:
        """Schedule a taken page for ``due_at``: the visit told nothing."""
        _, last, site, directory = self._state(page)
        self._queue.put(page, site, due_at, previous=None)
        self._records.put("due", page, self._record.pack(due_at, last, site, directory))

    def advance(self, page: int) -> None:
        """Make a page due as soon as the least interval allows, unless it is taken."""
        due, last, site, directory = self._state(page)
        due_at = last + self._min_interval_s
        if due_at < due < math.inf:
            self._queue.put(page, site, due_at, previous=due)
            self._records.put("due", page, self._record.pack(due_at, last, site, directory))

    def reschedule(self, page: int) -> None:
        """Compute a page's due time again."""
        due_at, last, site, directory = self._state(page)
        if due_at != math.inf:
            self._put(page, last, site, directory, due_at)

    def remove(self, page: int) -> None:
        """Forget a page."""
        due_at, _, site, _ = self._state(page)
        if due_at != math.inf:
            self._queue.remove(page, site, due_at)
        self._records.delete("due", page)
        self.policy.remove(page)
        self._pages -= 1

    def _put(
        self, page: int, last: float, site: int, directory: int, previous: float | None
    ) -> None:
        due_at = self.policy.due_at(page, self.price)
        due_at = max(min(due_at, last + self._max_interval_s), last + self._min_interval_s)
        self._queue.put(page, site, due_at, previous)
        self._records.put("due", page, self._record.pack(due_at, last, site, directory))

    def _follow(self, value: float) -> None:
        """Move the price towards the value of a visit."""
        self._priced += 1
        window = max(_PRICE_WINDOW * self._pages, _MIN_PRICE_WINDOW)
        rate = 1.0 / min(self._priced, window)
        self._log_price += rate * (math.log(max(value, _LEAST_VALUE)) - self._log_price)

    def _state(self, page: int) -> tuple[float, float, int, int]:
        record = self._records.get("due", page)
        if record is None:
            raise KeyError(page)
        due_at, last, site, directory = self._record.unpack(record)
        return due_at, last, site, directory
