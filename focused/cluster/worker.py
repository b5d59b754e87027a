"""A worker: drives the partitions whose leases it holds, as one group of crawls.

About once a second the worker makes a plan of what its partitions have to upload, send and report.
A round (:mod:`focused.cluster.worker_round`) carries it out, in another thread, and the worker
applies the result: it queues received links, opens claimed partitions, drops lost ones.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from focused.cluster.budget import priority_floors
from focused.cluster.coordinator import (
    ClusterState,
    Command,
    Lease,
    PaceLeases,
    PartitionStatus,
    WorkerState,
    WorkerStatus,
)
from focused.cluster.leadership import MAX_REPORTED_PRIORITIES
from focused.cluster.learning import SharedLearning, sharing_probability
from focused.cluster.partition import Outgoing, Partition
from focused.cluster.worker_round import PartitionPlan, RoundPlan, RoundResult, WorkerRounds
from focused.crawl.crawl_stats import Counters
from focused.crawl.loop import Crawl
from focused.crawl.page_parser import PageParser, ParsedPage
from focused.crawl.steps import Done, Fetch, SettledFetch, Step, Wait
from focused.errors import CoordinationError, FocusedError
from focused.web.page import Failed, Outcome
from focused.web.urls import host_of

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
ROUND_S = 1.0
_SHORT_ROUND_S = 0.25
_POLL_S = 0.05
"""How often a round in another thread is looked after."""
_LEASE_MARGIN = 0.25
"""Share of a lease's time at its end in which nothing is fetched any more."""
_PACE_MARGIN_S = 5.0
_ASK_AGAIN_S = 1.0
_MAX_READS_PER_ROUND = 10
_PAGE_BUDGET_SPENT = "page budget spent"


class RunInBackground(Protocol):
    """Runs rounds and restores, as :meth:`concurrent.futures.Executor.submit` does."""

    def __call__(self, call: Callable[[], _T], /) -> Future[_T]:
        """Start a call, in another thread."""


class PartitionReplica(Protocol):
    """The copy of an open partition's state in shared storage. Methods raise StorageError."""

    def prepare(self) -> Callable[[], object]:
        """Return what uploads everything that was committed so far; it may run in a thread."""

    def finish(self, now: float) -> None:
        """Write the partition's results; its crawl is closed."""


class PartitionOpener(Protocol):
    """Restores and opens partitions."""

    def restore(self, lease: Lease) -> None:
        """Restore a partition's state into its local folder, for the owner of ``lease``.

        It may run in another thread. Raises StorageError.
        """

    def open(self, lease: Lease, now: float) -> tuple[Partition, PartitionReplica]:
        """Open the partition whose state was restored for ``lease``, and queue its seeds."""

    def finish(self, reason: str, now: float) -> None:
        """Store that the crawl is over, and why. Raises StorageError."""


@dataclass(slots=True)
class _OwnedPartition:
    partition: Partition
    replica: PartitionReplica
    lease: Lease
    may_fetch_until: float
    ask_at: float = 0.0
    """When to ask for the next fetch; infinite: when something happens."""
    idle_reason: str | None = None
    """Why its crawl has nothing to fetch; None while it may have."""
    floor: float = -math.inf
    """The priority below which it fetches nothing, because other partitions have better links."""
    leaves: bool = False
    is_closed: bool = False
    """Whether its crawl was closed, because the whole crawl has ended."""
    last_status: PartitionStatus | None = None
    granted: int = 0
    outgoing: Outgoing = field(default_factory=Outgoing)
    """What the round under way sends."""

    @property
    def crawl(self) -> Crawl:
        return self.partition.crawl

    def may_fetch(self, now: float) -> bool:
        """Whether the lease holds, and the partition stays here."""
        return not self.leaves and now < self.may_fetch_until

    def wake(self) -> None:
        """Ask for the next fetch at once."""
        self.ask_at, self.idle_reason = 0.0, None


class ClusterWorker:
    """The :class:`focused.crawl.crawl_group.CrawlGroup` of a worker's partitions."""

    def __init__(
        self,
        status: WorkerStatus,
        rounds: WorkerRounds,
        paces: PaceLeases,
        opener: PartitionOpener,
        run_in_background: RunInBackground,
        *,
        lease_s: float,
        request_s: float,
        has_page_budget: bool,
        learning: SharedLearning | None = None,
    ) -> None:
        """``request_s`` is the longest time of a request; ``learning`` trains the scorer."""
        self._status = status
        self._rounds = rounds
        self._paces = paces
        self._opener = opener
        self._run_in_background = run_in_background
        self._lease_s = lease_s
        self._request_s = request_s
        self._has_page_budget = has_page_budget
        self._learning = learning
        self._owned: dict[int, _OwnedPartition] = {}
        self._restoring: dict[int, tuple[Lease, float, Future[None]]] = {}
        """Claimed partitions: lease, its latest renewal, and the restore under way."""
        self._partition_of_lease: dict[int, int] = {}
        self._paced: dict[int, tuple[str, Sequence[str]]] = {}
        """URL and names of the pace leases of each fetch that was connected."""
        self._finished: list[Counters] = []
        self._finish_at = 0.0
        self._running: Future[RoundResult] | None = None
        self._command = Command()
        self._is_draining = False
        self._leads = False
        self._all_finished = False
        self._next = 0
        self._round_at = 0.0
        self._full_at = 0.0
        self._fetched = 0
        self.problems: Sequence[str] = ()
        """What the last round could not do."""

    @property
    def crawls(self) -> Sequence[Crawl]:
        """The crawls of the partitions that this worker owns."""
        return [owned.crawl for owned in self._with_open_crawl]

    @property
    def counters(self) -> Counters:
        """The totals of these partitions, and of those that were finished here."""
        return Counters.total([*(crawl.counters for crawl in self.crawls), *self._finished])

    @property
    def partitions(self) -> Sequence[int]:
        """The numbers of these partitions."""
        return sorted(self._owned)

    @property
    def command(self) -> Command:
        """What all workers are to do, as of the last round."""
        return self._command

    def of_url(self, url: str) -> Crawl:
        """Return the crawl for requests to a URL outside the frontier.

        Another partition's URL is requested by any crawl: pace leases keep its host's delay. Raises
        CoordinationError while this worker owns no partition.
        """
        for owned in self._owned.values():
            if owned.partition.owns(url):
                return owned.crawl
        for owned in self._owned.values():
            return owned.crawl
        raise CoordinationError(f"{url} cannot be requested: this worker has no partition yet")

    def of_lease(self, lease: int) -> Crawl | None:
        """Return the crawl of a lease; None if it was settled or its partition was lost."""
        owned = self._owned.get(self._partition_of_lease.get(lease, -1))
        return owned.crawl if owned is not None and owned.crawl.is_open(lease) else None

    def next(self, now: float) -> Step:
        """Return the next fetch of any partition, each in its turn."""
        self._turn_rounds(now)
        if self._is_over:
            return self._end()
        may_fetch = self._command.state is ClusterState.RUNNING
        until = now + (_SHORT_ROUND_S if self._running is None else _POLL_S)
        owned = [each for each in self._owned.values() if may_fetch and each.may_fetch(now)]
        for i in range(len(owned)):
            each = owned[(self._next + i) % len(owned)]
            step = self._ask(each, now)
            if isinstance(step, Fetch):
                self._next = (self._next + i + 1) % len(owned)
                self._partition_of_lease[step.lease] = each.partition.number
                return step
            until = min(until, each.ask_at)
        return Wait(max(until, now))

    def settle(
        self, lease: int, outcome: Outcome, now: float, parsed: ParsedPage | Failed | None = None
    ) -> SettledFetch | None:
        """Process the outcome of a fetch."""
        owned = self._owned[self._partition_of_lease.pop(lease)]
        settled = owned.crawl.settle(lease, outcome, now, parsed)
        self._finish_pace(lease, owned.crawl, now)
        owned.wake()
        return settled

    def put_back(self, lease: int, now: float) -> None:
        """Close a lease whose request was not sent; its link stays queued."""
        owned = self._owned[self._partition_of_lease.pop(lease)]
        owned.crawl.put_back(lease, now)
        self._finish_pace(lease, owned.crawl, now)
        owned.wake()

    def may_connect(self, lease: int | None, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent to the address.

        No other partition may request the host or the address, nor may it have done so less than
        a delay ago.
        """
        owned = None if lease is None else self._owned.get(self._partition_of_lease.get(lease, -1))
        if lease is not None and (owned is None or now >= owned.may_fetch_until):
            return False
        crawl = self.of_url(url) if owned is None else owned.crawl
        if not crawl.may_connect(lease, url, address, now):
            return False
        names: tuple[str, ...] = (f"host {host_of(url)}",)
        if crawl.topic.politeness.per_address:
            names += (f"address {address}",)
        wait_s = self._acquire(names, self._holder(lease))
        if wait_s > 0:
            crawl.delay_host(url, now + wait_s, now)
            return False
        if lease is not None:
            self._paced[lease] = (url, names)
        return True

    def page_parser(self) -> PageParser:
        """Return a parser for the pages of all partitions."""
        for owned in self._owned.values():
            return owned.crawl.page_parser().without_records()
        raise CoordinationError("this worker has no partition yet")

    def is_finished(self, now: float) -> bool:
        """Whether the crawl is over or this worker is to leave, and no fetch is in flight."""
        return self._is_over and not any(crawl.in_flight for crawl in self.crawls)

    def maintain(self, now: float) -> None:
        """Take part in the rounds, and train the scorer."""
        self._turn_rounds(now)
        self._exchange_knowledge()

    def _turn_rounds(self, now: float) -> None:
        """Apply the round that has ended; start the next one if it is due."""
        if self._running is not None:
            if not self._running.done():
                return
            result, self._running = self._running.result(), None
            self._apply(result, now)
        self._open_restored(now)
        if self._command.state is ClusterState.ENDED and now >= self._finish_at:
            self._finish_one(now)
        if not self._is_over and now >= self._round_at + _SHORT_ROUND_S:
            self._round_at = now
            plan = self._short_plan(now) if now < self._full_at + ROUND_S else self._plan(now)
            self._running = self._run_in_background(partial(self._rounds.run, plan))

    def _exchange_knowledge(self) -> None:
        if self.problems:
            return  # each call would wait for its timeout; the next round tries again
        try:
            self._paces.flush()
            if self._learning is not None:
                for _ in range(_MAX_READS_PER_ROUND):
                    if not self._learning.learn():
                        break
        except FocusedError as error:
            self._report_problems([str(error)])

    def close(self, now: float) -> None:
        """Close all partitions, make them durable, and release them for other workers."""
        if self._running is not None:
            self._apply(self._running.result(), now, claims=False)
            self._running = None
        for lease, _, restored in self._restoring.values():
            wait([restored])
            self._rounds.release(lease)
        self._restoring.clear()
        plans = []
        for owned in self._with_open_crawl:
            owned.crawl.stop(now)
            owned.outgoing, owned.leaves = owned.partition.collect(), True
            plans.append(self._partition_plan(owned, now))
        statuses = [plan.status for plan in plans]
        plan = RoundPlan(now, self._worker_status(), statuses, plans, claims=False)
        result = self._rounds.run(plan)
        for number, done in result.partitions.items():
            owned = self._owned[number]
            if done.is_sent:
                owned.partition.confirm(owned.outgoing, now)
            owned.crawl.close(now)
        self._owned.clear()
        self._report_problems(result.problems)
        self._rounds.leave()

    def _finish_one(self, now: float) -> None:
        """Store the results of one partition, after the crawl has ended, and release it."""
        owned = next(
            (each for each in self._owned.values() if each.is_closed or not each.crawl.in_flight),
            None,
        )
        if owned is None:
            return
        try:
            if not owned.is_closed:
                status = self._partition_status(owned, now)
                owned.last_status = replace(status, is_finished=True)
                owned.crawl.close(now)
                owned.is_closed = True
                self._finished.append(owned.crawl.counters)
            owned.replica.finish(now)
            self._opener.finish(self._command.reason, now)
            assert owned.last_status is not None
            self._rounds.finish(owned.lease, owned.last_status)
        except FocusedError as error:
            self._report_problems([f"partition {owned.partition.number}: {error}"])
            self._finish_at = now + ROUND_S
            return
        self._forget(owned)

    @property
    def _with_open_crawl(self) -> Sequence[_OwnedPartition]:
        return [owned for owned in self._owned.values() if not owned.is_closed]

    @property
    def _is_over(self) -> bool:
        if self._command.state is ClusterState.ENDED:
            return self._all_finished and not self._owned
        if self._command.state is ClusterState.STOPPING:
            return True
        return self._is_draining and not self._owned

    def _end(self) -> Step:
        if any(crawl.in_flight for crawl in self.crawls):
            return Wait(None)
        if self._command.state is ClusterState.RUNNING:
            return Done("the worker was drained")
        return Done(self._command.reason or f"the cluster is {self._command.state}")

    def _ask(self, owned: _OwnedPartition, now: float) -> Step | None:
        """Return the next step of a partition, or None; note when to ask again."""
        if now < owned.ask_at:
            return None
        step = owned.crawl.next(now)
        if isinstance(step, Wait):
            owned.idle_reason = None
            owned.ask_at = float("inf") if step.until is None else step.until
        elif isinstance(step, Done):
            owned.idle_reason, owned.ask_at = step.reason, float("inf")
        return step

    def _short_plan(self, now: float) -> RoundPlan:
        statuses = [self._partition_status(owned, now) for owned in self._with_open_crawl]
        return RoundPlan(now, self._worker_status(), statuses, is_short=True)

    def _plan(self, now: float) -> RoundPlan:
        plans = []
        for owned in self._with_open_crawl:
            owned.crawl.sync()
            owned.outgoing = owned.partition.collect()
            plans.append(self._partition_plan(owned, now))
        worker = self._worker_status(now)
        self._full_at = now
        learning = self._learning
        saves = self._leads and learning is not None and learning.is_snapshot_due
        return RoundPlan(
            now,
            worker,
            [plan.status for plan in plans],
            plans,
            others=[
                *(lease for lease, _, _ in self._restoring.values()),
                *(owned.lease for owned in self._owned.values() if owned.is_closed),
            ],
            claims=not self._is_draining,
            store_snapshot=learning.prepare_snapshot() if learning is not None and saves else None,
        )

    def _partition_plan(self, owned: _OwnedPartition, now: float) -> PartitionPlan:
        partition, crawl = owned.partition, owned.crawl
        status = self._partition_status(owned, now)
        best = status.priorities
        used = status.fetched + status.in_flight
        gives_back = owned.granted > used and not (best and best[0] >= owned.floor)
        if gives_back:
            owned.granted = used
            crawl.limit_pages(used)
        leaves = owned.leaves and not crawl.in_flight and partition.is_empty
        return PartitionPlan(
            owned.lease,
            status,
            owned.replica.prepare(),
            owned.outgoing,
            partition.position,
            gives_back=gives_back,
            leaves=leaves or self._is_over,
        )

    def _partition_status(self, owned: _OwnedPartition, now: float) -> PartitionStatus:
        partition, crawl = owned.partition, owned.crawl
        counters = crawl.counters
        has_nothing = owned.idle_reason is not None and not (
            owned.idle_reason == _PAGE_BUDGET_SPENT and crawl.frontier.hosts.with_links
        )
        return PartitionStatus(
            partition.number,
            owned.lease.token,
            self._status.name,
            fetched=counters.fetched,
            in_flight=crawl.in_flight_pages,
            classified=counters.classified,
            on_topic=counters.on_topic,
            bytes=counters.bytes,
            frontier=len(crawl.frontier),
            outbox=len(partition.outbox),
            sent=partition.sent,
            received=partition.received.links,
            is_idle=has_nothing and not crawl.in_flight and partition.is_empty,
            priorities=tuple(crawl.best_priorities(MAX_REPORTED_PRIORITIES, now)),
            reported_at=now,
        )

    def _worker_status(self, now: float | None = None) -> WorkerStatus:
        fetched = sum(crawl.counters.fetched for crawl in self.crawls)
        if now is not None and now > self._full_at:
            speed = max(fetched - self._fetched, 0) / (now - self._full_at)
            self._fetched = fetched
            self._status = replace(self._status, pages_per_s=speed)
        state = WorkerState.DRAINING if self._is_draining else WorkerState.ACTIVE
        return replace(self._status, state=state)

    def _apply(self, result: RoundResult, now: float, *, claims: bool = True) -> None:
        self._report_problems(result.problems)
        for number, done in result.partitions.items():
            owned = self._owned.get(number)
            if owned is None:
                continue
            if done.is_held is False:
                self._lose(owned)
                continue
            if done.is_held:
                owned.may_fetch_until = result.started_at + self._lease_s * (1 - _LEASE_MARGIN)
            if done.is_sent:
                owned.partition.confirm(owned.outgoing, now)
            if done.is_released:
                self._close_released(owned)
                continue
            if done.entries:
                owned.partition.deliver(done.entries, now)
                owned.wake()
            owned.leaves = owned.leaves or number in result.unwanted
        if self._has_page_budget:
            for owned in self._with_open_crawl:
                if owned.partition.number in result.granted:
                    self._limit(owned, result.granted[owned.partition.number])
        self._hold_back(result.statuses)
        self._leads = result.leads
        self._all_finished = result.all_finished
        if result.pages_per_s is not None:
            self._sample_examples(sharing_probability(result.pages_per_s))
        if result.command is not None:
            self._note_command(result.command)
            self._is_draining = result.is_draining
        if self._is_draining:
            for owned in self._owned.values():
                owned.leaves = True
        if claims:
            self._continue_restores(result)
            for lease in result.claimed:
                restored = self._run_in_background(partial(self._opener.restore, lease))
                self._restoring[lease.partition] = (lease, result.started_at, restored)

    def _hold_back(self, statuses: Mapping[int, PartitionStatus]) -> None:
        """Let partitions wait while others have clearly better links."""
        priorities = {number: each.priorities for number, each in statuses.items()}
        for owned in self._with_open_crawl:
            floors = priority_floors(priorities, owned.crawl.worth_waiting_for)
            owned.floor = floors.get(owned.partition.number, -math.inf)
            owned.crawl.limit_priority(owned.floor)
            if owned.idle_reason is None:
                owned.ask_at = 0.0

    def _sample_examples(self, probability: float) -> None:
        for owned in self._owned.values():
            if owned.partition.examples is not None:
                owned.partition.examples.probability = probability

    def _continue_restores(self, result: RoundResult) -> None:
        for number, (lease, _, restored) in list(self._restoring.items()):
            done = result.partitions.get(number)
            if done is not None and done.is_held:
                self._restoring[number] = (lease, result.started_at, restored)
            elif done is not None and done.is_held is False:
                # Whoever has it now fenced the restore off.
                del self._restoring[number]

    def _open_restored(self, now: float) -> None:
        for number, (lease, renewed_at, restored) in list(self._restoring.items()):
            if restored.done():
                del self._restoring[number]
                self._open(lease, renewed_at, restored, now)

    def _limit(self, owned: _OwnedPartition, pages: int) -> None:
        owned.granted = pages
        owned.crawl.limit_pages(pages)
        if owned.idle_reason == _PAGE_BUDGET_SPENT and owned.crawl.counters.fetched < pages:
            owned.wake()

    def _note_command(self, command: Command) -> None:
        if command.state is not self._command.state:
            logger.info("the cluster is %s %s", command.state, command.reason)
        self._command = command

    def _open(self, lease: Lease, renewed_at: float, restored: Future[None], now: float) -> None:
        try:
            restored.result()
            partition, replica = self._opener.open(lease, now)
        except FocusedError as error:
            # The lease runs out, and another worker tries.
            logger.error("partition %d cannot be opened: %s", lease.partition, error)
            return
        if self._has_page_budget:
            partition.crawl.limit_pages(partition.crawl.counters.fetched)
        until = renewed_at + self._lease_s * (1 - _LEASE_MARGIN)
        self._owned[lease.partition] = _OwnedPartition(partition, replica, lease, until)
        logger.info("partition %d is crawled here now", lease.partition)

    def _lose(self, owned: _OwnedPartition) -> None:
        """Drop a partition that another worker may have: nothing more is written."""
        logger.warning(
            "partition %d was lost: its lease had run out before it was renewed",
            owned.partition.number,
        )
        self._forget(owned)
        owned.crawl.abandon()

    def _close_released(self, owned: _OwnedPartition) -> None:
        logger.info("partition %d was released", owned.partition.number)
        self._forget(owned)
        owned.crawl.abandon()

    def _forget(self, owned: _OwnedPartition) -> None:
        number = owned.partition.number
        del self._owned[number]
        for lease in [each for each, at in self._partition_of_lease.items() if at == number]:
            del self._partition_of_lease[lease]
            self._paced.pop(lease, None)

    def _acquire(self, names: Sequence[str], holder: str) -> float:
        try:
            return self._paces.acquire(names, holder, self._request_s + _PACE_MARGIN_S)
        except CoordinationError as error:
            self._report_problems([str(error)])
            return _ASK_AGAIN_S

    def _finish_pace(self, lease: int, crawl: Crawl, now: float) -> None:
        url, names = self._paced.pop(lease, ("", ()))
        if not names:
            return
        try:
            self._paces.finish(names, self._holder(lease), max(crawl.due_at(url) - now, 0.0))
        except CoordinationError as error:
            self._report_problems([str(error)])

    def _holder(self, lease: int | None) -> str:
        # With the process, because one that is started again counts its leases anew.
        return f"{self._status.name} {self._status.process} {self._status.joined_at} {lease or 0}"

    def _report_problems(self, problems: Sequence[str]) -> None:
        for problem in problems:
            if problem not in self.problems:
                logger.warning("%s", problem)
        self.problems = tuple(problems)
