"""Continuous crawls: their feature, and the pace of their downloads, spread evenly over the day.

:class:`RevisitPacer` counts in token buckets. Revisits are paced by one from the beginning. Once
the first harvest is over, all downloads are rationed by one for pages and one for bytes. Unused
tokens accumulate for an hour at most, so a crawl that was stopped for a week does not send a week's
requests at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from focused.crawl.features import CrawlCore, FeatureParts
from focused.crawl.policy import link_order_of
from focused.crawl.revisits.announcements import Announcements
from focused.crawl.revisits.collection import REVISIT, Collection, PageRecords, RevisitQueue
from focused.crawl.revisits.revisits import RevisitProcessor
from focused.crawl.revisits.versions import BLOCKS, VersionChecker, read_blocks
from focused.crawl.stop_conditions import CrawlPacer
from focused.durations import DAY_S, HOUR_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.policies import find_revisit_policy
from focused.revisit.policy import RevisitInputs
from focused.revisit.schedule import RevisitSchedule
from focused.revisit.signalled_policy import SignalledPolicy
from focused.storage.tables import Tables
from focused.topic import Revisit

_MAX_UNUSED_S = HOUR_S
_DEFAULT_INTERVAL_DAYS = 7.0
_META = "download_budget"

_MIN_RELEASED = 16
_MAX_RELEASED_S = HOUR_S
"""No more pages are queued than are visited in this time, so that their scores stay up to date."""


class TokenBucket(msgspec.Struct, array_like=True):
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
    """``is_rationed``: the first harvest is over."""

    is_rationed: bool = False
    pages: TokenBucket = msgspec.field(default_factory=TokenBucket)
    revisits: TokenBucket = msgspec.field(default_factory=TokenBucket)
    bytes: TokenBucket = msgspec.field(default_factory=TokenBucket)


class RevisitPacer(CrawlPacer):
    """Decides when a continuous crawl may download, and queues due pages.

    Persistent; the caller commits.
    """

    is_continuous = True

    def __init__(self, settings: Revisit, tables: Tables, collection: Collection) -> None:
        self._settings = settings
        self._tables = tables
        self._collection = collection
        self._state = msgspec.convert(tables.get_meta(_META) or {}, _State)

    @property
    def released(self) -> int:
        """The number of pages that are queued in the frontier or in flight."""
        return self._collection.released

    def prepare(self, now: float, is_harvest_over: Callable[[float], bool]) -> float:
        """Queue the pages to visit next; return when the next download may begin."""
        collection, state = self._collection, self._state
        collection.catch_up()
        if not state.is_rationed and is_harvest_over(now):
            state.is_rationed = True
            self.save()
        at = self._available_at(now)
        if at > now:
            return at
        per_s = self._revisits_per_s
        collection.set_mean_interval(max(collection.originals, 1) / per_s)
        collection.refresh(now)
        while self._may_release and state.revisits.available_at(per_s, now) <= now:
            if not collection.release(now):
                break
            state.revisits.spend(1.0, per_s, now)
        return now

    def next_release_at(self, now: float) -> float | None:
        """Return when the next page may be queued; None if enough are queued, or all."""
        release_at = self._collection.next_release_at()
        if release_at is None or not self._may_release:
            return None
        revisit_at = self._state.revisits.available_at(self._revisits_per_s, now)
        return max(release_at, revisit_at, self._available_at(now))

    def count_download(self, now: float) -> None:
        """Count a page that is requested, of the collection or new."""
        if self._state.is_rationed:
            self._state.pages.spend(1.0, self._pages_per_s, now)

    def count_bytes(self, count: int, now: float) -> None:
        """Count the bytes of a response."""
        if self._state.is_rationed and self._settings.bytes_per_day is not None:
            self._state.bytes.spend(count, self._settings.bytes_per_day / DAY_S, now)

    def save(self) -> None:
        """Write the state held in memory into the open transaction."""
        self._tables.put_meta(_META, self._state)

    def _available_at(self, now: float) -> float:
        """Return when the next download may begin: ``now`` or later."""
        if not self._state.is_rationed:
            return now
        at = self._state.pages.available_at(self._pages_per_s, now)
        if self._settings.bytes_per_day is not None:
            at = max(at, self._state.bytes.available_at(self._settings.bytes_per_day / DAY_S, now))
        return at

    @property
    def _pages_per_s(self) -> float:
        per_day = self._settings.pages_per_day
        return (per_day or max(1.0, self._collection.originals / _DEFAULT_INTERVAL_DAYS)) / DAY_S

    @property
    def _revisits_per_s(self) -> float:
        return self._pages_per_s * (self._settings.share or 1.0)

    @property
    def _may_release(self) -> bool:
        most = max(_MIN_RELEASED, self._pages_per_s * _MAX_RELEASED_S)
        return self._collection.released < most


def connect(core: CrawlCore) -> FeatureParts:
    """Build the collection with its schedule, and the handler of revisits."""
    core.page_analysers[BLOCKS] = read_blocks
    settings, state, responses = core.topic.revisit, core.state, core.responses
    tables, archive = state.store.tables, state.archive
    records = PageRecords(tables, archive)
    policy_records = TableRecords(tables)
    make_policy = find_revisit_policy(settings.policy)

    max_days = settings.max_interval_days
    max_interval_s = math.inf if max_days is None else max_days * DAY_S

    def make_schedule(mean_interval_s: float) -> RevisitSchedule:
        policy = make_policy(RevisitInputs(mean_interval_s, policy_records))
        return RevisitSchedule(
            SignalledPolicy(policy, policy_records, mean_interval_s),
            policy_records,
            mean_interval_s=mean_interval_s,
            min_interval_s=settings.min_interval_hours * HOUR_S,
            max_interval_s=max_interval_s,
            min_pace=settings.min_pace,
        )

    # Where priorities don't follow from scores, due pages come before new links.
    competes = link_order_of(core.policy).by_score and settings.share is None
    queue = RevisitQueue(tables, state.frontier, core.enqueuer, competes=competes)
    collection = Collection(settings, tables, records, make_schedule, archive, queue)
    versions = VersionChecker(tables)
    announcements = Announcements(tables, collection, versions, responses.queue_feed)
    processor = RevisitProcessor(
        core.hosts,
        state.frontier,
        collection,
        versions,
        announcements,
        responses,
        archive,
        state.counters,
    )
    pacer = RevisitPacer(settings, tables, collection)
    state.before_commit.extend([pacer.save, policy_records.save])
    return FeatureParts(handlers={REVISIT: processor}, first_listeners=[processor], pacer=pacer)
