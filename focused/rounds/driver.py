"""The driver of a crawl by many processes: rounds, grants, commits.

A round has a barrier at both ends: every partition gets the links that others found before it, and
tells its best links; the next pages of the budget go to the best links of all; each partition
fetches until the round ends, and writes what it has for others. The manifest commits that.

So partitions crawl like a single crawl, which takes its best link first, and waits for it a moment
when its host is not due: a partition fetches nothing while another has a clearly better link.

A partition that does not answer in time misses the round, and what it wrote is ignored
(:mod:`focused.rounds.process_supervision`). The driver keeps nothing that the last manifest and the
partitions do not have, so a new driver goes on where a killed one stopped.
:mod:`focused.rounds.replication` moves the state of a partition to another machine.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from msgspec import structs

from focused.crawl.crawl_stats import Counters
from focused.crawl.stop_conditions import reached_limit
from focused.durations import HOUR_S
from focused.errors import StorageError
from focused.rounds.commits import RoundCommits
from focused.rounds.learning import SharedLearning, sharing_probability
from focused.rounds.manifest import Manifest, PartitionRecord, RoundFile
from focused.rounds.messages import Begin, Finish, Hold, Ready, Run, Start
from focused.rounds.process_supervision import (
    LOOK_S,
    Executor,
    Limits,
    PartitionProcesses,
    ProcessState,
)
from focused.rounds.storage import SharedStorage
from focused.topic import Budget

_ROUNDS = 60
"""Rounds in which a budget of pages is fetched, unless it is so large that they take longer."""
_MIN_PAGES = 10
_MAX_PRIORITIES = 2_000


@dataclass(frozen=True, slots=True)
class PageGrants:
    """Grants the pages of a budget round by round; ``pages`` None is without limit."""

    pages: int | None

    @property
    def at_once(self) -> int:
        """The pages of a round, of all partitions together."""
        return 1 if self.pages is None else max(_MIN_PAGES, math.ceil(self.pages / _ROUNDS))

    def wanted_priorities(self, partitions: int, fetched: int) -> int:
        """The best links that each partition is to tell: more than one in the last rounds."""
        # Pages in flight are not known yet, and what was granted in vain is to be taken back.
        if self._for_each(2 * partitions, (self.pages or 0) - fetched):
            return 1
        return min(self.at_once, _MAX_PRIORITIES)

    def share(self, number: int, ready: Mapping[int, Ready], granted: int) -> Mapping[int, int]:
        """Return what to grant in a round: enough to each, or the last pages to the best links.

        ``granted`` are the pages that all partitions have been granted so far.
        """
        if self.pages is None:
            return {}
        left = max(self.pages - granted, 0)
        if each := self._for_each(len(ready), left):
            return dict.fromkeys(ready, each)
        best = share_out(left, {n: each.priorities for n, each in ready.items()})
        if best:
            return best
        # Without a link that is due now, all have their turn.
        waiting = deque(n for n, each in ready.items() if each.queued)
        waiting.rotate(-number)
        return dict.fromkeys(islice(waiting, left), 1)

    def _for_each(self, partitions: int, left: int) -> int:
        """The pages that each of so many partitions gets; 0 if the best links are to get them."""
        enough = self.at_once
        each = enough if self.pages is None else min(enough, left // partitions)
        return each if each >= min(enough, _MAX_PRIORITIES) else 0


def priority_floors(
    priorities: Mapping[int, Sequence[float]], worth_waiting_for: float
) -> Mapping[int, float]:
    """Return the priority below which each partition fetches nothing, by partition.

    It is the best priority of the other partitions less ``worth_waiting_for``.
    """
    best = sorted((each[0] for each in priorities.values() if each), reverse=True)
    floors = [value - worth_waiting_for for value in best] + [-math.inf, -math.inf]
    return {
        partition: floors[1] if own and own[0] == best[0] else floors[0]
        for partition, own in priorities.items()
    }


def share_out(pages: int, priorities: Mapping[int, Sequence[float]]) -> Mapping[int, int]:
    """Return how many of the best ``pages`` links belong to each partition that has some.

    Among equals the lower partition comes first.
    """
    if not priorities:
        return {}
    owners = np.repeat(list(priorities), [len(best) for best in priorities.values()])
    values = np.concatenate([np.asarray(best, dtype=np.float64) for best in priorities.values()])
    chosen = owners[np.argsort(-values, kind="stable")[:pages]]
    numbers, counts = np.unique(chosen, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


logger = logging.getLogger(__name__)

_FIRST_ROUND_S = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE_S = 30.0
_MAX_ATTEMPTS = 10_000_000
"""Processes that one driver starts, at most."""


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What a round brought, for the progress line."""

    round: int
    counters: Counters
    queued: int
    seconds: float
    missing: tuple[int, ...]
    waited_s: float
    """The part of the time in which nothing was fetched."""


class RoundDriver:
    """Runs the rounds of one crawl."""

    def __init__(
        self,
        manifest: Manifest,
        starts: Sequence[Start],
        executor: Executor,
        storage: SharedStorage,
        budget: Budget,
        *,
        learning: SharedLearning | None = None,
        limits: Limits,
        worth_waiting_for: float = math.inf,
        name: str | None = None,
        version: str = "",
        on_round: Callable[[RoundReport], object] = lambda report: None,
        on_problem: Callable[[str], object] = logger.warning,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``starts`` are the first messages to the partitions, in their order.

        ``learning`` trains the scorer on the examples of all partitions. ``worth_waiting_for`` as
        for :func:`focused.rounds.driver.priority_floors`. ``name`` is unique among the drivers of
        a crawl on several machines, whose partitions store their states in ``storage``; without it
        they keep them. All partitions must be of this ``version``, unless it is empty.
        """
        self._processes = PartitionProcesses(
            starts,
            executor,
            limits,
            restart_from=None if name is None else self._restarted,
            version=version,
            on_problem=on_problem,
            clock=clock,
        )
        self._commits = RoundCommits(
            manifest,
            storage,
            learning,
            driver=name,
            insist=self._insist,
            on_problem=on_problem,
        )
        self._budget = budget
        self._grants = PageGrants(budget.pages)
        self._limits = limits
        self._worth_waiting_for = worth_waiting_for
        self._on_round = on_round
        self._on_problem = on_problem
        self._clock = clock
        self._counted_at = clock()
        self._name = name
        self._attempts = 0
        self._is_first = name is None
        self._round_s = min(_FIRST_ROUND_S, limits.round_s)
        self._fetched_per_s = 0.0
        self._addresses = dict(manifest.addresses)
        self._inboxes = manifest.inboxes()
        self._granted = {n: manifest.record(n).granted for n in self._processes}
        self._processes.round = manifest.round + 1
        self._processes.may_start = name is None

    @property
    def manifest(self) -> Manifest:
        """The last manifest."""
        return self._commits.manifest

    @property
    def counters(self) -> Counters:
        """The totals of all partitions, as far as they were told."""
        return Counters.total([Counters.from_state(self._told(each)) for each in self._processes])

    @property
    def should_stop(self) -> bool:
        """Set it to stop the crawl, so that it can be resumed."""
        return self._processes.should_stop

    @should_stop.setter
    def should_stop(self, value: bool) -> None:
        self._processes.should_stop = value

    def run(self) -> str:
        """Run rounds until the crawl is over or is to stop; return why.

        Raises StateError if a partition cannot be run, StorageError if the crawl is to stop while
        the storage does not answer.
        """
        if self._name is not None:
            self._take_lead(self._name)
        reason = self._run_rounds()
        self._processes.close(reason)
        self._commit((), end_reason="" if self.should_stop else reason)
        return reason

    def _take_lead(self, name: str) -> None:
        """Commit that this driver runs the crawl now; wait until nobody fetches for another one.

        From the storage nobody can tell whether the processes of a driver that died still run.
        """
        before_s = self.manifest.round_s
        self._commits.take_lead(name, self._limits.round_s)
        self._processes.round, self._processes.may_start = self.manifest.round + 1, True
        if before_s:
            wait_s = before_s + self._limits.request_s
            self._processes.start_after(wait_s)
            self._on_problem(
                f"the last command did not end this crawl: waiting {wait_s:.0f} s for the requests "
                "of its processes"
            )

    def _run_rounds(self) -> str:
        # Of a crawl on several machines the manifest tells what each partition has fetched.
        patience_s = math.inf if self._name is None else self._limits.silence_s
        processes = self._processes
        processes.wait(lambda: all(seat.is_open for seat in processes.values()), patience_s)
        while not self.should_stop:
            reason = self._run_round()
            if reason is not None:
                return reason
        return "stopped"

    def _run_round(self) -> str | None:
        """Run one round; return why the crawl is over, None if it goes on."""
        began_at = self._clock()
        number = self.manifest.round + 1
        ready = self._begin(number)
        reason = self._end_reason(ready)
        if reason is not None or self.should_stop or not ready:
            return reason
        fetched, run_at = self._fetched, self._clock()
        self._grant(number, ready)
        self._wait_for_end(ready, run_at, fetched)
        ran_s = self._clock() - run_at
        files = self._finish(number, ready.keys())
        self._commit(tuple(files.values()))
        self._fetched_per_s = (self._fetched - fetched) / max(ran_s, 0.01)
        self._round_s = min(self._round_s * _GROWTH, self._limits.round_s)
        self._on_round(
            RoundReport(
                number,
                self.counters,
                sum(each.queued for each in ready.values()),
                ran_s,
                tuple(n for n in self._processes if n not in files),
                self._clock() - began_at - ran_s,
            )
        )
        return None

    def _begin(self, number: int) -> Mapping[int, Ready]:
        """Let all partitions that are free get their inboxes; return what they have then."""
        processes, manifest = self._processes, self.manifest
        processes.wait(lambda: any(seat.is_free for seat in processes.values()))
        wanted = self._grants.wanted_priorities(len(processes), self._fetched)
        self._inboxes = manifest.inboxes()
        seats = {n: seat for n, seat in processes.items() if seat.is_free}
        for n, seat in seats.items():
            seat.enter(ProcessState.DELIVERING)
            inbox, last = tuple(self._inboxes[n]), manifest.record(n).round
            processes.send(n, Begin(number, inbox, last, wanted, manifest.learned))
        # At first nobody knows what is left of the budget: all must tell what they fetched.
        patience_s = math.inf if self._is_first else self._limits.answer_s
        self._wait_until_none_is(ProcessState.DELIVERING, seats, patience_s)
        ready = {
            n: seat.ready
            for n, seat in seats.items()
            if seat.state is ProcessState.READY and seat.ready is not None
        }
        self._is_first = self._is_first and len(ready) < len(processes)
        return {} if self._is_first else ready

    def _end_reason(self, ready: Mapping[int, Ready]) -> str | None:
        budget, counters = self._budget, self.counters
        reached = reached_limit(
            budget,
            counters.recent,
            pages=counters.fetched,
            bytes_=counters.bytes,
            active_s=self.manifest.active_s,
        )
        if reached is not None:
            return reached
        all_over = len(ready) == len(self._processes) and all(
            each.is_over and each.delivered >= self._last_file_for(n) for n, each in ready.items()
        )
        return "no link is left" if all_over else None

    def _last_file_for(self, partition: int) -> int:
        return max((each.round for each in self._inboxes[partition]), default=0)

    def _grant(self, number: int, ready: Mapping[int, Ready]) -> None:
        """Share out the next pages among the best links of all, and let the partitions run."""
        for n, each in ready.items():
            # What it did not use is taken back.
            self._granted[n] = int(each.counters["fetched"]) + each.in_flight
        shares = self._grants.share(number, ready, sum(self._granted.values()))
        for n, pages in shares.items():
            self._granted[n] += pages
        self._note_addresses(ready)
        shared: dict[int, dict[str, int]] = {n: {} for n in self._processes}
        for address, owners in self._addresses.items():
            for n in owners if len(owners) > 1 else ():
                shared[n][address] = len(owners)
        sharing = sharing_probability(self._fetched_per_s)
        if self._budget.hours is not None:
            left_s = self._budget.hours * HOUR_S - self.manifest.active_s
            self._round_s = max(min(self._round_s, left_s), 0.0)
        floors = self._floors(ready)
        for n in ready:
            seat = self._processes[n]
            seat.run(until=self._clock() + self._round_s)
            until_s = seat.fetches_until - seat.ready_at
            most = None if self._budget.pages is None else self._granted[n]
            self._processes.send(n, Run(number, until_s, most, floors[n], shared[n], sharing))

    def _note_addresses(self, ready: Mapping[int, Ready]) -> None:
        known = self._addresses
        for n, each in ready.items():
            for address in each.addresses:
                known[address] = tuple(sorted({*known.get(address, ()), n}))

    def _wait_for_end(self, ready: Mapping[int, Ready], began_at: float, fetched: int) -> None:
        """Wait for the round's deadline, or until it has brought enough or most are idle."""
        enough = math.inf if self._budget.pages is None else fetched + self._grants.at_once
        number = self.manifest.round + 1
        floors = dict(self._floors(ready))
        look_at = began_at

        def has_ended() -> bool:
            nonlocal look_at
            if self._clock() < look_at:
                return False
            running = {n for n in ready if self._processes[n].state is ProcessState.RUNNING}
            for n, floor in self._floors(running).items():
                if floor != floors[n]:
                    floors[n] = floor
                    self._processes.send(n, Hold(number, floor))
            idle = {n for n in running if self._is_idle(n)}
            now_fetched = self._fetched
            look_at = self._clock() + LOOK_S
            # Where nothing was fetched, nothing is due before the round's deadline either; unless
            # all wait for a better link of a partition that was granted too little.
            may_help = now_fetched > fetched or any(map(self._needs_more, running))
            return not running or (idle == running and may_help) or now_fetched >= enough

        self._processes.wait(has_ended, began_at + self._round_s - self._clock())

    def _floors(self, running: Iterable[int]) -> Mapping[int, float]:
        """Return the priorities below which partitions wait, as others have better links."""
        best: dict[int, Sequence[float]] = {}
        for n in running:
            progress, ready = self._processes[n].progress, self._processes[n].ready
            if progress is not None:
                best[n] = () if progress.best is None else (progress.best,)
            else:
                best[n] = () if ready is None else ready.priorities
        return priority_floors(best, self._worth_waiting_for)

    def _needs_more(self, partition: int) -> bool:
        """Whether a partition has fetched all that it was granted, and a link that is due."""
        progress = self._processes[partition].progress
        if progress is None or self._budget.pages is None:
            return False
        return progress.best is not None and progress.fetched >= self._granted[partition]

    def _is_idle(self, partition: int) -> bool:
        progress = self._processes[partition].progress
        return progress is not None and progress.is_idle

    def _finish(self, number: int, taking_part: AbstractSet[int]) -> Mapping[int, RoundFile]:
        """End the round; return the files of those that wrote theirs in time."""
        for n in taking_part:
            self._processes.send(n, Finish(number))
        self._wait_until_none_is(ProcessState.RUNNING, taking_part, self._limits.answer_s)
        self._wait_until_none_is(ProcessState.FINISHING, taking_part, self._limits.write_s)
        files = {}
        for n in taking_part:
            done = self._processes[n].finished
            if done is not None and done.problem:
                self._on_problem(f"partition {n}: {done.problem}")
            if done is not None and done.file is not None and done.round == number:
                files[n] = done.file
        return files

    def _wait_until_none_is(
        self, state: ProcessState, partitions: Iterable[int], within_s: float
    ) -> None:
        seats = [self._processes[n] for n in partitions]
        self._processes.wait(lambda: not any(seat.state is state for seat in seats), within_s)

    def _commit(self, files: Sequence[RoundFile], end_reason: str = "") -> None:
        """Commit a round; try again until the storage takes it."""
        # A process that was started now would go on from a state that is about to change.
        self._processes.may_start = self._name is None
        before, now = self.manifest, self._clock()
        finished = {file.partition for file in files}
        all_closed = all(map(self._processes.is_closed, self._processes))
        self._commits.commit(
            files,
            records={n: self._record(n, n in finished) for n in self._processes},
            addresses=self._addresses,
            active_s=before.active_s + now - self._counted_at,
            end_reason=end_reason,
            round_s=0.0 if all_closed else before.round_s,
        )
        self._counted_at = now
        self._processes.round, self._processes.may_start = self.manifest.round + 1, True

    def _record(self, partition: int, has_finished: bool) -> PartitionRecord:
        """Return what the next manifest says of a partition."""
        seat, old = self._processes[partition], self.manifest.record(partition)
        done = seat.finished if has_finished else None
        closed = seat.closed if self._processes.is_closed(partition) else None
        last = seat.ready if closed is not None else done
        return PartitionRecord(
            self.manifest.round + 1 if done is not None else old.round,
            max(old.delivered, last.delivered if last is not None else 0),
            self._granted[partition],
            self._told(partition),
            next((each.state for each in (closed, done) if each is not None), old.state),
        )

    def _insist(self, call: Callable[[], object]) -> None:
        """Call until the storage answers, or the crawl is to stop: then raise StorageError."""
        wait_s = self._limits.restart_s
        while True:
            try:
                call()
                return
            except StorageError as error:
                self._on_problem(f"{error}; the crawl waits and tries again")
                if self.should_stop:
                    raise
            self._processes.wait(lambda: self.should_stop, wait_s)
            wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)

    def _restarted(self, start: Start) -> Start:
        """Return the first message to a process of a crawl on several machines."""
        self._attempts += 1
        return structs.replace(
            start,
            attempt=self.manifest.drivers * _MAX_ATTEMPTS + self._attempts,
            state=self.manifest.record(start.partition).state,
        )

    @property
    def _fetched(self) -> int:
        """The pages of all partitions, as far as they were told."""
        return sum(int(self._told(n).get("fetched", 0)) for n in self._processes)

    def _told(self, partition: int) -> Mapping[str, Any]:
        """Return the newest counters of a partition."""
        return self._processes[partition].counters(self.manifest.record(partition).counters)
