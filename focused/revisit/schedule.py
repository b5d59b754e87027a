"""Due times of pages, and the price of a visit that meets the budget.

:class:`RevisitSchedule` keeps the pages of a collection in a :class:`ScheduleStore`, ordered by the
time when the value of a visit reaches the price. The driver takes visits at the pace of its budget.
The price follows the value of the visits that it takes: it rises while more pages are due than the
budget allows, and falls while visits are taken before they are due.

Due times age: price, weights and the activity of sites change. A page whose value has fallen is put
back when it is about to be taken. A page whose value has risen because a page of its site changed
is moved at once; the work is bounded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Protocol

from focused.revisit.policy import (
    RecordStore,
    RevisitPolicy,
    Visit,
    due_times,
    put_weight,
    weight_of,
)

MAX_SIBLINGS = 512
"""So many pages of a site are valued again when one has changed; in a larger site, in turns."""
_SIBLING_PAUSE = 0.004
"""The siblings of a site are valued again after this share of the mean interval at the earliest."""
_SIBLING_HORIZON = 0.1
"""A sibling is moved if it is due within this share of the mean interval."""
_MAX_PUT_BACK = 8
"""So many pages are put back before one is taken anyway."""
_PUT_BACK_BELOW = 0.9
"""A page is put back if the value of its visit is below this share of the price."""
_PRICE_WINDOW = 0.05
"""The price follows the mean value of the last visits, as many as this share of the pages."""
_MIN_PRICE_WINDOW = 50
_LEAST_VALUE = 1e-12
_MAX_RISE = 0.2
"""While no other page is due, a visit raises the log of the price by less than this."""
_LEAST_WEIGHT = 1e-9
_LATEST_S = 0xFFFF_FFFE
"""A later due time is infinite."""


class ScheduleStore(RecordStore, Protocol):
    """The records of pages, those pages in order of due time, and the pages of each site.

    Due times are in whole seconds above 0.
    """

    def register(self, page: int, site: int) -> None:
        """Add a page to its site."""

    def unregister(self, page: int) -> None:
        """Remove a page from its site."""

    def site_of(self, page: int) -> int:
        """Return the site of a registered page."""

    def add(self, page: int, due_at: float) -> None:
        """Insert a registered page that is not in the queue."""

    def remove(self, page: int) -> bool:
        """Take a page out of the queue; False if it is not in it."""

    def due_at(self, page: int) -> float | None:
        """Return the due time of a page; None if it is not in the queue."""

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""


class RevisitSchedule:
    """The due times of a collection's pages; the price follows the budget.

    Where queue and records are on a disk, all writes belong to the caller's transaction.
    """

    # Last visit in whole seconds; least time between the last visit and the next one.
    _record = struct.Struct("<If")
    _price_record = struct.Struct("<qdq")  # pages, log price, priced visits

    def __init__(
        self,
        policy: RevisitPolicy,
        store: ScheduleStore,
        *,
        mean_interval_s: float,
        min_interval_s: float = 0.0,
        max_interval_s: float = math.inf,
        min_pace: float | None = None,
    ) -> None:
        """``mean_interval_s`` is the budget: the mean time between two visits of a page.

        ``min_pace``, in (0, 1], is the least pace of a page's visits as a share of the mean; None:
        that of the policy.
        """
        self.policy = policy
        self._store = store
        self._mean_interval_s = mean_interval_s
        self._min_interval_s = min_interval_s
        self._max_interval_s = max_interval_s
        forced_after = policy.forced_after if min_pace is None else 1.0 / min_pace
        self._forced_after_s = forced_after * mean_interval_s
        self._siblings_after: dict[int, float] = {}
        self._siblings_at: dict[int, int] = {}
        self._pages, self._log_price, self._priced = 0, 0.0, 0
        stored = store.get("price", 0)
        if stored is not None:
            self._pages, self._log_price, self._priced = self._price_record.unpack(stored)

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
        self._store.register(page, site)
        self._put(page, at, self._min_interval_s)
        self._schedule(page, at, at + self._min_interval_s)
        self._save_price()

    def weight(self, page: int) -> float:
        """Return what a change of a page is worth; it multiplies the value of a visit."""
        return weight_of(self._store, page)

    def set_weight(self, page: int, weight: float) -> None:
        """Set what a change of a page is worth; the next due time that is computed follows it."""
        put_weight(self._store, page, weight)

    def next_take_at(self) -> float | None:
        """Return from when on :meth:`take` returns a page; None without pages."""
        first = self._store.first()
        if first is None:
            return None
        last, wait = self._state(first[1])
        return last + wait

    def longest_interval_s(self, page: int) -> float:
        """Return the time after which a page is visited, whatever the value of the visit.

        A page of weight w < 1 waits 1 / w times as long as others; the maximal interval holds for
        all pages.
        """
        weight = min(self.weight(page), 1.0)
        forced_after_s = self._forced_after_s / weight if weight > 0 else math.inf
        return min(forced_after_s, self._max_interval_s)

    def take(self, now: float) -> int | None:
        """Take the page that is due first, even before it is due.

        None without pages, and before the least interval of the first one has passed. The page is
        not taken again until its visit is recorded.
        """
        tried: list[tuple[float, int]] = []
        while len(tried) <= _MAX_PUT_BACK:
            first = self._store.first()
            if first is None:
                break
            due_at, page = first
            last, wait = self._state(page)
            if now < last + wait:
                break
            self._store.remove(page)
            if now - last >= self.longest_interval_s(page):
                self._put_back(tried, now)
                return page
            value = self.weight(page) * self.policy.value(page, now)
            tried.append((value, page))
            if due_at > now or value >= _PUT_BACK_BELOW * self.price:
                break
        if not tried:
            return None
        value, page = taken = max(tried)
        tried.remove(taken)
        self._put_back(tried, now)
        self._follow(value, now)
        return page

    def _put_back(self, tried: Sequence[tuple[float, int]], now: float) -> None:
        """Schedule pages anew whose visits are not worth the price by now."""
        least = now + 0.01 * self._mean_interval_s
        for _, page in tried:
            last, wait = self._state(page)
            self._schedule(page, last, max(last + wait, least))

    def record(self, visit: Visit) -> None:
        """Record the outcome of a visit."""
        page, site = visit.page, self._store.site_of(visit.page)
        self._store.remove(page)
        self.policy.record(visit)
        self._put(page, visit.at, self._min_interval_s)
        self._schedule(page, visit.at, visit.at + self._min_interval_s)
        if visit.changed and self.policy.follows_siblings:
            self._move_siblings(site, visit.at)
        for moved in self.policy.take_moved():
            self.reschedule(moved)

    def put_back(self, page: int, due_at: float) -> None:
        """Schedule a taken page for ``due_at``, and not before: the visit told nothing."""
        last, _ = self._state(page)
        self._put(page, last, max(due_at - last, 0.0))
        self._enqueue(page, due_at)

    def advance_site(self, site: int, most: int) -> None:
        """Make the first pages of a site due as soon as the least interval allows.

        At most ``most``; pages that are taken stay so.
        """
        for page in self._store.pages_of_site(site, -1, most):
            last, wait = self._state(page)
            self._move_up(page, last + wait)

    def reschedule(self, page: int) -> None:
        """Compute a page's due time again."""
        last, wait = self._state(page)
        if self._store.remove(page):
            self._schedule(page, last, last + wait)

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._store.remove(page)
        self._store.delete("schedule", page)
        self.policy.remove(page)
        self._store.unregister(page)
        self._pages -= 1
        self._save_price()

    def _schedule(self, page: int, last: float, earliest: float) -> None:
        """Enqueue a page for the time when its visit is worth the price."""
        weight = self.weight(page)
        due_at = self.policy.due_at(page, self.price / weight) if weight > 0 else math.inf
        due_at = min(due_at, last + self.longest_interval_s(page))
        self._enqueue(page, max(due_at, earliest))

    def _enqueue(self, page: int, due_at: float) -> None:
        whole = float(max(math.ceil(due_at), 1)) if due_at < _LATEST_S else math.inf
        self._store.add(page, whole)

    def _put(self, page: int, last: float, wait: float) -> None:
        last_s = int(last)
        self._store.put("schedule", page, self._record.pack(last_s, wait + (last - last_s)))

    def _move_siblings(self, site: int, now: float) -> None:
        """Move the pages of a site whose visits are worth more since a page has changed."""
        policy = self.policy
        if now < self._siblings_after.get(site, -math.inf):
            return
        self._siblings_after[site] = now + _SIBLING_PAUSE * self._mean_interval_s
        pages = self._take_siblings(site, MAX_SIBLINGS)
        price = self.price
        prices = [price / max(self.weight(page), _LEAST_WEIGHT) for page in pages]
        horizon = now + _SIBLING_HORIZON * self._mean_interval_s
        dues = due_times(policy, pages, prices, horizon)
        for page, due in zip(pages, dues, strict=True):
            due_at = self._store.due_at(page)
            if due < horizon and due_at is not None and now < due_at:
                last, wait = self._state(page)
                self._move_up(page, max(due, last + wait))

    def _move_up(self, page: int, due_at: float) -> None:
        """Make a page due at a time, unless it is due before or taken."""
        before = self._store.due_at(page)
        if before is not None and due_at < before:
            self._store.remove(page)
            self._enqueue(page, due_at)

    def _take_siblings(self, site: int, limit: int) -> Sequence[int]:
        """Return pages of a site; the next call goes on where this one stops."""
        pages = list(self._store.pages_of_site(site, self._siblings_at.get(site, -1), limit))
        self._siblings_at[site] = pages[-1] if len(pages) == limit else -1
        return pages

    def _follow(self, value: float, now: float) -> None:
        """Move the price towards the value of a visit."""
        self._priced += 1
        window = max(_PRICE_WINDOW * self._pages, _MIN_PRICE_WINDOW)
        rate = 1.0 / min(self._priced, window)
        # A page that is taken long before it is due must not collapse the price of all others.
        target = math.log(max(value, _LEAST_VALUE))
        if self._priced > _MIN_PRICE_WINDOW:
            target = max(target, self._log_price - 1.0)
            most = self._log_price + _MAX_RISE
            if target > most:
                first = self._store.first()
                if first is None or first[0] > now:
                    # The budget pays for every visit at this price.
                    target = most
        self._log_price += rate * (target - self._log_price)
        self._save_price()

    def _save_price(self) -> None:
        record = self._price_record.pack(self._pages, self._log_price, self._priced)
        self._store.put("price", 0, record)

    def _state(self, page: int) -> tuple[float, float]:
        record = self._store.get("schedule", page)
        if record is None:
            raise KeyError(page)
        last, wait = self._record.unpack(record)
        return last, wait
