"""Pace a continuous crawl: downloads per day, spread evenly over the day.

:class:`DownloadBudget` counts in token buckets. Revisits are paced by one from the beginning. Once
the first harvest is over, all downloads are rationed by one for pages and one for bytes. Unused
tokens accumulate for an hour at most, so a crawl that was stopped for a week does not send a week's
requests at once. :class:`RevisitPacer` queues due pages as the budget allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from focused.crawl.revisits.collection import Collection
from focused.crawl.stop_conditions import CrawlPacer
from focused.durations import DAY_S, HOUR_S
from focused.storage.tables import Tables
from focused.topic import Revisit

_MAX_UNUSED_S = HOUR_S
_DEFAULT_INTERVAL_DAYS = 7.0
_META = "download_budget"

_MIN_RELEASED = 16
_MAX_RELEASED_S = HOUR_S
"""No more pages are queued than are visited in this time, so that their scores stay up to date."""


@dataclass(slots=True)
class TokenBucket:
    """Tokens that accrue over time; negative after a large download.

    ``since`` is None until the first use, when the bucket is full.
    """

    tokens: float = 0.0
    since: float | None = None

    def available_at(self, per_s: float, now: float) -> float:
        """Return when a token is available: ``now`` or later. Tokens accrue at ``per_s``."""
        self._accrue(per_s, now)
        return now if self.tokens > 0 else now + (1.0 - self.tokens) / per_s

    def spend(self, tokens: float, per_s: float, now: float) -> None:
        """Take tokens out."""
        self._accrue(per_s, now)
        self.tokens -= tokens

    def _accrue(self, per_s: float, now: float) -> None:
        most = max(1.0, per_s * _MAX_UNUSED_S)
        if self.since is None:
            self.tokens = most
        else:
            self.tokens = min(most, self.tokens + max(0.0, now - self.since) * per_s)
        self.since = now


class _State(msgspec.Struct):
    is_rationed: bool = False
    pages: tuple[float, float | None] = (0.0, None)
    revisits: tuple[float, float | None] = (0.0, None)
    bytes: tuple[float, float | None] = (0.0, None)


class DownloadBudget:
    """Paces revisits, and after the first harvest all downloads; persistent, the caller commits."""

    def __init__(self, settings: Revisit, tables: Tables) -> None:
        self._settings = settings
        self._tables = tables
        state = msgspec.convert(tables.get_meta(_META) or {}, _State)
        self.is_rationed = state.is_rationed
        """Whether the first harvest is over."""
        self._pages, self._revisits = TokenBucket(*state.pages), TokenBucket(*state.revisits)
        self._bytes = TokenBucket(*state.bytes)

    def pages_per_s(self, collection_pages: int) -> float:
        """Return the downloads per second for a collection of so many pages."""
        per_day = self._settings.pages_per_day or max(
            1.0, collection_pages / _DEFAULT_INTERVAL_DAYS
        )
        return per_day / DAY_S

    def mean_interval_s(self, collection_pages: int) -> float:
        """Return the mean time between two visits of a page, if all downloads are revisits."""
        return max(collection_pages, 1) / self._revisits_per_s(collection_pages)

    def available_at(self, collection_pages: int, now: float) -> float:
        """Return when the next download may begin: ``now`` or later."""
        if not self.is_rationed:
            return now
        at = self._pages.available_at(self.pages_per_s(collection_pages), now)
        if self._settings.bytes_per_day is not None:
            at = max(at, self._bytes.available_at(self._settings.bytes_per_day / DAY_S, now))
        return at

    def next_revisit_at(self, collection_pages: int, now: float) -> float:
        """Return when the next page may be queued for a revisit: ``now`` or later."""
        return self._revisits.available_at(self._revisits_per_s(collection_pages), now)

    def start_rationing(self) -> None:
        """End the first harvest."""
        self.is_rationed = True
        self.save()

    def count_page(self, collection_pages: int, now: float) -> None:
        """Count a download that begins."""
        if self.is_rationed:
            self._pages.spend(1.0, self.pages_per_s(collection_pages), now)

    def count_revisit(self, collection_pages: int, now: float) -> None:
        """Count a page that is queued for a revisit."""
        self._revisits.spend(1.0, self._revisits_per_s(collection_pages), now)

    def count_bytes(self, count: int, now: float) -> None:
        """Count the bytes of a response."""
        if self.is_rationed and self._settings.bytes_per_day is not None:
            self._bytes.spend(count, self._settings.bytes_per_day / DAY_S, now)

    def save(self) -> None:
        """Write the state into the open transaction."""
        state = _State(self.is_rationed, *map(_saved, (self._pages, self._revisits, self._bytes)))
        self._tables.put_meta(_META, state)

    def _revisits_per_s(self, collection_pages: int) -> float:
        return self.pages_per_s(collection_pages) * (self._settings.share or 1.0)


def _saved(bucket: TokenBucket) -> tuple[float, float | None]:
    return bucket.tokens, bucket.since


class RevisitPacer(CrawlPacer):
    """Decides when a continuous crawl may download, and queues due pages; the caller commits."""

    is_continuous = True

    def __init__(self, collection: Collection, budget: DownloadBudget) -> None:
        self._collection = collection
        self._budget = budget

    @property
    def released(self) -> int:
        """The number of pages that are queued in the frontier or in flight."""
        return self._collection.released

    def prepare(self, now: float, is_harvest_over: Callable[[float], bool]) -> float:
        """Queue the pages to visit next; return when the next download may begin."""
        collection, budget = self._collection, self._budget
        collection.catch_up()
        if not budget.is_rationed and is_harvest_over(now):
            budget.start_rationing()
        pages = collection.originals
        at = budget.available_at(pages, now)
        if at > now:
            return at
        collection.set_mean_interval(budget.mean_interval_s(pages))
        collection.refresh(now)
        while self._may_release(pages) and budget.next_revisit_at(pages, now) <= now:
            if not collection.release(now):
                break
            budget.count_revisit(pages, now)
        return now

    def next_release_at(self, now: float) -> float | None:
        """Return when the next page may be queued; None if enough are queued, or all."""
        pages = self._collection.originals
        release_at = self._collection.next_release_at()
        if release_at is None or not self._may_release(pages):
            return None
        return max(
            release_at,
            self._budget.next_revisit_at(pages, now),
            self._budget.available_at(pages, now),
        )

    def count_download(self, now: float) -> None:
        """Count a page that is requested, of the collection or new."""
        self._budget.count_page(self._collection.originals, now)

    def count_bytes(self, count: int, now: float) -> None:
        """Count the bytes of a response."""
        self._budget.count_bytes(count, now)

    def save(self) -> None:
        """Write the state held in memory into the open transaction."""
        self._budget.save()

    def _may_release(self, pages: int) -> bool:
        most = max(_MIN_RELEASED, self._budget.pages_per_s(pages) * _MAX_RELEASED_S)
        return self._collection.released < most
