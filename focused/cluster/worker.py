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
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from focused.cluster.budget import priority_floors
from focused.cluster.coordinator import (
    ClusterState,
    PaceLeases,
    PartitionLease,
    PartitionStatus,
    WorkerCommand,
    WorkerState,
    WorkerStatus,
)
from focused.cluster.learning import SharedLearning, sharing_probability
from focused.cluster.owned_partition import OwnedPartition, PartitionReplica
from focused.cluster.paced_requests import PacedRequests
from focused.cluster.partition import Partition
from focused.cluster.worker_round import RoundPlan, RoundResult, WorkerRounds
from focused.crawl.crawl_stats import Counters
from focused.crawl.loop import Crawl
from focused.crawl.page_parser import EarlyResult, PageParser
from focused.crawl.steps import Done, Fetch, SettledFetch, Step, Wait
from focused.errors import CoordinationError, FocusedError
from focused.web.page import Outcome

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
ROUND_S = 1.0
_SHORT_ROUND_S = 0.1
"""A partition waits for others' better links, so news of them must travel fast."""
_STATUSES_PER_S = 640
"""Statuses that a worker reads in short rounds, each of some 200 bytes."""
_POLL_S = 0.03
"""How often a round in another thread is looked after."""
_LEASE_MARGIN = 0.25
"""Share of a lease's time at its end in which nothing is fetched any more."""
_MAX_READS_PER_ROUND = 10


class RunInBackground(Protocol):
    """Runs rounds and restores, as :meth:`concurrent.futures.Executor.submit` does."""

    def __call__(self, call: Callable[[], _T], /) -> Future[_T]:
        """Start a call, in another thread."""


class PartitionOpener(Protocol):
    """Restores and opens partitions."""

    def restore(self, lease: PartitionLease) -> None:
        """Restore a partition's state into its local folder, for the owner of ``lease``.

        It may run in another thread. Raises StorageError.
        """

    def open(self, lease: PartitionLease, now: float) -> tuple[Partition, PartitionReplica]:
        """Open the partition whose state was restored for ``lease``, and queue its seeds."""

    def finish(self, reason: str, now: float) -> None:
        """Store that the crawl is over, and why. Raises StorageError."""


@dataclass(slots=True)
class _Restore:
    """A claimed partition whose state is being restored; ``renewed_at`` tells of its lease."""

    lease: PartitionLease
    renewed_at: float
    result: Future[None]
    is_lost: bool = False


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
        partitions: int,
        has_page_budget: bool,
        learning: SharedLearning | None = None,
    ) -> None:
        """``request_s`` is the longest time of a request; ``learning`` trains the scorer.

        ``partitions`` is the number of all partitions of the crawl.
        """
        self._status = status
        self._rounds = rounds
        self._paced = PacedRequests(paces, status, request_s)
        self._opener = opener
        self._run_in_background = run_in_background
        self._fetch_s = lease_s * (1 - _LEASE_MARGIN)
        """How long after the renewal of a lease its partition may fetch."""
        self._has_page_budget = has_page_budget
        self._short_round_s = max(_SHORT_ROUND_S, partitions / _STATUSES_PER_S)
        self._learning = learning
        self._owned: dict[int, OwnedPartition] = {}
        self._restoring: dict[int, _Restore] = {}
        self._partition_of_lease: dict[int, int] = {}
        self._finished: list[Counters] = []
        self._finish_at = 0.0
        self._running: Future[RoundResult] | None = None
        self._command = WorkerCommand()
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

    def of_url(self, url: str) -> Crawl:
        """Return the crawl for requests to a URL outside the frontier.

        Another partition's URL is requested by any crawl: pace leases keep its host's delay. Raises
        CoordinationError while this worker owns no partition.
        """
        owned = self._with_open_crawl
        if not owned:
            raise CoordinationError(f"{url} cannot be requested: this worker has no partition yet")
        return next((each for each in owned if each.partition.owns(url)), owned[0]).crawl

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
        until = now + (self._short_round_s if self._running is None else _POLL_S)
        owned = [each for each in self._owned.values() if may_fetch and each.may_fetch(now)]
        for i in range(len(owned)):
            each = owned[(self._next + i) % len(owned)]
            step = each.next(now)
            if isinstance(step, Fetch):
                self._next = (self._next + i + 1) % len(owned)
                self._partition_of_lease[step.lease] = each.partition.number
                return step
            until = min(until, each.ask_at)
        return Wait(max(until, now))

    def settle(
        self, lease: int, outcome: Outcome, now: float, parsed: EarlyResult = None
    ) -> SettledFetch | None:
        """Process the outcome of a fetch."""
        owned = self._owned[self._partition_of_lease.pop(lease)]
        settled = owned.crawl.settle(lease, outcome, now, parsed)
        self._finish_request(lease, owned.crawl, now)
        owned.wake()
        return settled

    def put_back(self, lease: int, now: float) -> None:
        """Close a lease whose request was not sent; its link stays queued."""
        owned = self._owned[self._partition_of_lease.pop(lease)]
        owned.crawl.put_back(lease, now)
        self._finish_request(lease, owned.crawl, now)
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
        try:
            return self._paced.begin(lease, crawl, url, address, now)
        except CoordinationError as error:
            self._report_problems([str(error)])
            return False

    def page_parser(self) -> PageParser:
        """Return a parser for the pages of all partitions."""
        for crawl in self.crawls:
            return crawl.page_parser().without_records()
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
        if not self._is_over and now >= self._round_at + self._short_round_s:
            self._round_at = now
            plan = self._short_plan(now) if now < self._full_at + ROUND_S else self._plan(now)
            self._running = self._run_in_background(partial(self._rounds.run, plan))

    def _exchange_knowledge(self) -> None:
        if self.problems:
            return  # each call would wait for its timeout; the next round tries again
        try:
            self._paced.flush()
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
        for restore in self._restoring.values():
            wait([restore.result])
            self._rounds.release(restore.lease)
        self._restoring.clear()
        plans = []
        for owned in self._with_open_crawl:
            owned.crawl.stop(now)
            plans.append(owned.plan(now, leaves=True))
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
            if owned.final_status is None:
                final_status = replace(owned.status(now), is_finished=True)
                owned.crawl.close(now)
                owned.final_status = final_status
                self._finished.append(owned.crawl.counters)
            owned.replica.finish(now)
            self._opener.finish(self._command.reason, now)
            self._rounds.finish(owned.lease, owned.final_status)
        except FocusedError as error:
            self._report_problems([f"partition {owned.partition.number}: {error}"])
            self._finish_at = now + ROUND_S
            return
        self._forget(owned)

    @property
    def _with_open_crawl(self) -> Sequence[OwnedPartition]:
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

    def _short_plan(self, now: float) -> RoundPlan:
        statuses = [owned.status(now) for owned in self._with_open_crawl]
        return RoundPlan(now, self._worker_status(), statuses, is_short=True)

    def _plan(self, now: float) -> RoundPlan:
        plans = [owned.plan(now, leaves=False) for owned in self._with_open_crawl]
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
                *(each.lease for each in self._restoring.values() if not each.is_lost),
                *(owned.lease for owned in self._owned.values() if owned.is_closed),
            ],
            claims=not self._is_draining,
            store_snapshot=learning.prepare_snapshot() if learning is not None and saves else None,
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
                logger.warning(
                    "partition %d was lost: its lease had run out before it was renewed", number
                )
                self._drop(owned)
                continue
            if done.is_held:
                owned.may_fetch_until = result.started_at + self._fetch_s
            if done.is_sent:
                owned.partition.confirm(owned.outgoing, now)
            if done.is_released:
                logger.info("partition %d was released", number)
                self._drop(owned)
                continue
            owned.rounds += done.is_read
            if done.entries:
                owned.partition.deliver(done.entries, now)
                owned.wake()
            owned.leaves = owned.leaves or number in result.unwanted
        if self._has_page_budget:
            for owned in self._with_open_crawl:
                if owned.partition.number in result.granted:
                    owned.limit_pages(result.granted[owned.partition.number])
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
            self._renew_restores(result)
            for lease in result.claimed:
                self._begin_restore(lease, result.started_at)

    def _hold_back(self, statuses: Mapping[int, PartitionStatus]) -> None:
        """Let partitions wait while others have clearly better links."""
        crawls = self.crawls
        if not crawls:
            return
        priorities = {number: each.priorities for number, each in statuses.items()}
        # All crawls have the policy and the patience of the topic.
        floors = priority_floors(priorities, crawls[0].worth_waiting_for)
        for owned in self._with_open_crawl:
            owned.hold_back(floors.get(owned.partition.number, -math.inf))

    def _sample_examples(self, probability: float) -> None:
        for owned in self._owned.values():
            if owned.partition.examples is not None:
                owned.partition.examples.probability = probability

    def _begin_restore(self, lease: PartitionLease, claimed_at: float) -> None:
        if lease.partition in self._restoring:  # a lost one that still runs
            self._rounds.release(lease)
            return
        result = self._run_in_background(partial(self._opener.restore, lease))
        self._restoring[lease.partition] = _Restore(lease, claimed_at, result)

    def _renew_restores(self, result: RoundResult) -> None:
        for number, restore in self._restoring.items():
            done = result.partitions.get(number)
            if done is not None and done.is_held:
                restore.renewed_at = result.started_at
            elif done is not None and done.is_held is False:
                restore.is_lost = True

    def _open_restored(self, now: float) -> None:
        for number, restore in list(self._restoring.items()):
            if restore.result.done():
                del self._restoring[number]
                if not restore.is_lost:
                    self._open(restore, now)

    def _note_command(self, command: WorkerCommand) -> None:
        if command.state is not self._command.state:
            logger.info("the cluster is %s %s", command.state, command.reason)
        self._command = command

    def _open(self, restore: _Restore, now: float) -> None:
        lease = restore.lease
        try:
            restore.result.result()
            partition, replica = self._opener.open(lease, now)
        except FocusedError as error:
            # The lease runs out, and another worker tries.
            logger.error("partition %d cannot be opened: %s", lease.partition, error)
            return
        if self._has_page_budget:
            partition.crawl.limit_pages(partition.crawl.counters.fetched)
        until = restore.renewed_at + self._fetch_s
        self._owned[lease.partition] = OwnedPartition(partition, replica, lease, until)
        logger.info("partition %d is crawled here now", lease.partition)

    def _drop(self, owned: OwnedPartition) -> None:
        """Forget a partition that another worker may have: nothing more is written."""
        self._forget(owned)
        owned.crawl.abandon()

    def _forget(self, owned: OwnedPartition) -> None:
        number = owned.partition.number
        del self._owned[number]
        for lease in [each for each, at in self._partition_of_lease.items() if at == number]:
            del self._partition_of_lease[lease]
            self._paced.forget(lease)

    def _finish_request(self, lease: int, crawl: Crawl, now: float) -> None:
        try:
            self._paced.finish(lease, crawl, now)
        except CoordinationError as error:
            self._report_problems([str(error)])

    def _report_problems(self, problems: Sequence[str]) -> None:
        for problem in problems:
            if problem not in self.problems:
                logger.warning("%s", problem)
        self.problems = tuple(problems)
