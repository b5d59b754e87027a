"""A partition that a worker owns: its lease, what it may fetch, and what it tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from focused.cluster.coordinator import PartitionLease, PartitionStatus
from focused.cluster.leadership import MAX_REPORTED_PRIORITIES
from focused.cluster.partition import Outgoing, Partition
from focused.cluster.worker_round import PartitionPlan
from focused.crawl.loop import Crawl
from focused.crawl.steps import Done, Step, Wait

_PAGE_BUDGET_SPENT = "page budget spent"
MAX_OUTBOX_LINKS = 100_000
"""A partition with more links to send waits until Redis has taken them."""


class PartitionReplica(Protocol):
    """The copy of an open partition's state in shared storage. Methods raise StorageError."""

    def prepare(self) -> Callable[[], object]:
        """Return what uploads everything that was committed so far; it may run in a thread."""

    def finish(self, now: float) -> None:
        """Write the partition's results; its crawl is closed."""


@dataclass(slots=True)
class OwnedPartition:
    """A partition under a lease; it fetches nothing from ``may_fetch_until`` on."""

    partition: Partition
    replica: PartitionReplica
    lease: PartitionLease
    may_fetch_until: float
    ask_at: float = 0.0
    """When to ask for the next fetch; infinite: when something happens."""
    idle_reason: str | None = None
    """Why its crawl has nothing to fetch; None while it may have."""
    floor: float = -math.inf
    """The priority below which it fetches nothing, because other partitions have better links."""
    leaves: bool = False
    is_congested: bool = False
    """Whether its outbox was full in the last round."""
    granted: int = 0
    rounds: int = 0
    """Rounds of this owner in which its stream was read."""
    outgoing: Outgoing = field(default_factory=Outgoing)
    """What the round under way sends."""
    final_status: PartitionStatus | None = None
    """Set when its crawl was closed, because the whole crawl has ended."""

    @property
    def is_closed(self) -> bool:
        """Whether its crawl was closed."""
        return self.final_status is not None

    @property
    def crawl(self) -> Crawl:
        """The partition's crawl."""
        return self.partition.crawl

    def may_fetch(self, now: float) -> bool:
        """Whether the lease holds, the partition stays here, and what it found was sent."""
        return not self.leaves and not self.is_congested and now < self.may_fetch_until

    def wake(self) -> None:
        """Ask for the next fetch at once."""
        self.ask_at, self.idle_reason = 0.0, None

    def next(self, now: float) -> Step | None:
        """Return the next step, or None if it is not time to ask; note when to ask again."""
        if now < self.ask_at:
            return None
        step = self.crawl.next(now)
        if isinstance(step, Wait):
            self.idle_reason = None
            self.ask_at = math.inf if step.until is None else step.until
        elif isinstance(step, Done):
            self.idle_reason, self.ask_at = step.reason, math.inf
        return step

    def limit_pages(self, pages: int) -> None:
        """Set the pages that were granted so far, those fetched included."""
        self.granted = pages
        self.crawl.limit_pages(pages)
        if self.idle_reason == _PAGE_BUDGET_SPENT and self.crawl.counters.fetched < pages:
            self.wake()

    def hold_back(self, floor: float) -> None:
        """Fetch nothing below a priority."""
        self.floor = floor
        self.crawl.limit_priority(floor)
        if self.idle_reason is None:
            self.ask_at = 0.0

    def plan(self, now: float, *, leaves: bool) -> PartitionPlan:
        """Return what the next round is to do.

        With ``leaves`` the partition is released whatever is left to do.
        """
        self.crawl.sync()
        self.outgoing = self.partition.collect()
        self.is_congested = len(self.partition.outbox) > MAX_OUTBOX_LINKS
        status = self.status(now)
        best, used = status.priorities, status.fetched + status.in_flight
        gives_back = self.granted > used and not (best and best[0] >= self.floor)
        if gives_back:
            self.limit_pages(used)
        is_done = self.leaves and not self.crawl.in_flight and self.partition.is_empty
        return PartitionPlan(
            self.lease,
            status,
            self.replica.prepare(),
            self.outgoing,
            self.partition.position,
            gives_back=gives_back,
            leaves=leaves or is_done,
        )

    def status(self, now: float) -> PartitionStatus:
        """Return what all workers are told."""
        partition, crawl = self.partition, self.crawl
        counters = crawl.counters
        waits_for_grant = (
            self.idle_reason == _PAGE_BUDGET_SPENT and crawl.frontier.hosts.with_links > 0
        )
        has_nothing = self.idle_reason is not None and not waits_for_grant
        return PartitionStatus(
            partition.number,
            self.lease.token,
            self.lease.worker,
            fetched=counters.fetched,
            in_flight=crawl.in_flight_pages,
            classified=counters.classified,
            on_topic=counters.on_topic,
            bytes=counters.bytes,
            frontier=len(crawl.frontier),
            outbox=len(partition.outbox),
            sent=partition.sent,
            received=partition.received.links,
            rounds=self.rounds,
            is_idle=has_nothing and not crawl.in_flight and partition.is_empty,
            priorities=tuple(crawl.best_priorities(MAX_REPORTED_PRIORITIES, now)),
            reported_at=now,
        )
