"""The coordinator and the pace leases in memory, for simulations and tests of one process.

They take the time from ``clock``, in seconds, so that a simulation decides when a lease expires.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from cachetools import TLRUCache, TTLCache

from focused.cluster.coordinator import (
    ASK_AGAIN_S,
    LEASE_S,
    ClusterState,
    PartitionLease,
    PartitionStatus,
    WorkerCommand,
    WorkerStatus,
)

_K = TypeVar("_K")
_V = TypeVar("_V")
_LEADER = "leader"


class MemoryCoordinator:
    """A :class:`~focused.cluster.coordinator.Coordinator` within one process."""

    def __init__(self, clock: Callable[[], float], lease_s: float = LEASE_S) -> None:
        self.lease_s = lease_s
        self._workers: TTLCache[str, WorkerStatus] = TTLCache(math.inf, lease_s, clock)
        self._draining: TTLCache[str, bool] = TTLCache(math.inf, lease_s, clock)
        self._leases: TTLCache[int, PartitionLease] = TTLCache(math.inf, lease_s, clock)
        self._leader: TTLCache[str, str] = TTLCache(math.inf, lease_s, clock)
        self._tokens: Counter[int] = Counter()
        self._statuses: dict[int, PartitionStatus] = {}
        self._granted: Counter[int] = Counter()
        self._command = WorkerCommand()

    def heartbeat(self, status: WorkerStatus) -> None:
        """Join, or renew the membership."""
        self._workers[status.name] = status
        if status.name in self._draining:
            self._draining[status.name] = True

    def leave(self, worker: str) -> None:
        """End the membership of a worker."""
        self._workers.pop(worker, None)
        self._draining.pop(worker, None)
        if self._leader.get(_LEADER) == worker:
            del self._leader[_LEADER]

    def workers(self) -> Mapping[str, WorkerStatus]:
        """Return the members by name."""
        return _items(self._workers)

    def drain(self, worker: str) -> None:
        """Ask a member to give its partitions away and to leave."""
        if worker in self._workers:
            self._draining[worker] = True

    def is_draining(self, worker: str) -> bool:
        """Whether :meth:`drain` was called for a member."""
        return worker in self._draining

    def claim(self, partition: int, worker: str, *, min_token: int = 0) -> PartitionLease | None:
        """Take a lease that no other worker holds; None if one does."""
        held = self._leases.get(partition)
        if held is not None and held.worker != worker:
            return None
        token = self._tokens[partition] = max(self._tokens[partition], min_token) + 1
        lease = self._leases[partition] = PartitionLease(partition, token, worker)
        return lease

    def renew(self, leases: Iterable[PartitionLease]) -> frozenset[int]:
        """Renew leases; return the partitions that are still held."""
        held = [lease for lease in leases if self._leases.get(lease.partition) == lease]
        for lease in held:
            self._leases[lease.partition] = lease
        return frozenset(lease.partition for lease in held)

    def release(self, lease: PartitionLease) -> None:
        """End a lease, if it is still held."""
        if self._leases.get(lease.partition) == lease:
            del self._leases[lease.partition]

    def owners(self) -> Mapping[int, PartitionLease]:
        """Return the leases that are held, by partition."""
        return _items(self._leases)

    def report(self, statuses: Sequence[PartitionStatus]) -> None:
        """Store the statuses of partitions, unless one with a higher token is there."""
        for status in statuses:
            stored = self._statuses.get(status.partition)
            if stored is None or stored.token <= status.token:
                self._statuses[status.partition] = status

    def statuses(self) -> Mapping[int, PartitionStatus]:
        """Return the newest status of each partition."""
        return dict(self._statuses)

    def lead(self, worker: str) -> bool:
        """Whether ``worker`` leads: renew or take the lead if nobody else has it."""
        if self._leader.get(_LEADER, worker) != worker:
            return False
        self._leader[_LEADER] = worker
        return True

    def grant(self, pages: Mapping[int, int], budget: int) -> Mapping[int, int]:
        """Grant further pages, in the order given, until ``budget`` is reached."""
        left = budget - self._granted.total()
        granted = {}
        for partition, wanted in pages.items():
            granted[partition] = share = max(min(wanted, left), 0)
            self._granted[partition] += share
            left -= share
        return granted

    def granted(self) -> Mapping[int, int]:
        """Return the pages granted to each partition so far."""
        return dict(self._granted)

    def give_back(self, lease: PartitionLease, fetched: int) -> None:
        """Reduce a partition's grant to the pages that it fetched, if the lease is still held."""
        if self._leases.get(lease.partition) == lease and lease.partition in self._granted:
            self._granted[lease.partition] = min(self._granted[lease.partition], fetched)

    def command(self) -> WorkerCommand:
        """Return what all workers are to do."""
        return self._command

    def set_state(self, state: ClusterState, reason: str = "") -> None:
        """Tell all workers what to do. An ended crawl can only be set running again."""
        if self._command.state is not ClusterState.ENDED or state is ClusterState.RUNNING:
            self._command = replace(self._command, state=state, reason=reason)

    def rebalance(self) -> None:
        """Ask workers to assign the partitions again, by a new generation."""
        self._command = replace(self._command, generation=self._command.generation + 1)


def _items(cache: TTLCache[_K, _V]) -> dict[_K, _V]:
    with cache.timer:  # stops the time: no item expires meanwhile
        return dict(cache)


class MemoryPaceLeases:
    """:class:`~focused.cluster.coordinator.PaceLeases` within one process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._leases: TLRUCache[str, tuple[str, float]] = TLRUCache(
            math.inf, lambda _name, lease, _now: lease[1], clock
        )
        """Holder and time of expiry; after its request a lease has no holder."""

    def acquire(self, names: Sequence[str], holder: str, hold_s: float) -> float:
        """Lease all of ``names`` and return 0.0, or none, and return when to ask again."""
        now = self._clock()
        others = [
            lease
            for lease in map(self._leases.get, names)
            if lease is not None and lease[0] != holder
        ]
        if others:
            # How long a request of another holder takes is unknown; a delay ends at a known time.
            return max(
                min(until - now, ASK_AGAIN_S if name else math.inf) for name, until in others
            )
        for name in names:
            self._leases[name] = (holder, now + hold_s)
        return 0.0

    def finish(self, names: Sequence[str], holder: str, delay_s: float) -> None:
        """Let leases that ``holder`` has expire after ``delay_s``."""
        for name in names:
            if self._leases.get(name, ("", 0.0))[0] == holder:
                del self._leases[name]
                if delay_s > 0:
                    self._leases[name] = ("", self._clock() + delay_s)

    def flush(self) -> None:
        """Do nothing: all is sent."""
