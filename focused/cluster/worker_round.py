"""What a worker does with coordinator, exchange and shared storage about once a second.

A round touches no crawl: it takes a plan that was made on the crawl's thread and returns what the
worker is to do, so it may run in another thread.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from focused.cluster.assignment import assign_partitions
from focused.cluster.coordinator import (
    ClusterState,
    Coordinator,
    PartitionLease,
    PartitionStatus,
    WorkerCommand,
    WorkerState,
    WorkerStatus,
)
from focused.cluster.exchange import Exchange, StreamEntry
from focused.cluster.leadership import Leadership
from focused.cluster.partition import Outgoing
from focused.cluster.replication import FencedError
from focused.errors import CoordinationError, ExchangeError, StorageError

logger = logging.getLogger(__name__)

_BATCHES_AT_ONCE = 100
_CURRENT_S = 5.0
MAX_CLAIMS = 4
"""Partitions claimed in one round, so that others get some, too."""


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What a round is to do for one partition of the worker.

    ``upload`` makes durable what was committed; only then ``outgoing`` is sent and the
    stream is trimmed up to ``position``. With ``gives_back`` the unused part of the
    grant is returned; with ``leaves`` the lease is released at the end, if everything else
    succeeded.
    """

    lease: PartitionLease
    status: PartitionStatus
    upload: Callable[[], object]
    outgoing: Outgoing
    position: str
    gives_back: bool = False
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a round is to do; ``started_at`` is its time by the worker's clock.

    A short round has no ``partitions``: it exchanges ``statuses``, grants and commands only.
    ``others`` are leases of partitions that are not open yet, or not any more.
    ``store_snapshot`` stores what the scorer has learned, for workers that join.
    """

    started_at: float
    worker: WorkerStatus
    statuses: Sequence[PartitionStatus] = ()
    partitions: Sequence[PartitionPlan] = ()
    others: Sequence[PartitionLease] = ()
    is_short: bool = False
    claims: bool = True
    store_snapshot: Callable[[], object] | None = None


@dataclass(slots=True)
class PartitionResult:
    """What a round did for a partition; ``is_held`` is None if the coordinator did not answer."""

    is_held: bool | None = None
    is_sent: bool = False
    is_released: bool = False
    is_read: bool = False
    entries: Sequence[StreamEntry] = ()


@dataclass(slots=True)
class RoundResult:
    """What a round found; ``command`` is None if the coordinator did not answer.

    The states of ``claimed`` partitions are to be restored. ``unwanted`` are partitions of this
    worker that are assigned to others. ``pages_per_s`` is what all workers fetch; None if not asked
    for.
    """

    started_at: float
    partitions: dict[int, PartitionResult] = field(default_factory=dict)
    command: WorkerCommand | None = None
    is_draining: bool = False
    leads: bool = False
    pages_per_s: float | None = None
    claimed: list[PartitionLease] = field(default_factory=list)
    unwanted: frozenset[int] = frozenset()
    granted: Mapping[int, int] = field(default_factory=dict)
    statuses: Mapping[int, PartitionStatus] = field(default_factory=dict)
    is_storage_down: bool = False
    all_finished: bool = False
    problems: list[str] = field(default_factory=list)


class StateReplicas(Protocol):
    """The states of partitions in shared storage."""

    def newest_token(self, partition: int) -> int:
        """Return the highest fencing token in storage; 0 without any. Raises StorageError."""


class WorkerRounds:
    """Runs the rounds of one worker, one after the other."""

    def __init__(
        self,
        worker: str,
        partitions: int,
        coordinator: Coordinator,
        exchange: Exchange,
        replicas: StateReplicas,
        leadership: Leadership,
        *,
        max_load: float = 1.25,
    ) -> None:
        """``max_load`` as for :func:`assign_partitions`."""
        self._worker = worker
        self._partitions = partitions
        self._coordinator = coordinator
        self._exchange = exchange
        self._replicas = replicas
        self._leadership = leadership
        self._max_load = max_load
        self._heard: dict[int, tuple[tuple[int, float], float]] = {}
        """Token and time of each partition's last report, and when it was first seen."""

    def run(self, plan: RoundPlan) -> RoundResult:
        """Run one round. Problems are in the result; nothing is raised for them."""
        result = RoundResult(plan.started_at)
        if not plan.is_short:
            self._renew(plan, result)
        for partition in plan.partitions:
            own = result.partitions.setdefault(partition.lease.partition, PartitionResult())
            if own.is_held is not False and not result.is_storage_down:
                self._run_partition(partition, own, result)
        try:
            self._coordinate(plan, result)
        except CoordinationError as error:
            result.problems.append(str(error))
        if plan.store_snapshot is not None:
            try:
                plan.store_snapshot()
            except StorageError as error:
                result.problems.append(str(error))
        return result

    def finish(self, lease: PartitionLease, status: PartitionStatus) -> None:
        """Report that a partition's results are stored, and release it.

        Raises CoordinationError.
        """
        self._coordinator.report([status])
        self._coordinator.release(lease)

    def release(self, lease: PartitionLease) -> None:
        """Release a partition that was not opened; a lease that cannot be, runs out."""
        with contextlib.suppress(CoordinationError):
            self._coordinator.release(lease)

    def leave(self) -> None:
        """End the membership. Raises CoordinationError."""
        self._coordinator.leave(self._worker)

    def _renew(self, plan: RoundPlan, result: RoundResult) -> None:
        try:
            self._coordinator.heartbeat(plan.worker)
            leases = [*(each.lease for each in plan.partitions), *plan.others]
            held = self._coordinator.renew(leases) if leases else frozenset()
        except CoordinationError as error:
            result.problems.append(str(error))
            return
        for lease in leases:
            result.partitions[lease.partition] = PartitionResult(lease.partition in held)

    def _run_partition(
        self, plan: PartitionPlan, own: PartitionResult, result: RoundResult
    ) -> None:
        number = plan.lease.partition
        try:
            plan.upload()
            if not own.is_held:
                return
            plan.outgoing.send(self._exchange)
            own.is_sent = True
            self._exchange.trim(number, plan.position)
            if plan.gives_back:
                used = plan.status.fetched + plan.status.in_flight
                self._coordinator.give_back(plan.lease, used)
            if plan.leaves:
                self._coordinator.report([plan.status])
                self._coordinator.release(plan.lease)
                own.is_released = True
            else:
                own.entries = self._exchange.receive(number, plan.position, _BATCHES_AT_ONCE)
                own.is_read = True
        except FencedError as error:
            own.is_held = False
            result.problems.append(str(error))
        except (StorageError, ExchangeError, CoordinationError) as error:
            result.problems.append(f"partition {number}: {error}")
            # Each further upload would wait for a timeout, and the leases would run out.
            result.is_storage_down = result.is_storage_down or isinstance(error, StorageError)

    def _coordinate(self, plan: RoundPlan, result: RoundResult) -> None:
        gone = {
            number
            for number, own in result.partitions.items()
            if own.is_held is False or own.is_released
        }
        reported = [each for each in plan.statuses if each.partition not in gone]
        if reported:
            self._coordinator.report(reported)
        statuses = self._coordinator.statuses()
        result.statuses = self._current(statuses, plan.started_at)
        finished = {number for number, each in statuses.items() if each.is_finished}
        result.all_finished = len(finished) == self._partitions
        result.leads = self._coordinator.lead(self._worker)
        if result.leads:
            self._leadership.act(statuses)
        result.granted = self._coordinator.granted()
        result.command = self._coordinator.command()
        result.is_draining = self._coordinator.is_draining(self._worker)
        if plan.claims and not plan.is_short:
            is_ended = result.command.state is ClusterState.ENDED
            self._assign(plan, result, finished if is_ended else frozenset())

    def _current(
        self, statuses: Mapping[int, PartitionStatus], now: float
    ) -> Mapping[int, PartitionStatus]:
        """Return the statuses that were reported lately; nobody waits for a dead owner's links."""
        for number, status in statuses.items():
            reported = (status.token, status.reported_at)
            if self._heard.get(number, (None, 0.0))[0] != reported:
                self._heard[number] = (reported, now)
        return {
            number: status
            for number, status in statuses.items()
            if now - self._heard[number][1] < _CURRENT_S
        }

    def _assign(self, plan: RoundPlan, result: RoundResult, finished: AbstractSet[int]) -> None:
        workers = self._coordinator.workers()
        result.pages_per_s = sum(each.pages_per_s for each in workers.values())
        active = [name for name, each in workers.items() if each.state is WorkerState.ACTIVE]
        generation = 0 if result.command is None else result.command.generation
        assigned = assign_partitions(
            self._partitions, active, max_load=self._max_load, generation=generation
        )
        own = {each.lease.partition for each in plan.partitions}
        own |= {lease.partition for lease in plan.others}
        result.unwanted = frozenset(
            number for number in own if assigned.get(number, self._worker) != self._worker
        )
        owners = self._coordinator.owners()
        for number, worker in assigned.items():
            if len(result.claimed) == MAX_CLAIMS:
                return
            is_free = number not in own and number not in owners and number not in finished
            if worker == self._worker and is_free:
                self._claim(number, result)

    def _claim(self, number: int, result: RoundResult) -> None:
        try:
            lowest = self._replicas.newest_token(number)
            lease = self._coordinator.claim(number, self._worker, min_token=lowest)
        except StorageError as error:
            result.problems.append(f"partition {number} cannot be claimed: {error}")
            return
        if lease is not None:
            result.claimed.append(lease)
