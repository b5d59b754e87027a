"""The driver of a crawl by many processes: rounds, grants, commits.

A round has a barrier at both ends: every partition gets the links that others found before it, and
tells its best links; :mod:`focused.rounds.grants` shares out the next pages of the budget; each
partition fetches until the round ends, and writes what it has for others. The manifest commits
that.

A partition that does not answer in time misses the round, and what it wrote is ignored
(:mod:`focused.rounds.process_supervision`). The driver keeps nothing that the last manifest and the
partitions do not have, so a new driver goes on where a killed one stopped.
:mod:`focused.rounds.replication` moves the state of a partition to another machine.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from focused.crawl.crawl_stats import Counters
from focused.crawl.stop_conditions import reached_limit
from focused.durations import HOUR_S
from focused.errors import StorageError
from focused.rounds.grants import PageGrants, priority_floors
from focused.rounds.learning import SharedLearning, sharing_probability
from focused.rounds.manifest import (
    CONTENTS,
    EXAMPLES,
    DamagedFileError,
    Manifest,
    PartitionRecord,
    RoundFile,
    check_driver,
    commit_manifest,
    delete_outdated,
    read_section,
    write_round_file,
)
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

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

_FIRST_ROUND_S = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE_S = 30.0
_MAX_ATTEMPTS = 10_000_000
"""Processes that one driver starts, at most."""
_DRIVER = "driver"
"""Names the files of a driver without a name."""


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
        for :func:`focused.rounds.grants.priority_floors`. ``name`` is unique among the drivers of
        a crawl on several machines, whose partitions store their states in ``storage``; without it
        they keep them. All partitions must be of this ``version``, unless it is empty.
        """
        self.manifest = manifest
        """The last manifest."""
        self._processes = PartitionProcesses(
            starts,
            executor,
            limits,
            restart_from=None if name is None else self._restarted,
            version=version,
            on_problem=on_problem,
            clock=clock,
        )
        self._seats = self._processes.seats
        self._storage = storage
        self._budget = budget
        self._grants = PageGrants(
            budget.pages, {n: manifest.record(n).granted for n in self._seats}
        )
        self._learning = learning
        self._limits = limits
        self._worth_waiting_for = worth_waiting_for
        self._name = name
        self._on_round = on_round
        self._on_problem = on_problem
        self._clock = clock
        self._counted_at = clock()
        self._attempts = 0
        self._is_first = name is None
        self._round_s = min(_FIRST_ROUND_S, limits.round_s)
        self._fetched_per_s = 0.0
        self._addresses = dict(manifest.addresses)
        self._inboxes = manifest.inboxes()
        self._processes.round = manifest.round + 1
        self._processes.may_start = name is None

    @property
    def counters(self) -> Counters:
        """The totals of all partitions, as far as they were told."""
        return Counters.total([Counters.from_state(self._told(n)) for n in self._seats])

    @property
    def should_stop(self) -> bool:
        """Set it to stop the crawl, so that it can be resumed."""
        return self._processes.should_stop

    @should_stop.setter
    def should_stop(self, value: bool) -> None:
        self._processes.should_stop = value

    def run(self) -> str:
        """Run rounds until the crawl is over or is to stop; return why.

        Raises StateError if a partition cannot be run or another driver runs the crawl, and
        StorageError if the crawl is to stop while the storage does not answer.
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
        before = self.manifest
        self._write_manifest(drivers=before.drivers + 1, driver=name, round_s=self._limits.round_s)
        if before.round_s:
            wait_s = before.round_s + self._limits.request_s
            for seat in self._seats.values():
                seat.start_at = self._clock() + wait_s
            self._on_problem(
                f"the last command did not end this crawl: waiting {wait_s:.0f} s for the requests "
                "of its processes"
            )

    def _run_rounds(self) -> str:
        # Of a crawl on several machines the manifest tells what each partition has fetched.
        patience_s = math.inf if self._name is None else self._limits.silence_s
        self._processes.wait(lambda: all(seat.is_open for seat in self._seats.values()), patience_s)
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
        self._wait_for_end(number, ready, run_at, fetched)
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
                tuple(n for n in self._seats if n not in files),
                self._clock() - began_at - ran_s,
            )
        )
        return None

    def _begin(self, number: int) -> Mapping[int, Ready]:
        """Let all partitions that are free get their inboxes; return what they have then."""
        self._processes.wait(lambda: any(seat.is_free for seat in self._seats.values()))
        manifest, wanted = self.manifest, self._grants.wanted_priorities(self._fetched)
        self._inboxes = manifest.inboxes()
        seats = {n: seat for n, seat in self._seats.items() if seat.is_free}
        for n, seat in seats.items():
            seat.enter(ProcessState.DELIVERING)
            inbox, last = tuple(self._inboxes[n]), manifest.record(n).round
            self._processes.send(n, Begin(number, inbox, last, wanted, manifest.learned))
        # At first nobody knows what is left of the budget: all must tell what they fetched.
        patience_s = math.inf if self._is_first else self._limits.answer_s
        self._processes.wait_while_any(ProcessState.DELIVERING, seats, patience_s)
        ready = {
            n: seat.ready
            for n, seat in seats.items()
            if seat.state is ProcessState.READY and seat.ready is not None
        }
        self._is_first = self._is_first and len(ready) < len(self._seats)
        return {} if self._is_first else ready

    def _end_reason(self, ready: Mapping[int, Ready]) -> str | None:
        counters = self.counters
        reached = reached_limit(
            self._budget,
            counters.recent,
            pages=counters.fetched,
            bytes_=counters.bytes,
            active_s=self.manifest.active_s,
        )
        if reached is not None:
            return reached
        last_file = {
            n: max((file.round for file in own), default=0) for n, own in self._inboxes.items()
        }
        all_over = len(ready) == len(self._seats) and all(
            each.is_over and each.delivered >= last_file[n] for n, each in ready.items()
        )
        return "no link is left" if all_over else None

    def _grant(self, number: int, ready: Mapping[int, Ready]) -> None:
        """Share out the next pages among the best links of all, and let the partitions run."""
        self._grants.grant(number, ready)
        for n, each in ready.items():
            for address in each.addresses:
                self._addresses[address] = tuple(sorted({*self._addresses.get(address, ()), n}))
        shared: dict[int, dict[str, int]] = {n: {} for n in self._seats}
        for address, owners in self._addresses.items():
            for n in owners if len(owners) > 1 else ():
                shared[n][address] = len(owners)
        sharing = sharing_probability(self._fetched_per_s)
        if self._budget.hours is not None:
            left_s = self._budget.hours * HOUR_S - self.manifest.active_s
            self._round_s = max(min(self._round_s, left_s), 0.0)
        floors = self._floors(ready)
        for n in ready:
            seat = self._seats[n]
            seat.state, seat.fetches_until = ProcessState.RUNNING, self._clock() + self._round_s
            until_s = seat.fetches_until - seat.ready_at
            most = self._grants.limit(n)
            self._processes.send(n, Run(number, until_s, most, floors[n], shared[n], sharing))

    def _wait_for_end(
        self, number: int, ready: Mapping[int, Ready], began_at: float, fetched: int
    ) -> None:
        """Wait for the round's deadline, or until it has brought enough or most are idle."""
        enough = fetched + self._grants.round_pages
        floors = dict(self._floors(ready))
        look_at = began_at

        def has_ended() -> bool:
            nonlocal look_at
            if self._clock() < look_at:
                return False
            running = {n for n in ready if self._seats[n].state is ProcessState.RUNNING}
            for n, floor in self._floors(running).items():
                if floor != floors[n]:
                    floors[n] = floor
                    self._processes.send(n, Hold(number, floor))
            told = {n: self._seats[n].progress for n in running}
            now_fetched = self._fetched
            look_at = self._clock() + LOOK_S
            # Where nothing was fetched, nothing is due before the round's deadline either; unless
            # all wait for a better link of a partition that was granted too little.
            may_help = now_fetched > fetched or any(
                self._grants.needs_more(n, each) for n, each in told.items()
            )
            all_idle = all(each is not None and each.is_idle for each in told.values())
            return not running or (all_idle and may_help) or now_fetched >= enough

        self._processes.wait(has_ended, began_at + self._round_s - self._clock())

    def _floors(self, running: Iterable[int]) -> Mapping[int, float]:
        """Return the priorities below which partitions wait, as others have better links."""
        best = {n: self._seats[n].best_priorities for n in running}
        return priority_floors(best, self._worth_waiting_for)

    def _finish(self, number: int, taking_part: AbstractSet[int]) -> Mapping[int, RoundFile]:
        """End the round; return the files of those that wrote theirs in time."""
        for n in taking_part:
            self._processes.send(n, Finish(number))
        limits = self._limits
        self._processes.wait_while_any(ProcessState.RUNNING, taking_part, limits.answer_s)
        self._processes.wait_while_any(ProcessState.FINISHING, taking_part, limits.write_s)
        files = {}
        for n in taking_part:
            done = self._seats[n].finished
            if done is not None and done.problem:
                self._on_problem(f"partition {n}: {done.problem}")
            if done is not None and done.file is not None and done.round == number:
                files[n] = done.file
        return files

    def _commit(self, files: Sequence[RoundFile], end_reason: str = "") -> None:
        """Commit a round with the files that count; try again until the storage takes it.

        Of the claims of contents it writes one file for all: every partition gets all claims, and
        would else read a section of each other one.
        """
        # A process that was started now would go on from a state that is about to change.
        self._processes.may_start = self._name is None
        before, now = self.manifest, self._clock()
        # While the storage does not answer, processes may end and be started again.
        finished = {file.partition for file in files}
        records = {n: self._record(n, n in finished) for n in self._seats}
        all_closed = all(map(self._processes.is_closed, self._seats.values()))
        learned = self._learn(files)
        kept = [each.for_partitions() for each in files]
        if claims := [each for part in self._read_all(files, CONTENTS) for each in part]:
            attempt, merged = self._name or _DRIVER, {CONTENTS: claims}
            write = partial(
                write_round_file, self._storage, before.round + 1, before.partitions, attempt
            )
            kept.append(self._insist(partial(write, merged)))
        self._write_manifest(
            records=records,
            inbox=(*before.inbox, *(each for each in kept if each.sections)),
            addresses=self._addresses,
            learned=before.learned + learned,
            active_s=before.active_s + now - self._counted_at,
            end_reason=end_reason,
            round_s=0.0 if all_closed else before.round_s,
        )
        self._counted_at = now
        try:
            delete_outdated(self._storage, self.manifest)
        except StorageError as error:
            self._on_problem(str(error))

    def _write_manifest(self, **changed: Any) -> None:
        """Write the next manifest, unless another driver did since the last one."""
        manifest = structs.replace(self.manifest, round=self.manifest.round + 1, **changed)
        manifest = structs.replace(manifest, inbox=tuple(manifest.needed_files()))

        def write() -> None:
            if self._name is not None:
                check_driver(self._storage, self.manifest, self._name)
            commit_manifest(self._storage, manifest)

        self._insist(write)
        self.manifest = manifest
        self._processes.round, self._processes.may_start = manifest.round + 1, True

    def _record(self, partition: int, has_finished: bool) -> PartitionRecord:
        """Return what the next manifest says of a partition."""
        seat, old = self._seats[partition], self.manifest.record(partition)
        done = seat.finished if has_finished else None
        closed = seat.closed if self._processes.is_closed(seat) else None
        last = seat.ready if closed is not None else done
        return PartitionRecord(
            self.manifest.round + 1 if done is not None else old.round,
            max(old.delivered, last.delivered if last is not None else 0),
            self._grants.granted[partition],
            self._told(partition),
            next((each.state for each in (closed, done) if each is not None), old.state),
        )

    def _learn(self, files: Sequence[RoundFile]) -> int:
        """Train the scorer on the examples of a round, and store it; return how many they are."""
        if self._learning is None:
            return 0
        examples = [each for part in self._read_all(files, EXAMPLES) for each in part]
        for each in examples:
            self._learning.take(each)
        if examples:
            self._insist(self._learning.save)
        return len(examples)

    def _read_all(self, files: Iterable[RoundFile], name: str) -> Sequence[Sequence[bytes]]:
        """Return a section of each file; damaged ones are left out."""

        def read(file: RoundFile) -> Sequence[bytes]:
            try:
                return read_section(self._storage, file, name)
            except DamagedFileError as error:
                self._on_problem(f"{error}; it is left out")
                return ()

        return [self._insist(partial(read, file)) for file in files]

    def _insist(self, call: Callable[[], _T]) -> _T:
        """Call until the storage answers, or the crawl is to stop: then raise StorageError."""
        wait_s = self._limits.restart_s
        while True:
            try:
                return call()
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
        return sum(int(self._told(n).get("fetched", 0)) for n in self._seats)

    def _told(self, partition: int) -> Mapping[str, Any]:
        """Return the newest counters of a partition."""
        return self._seats[partition].counters(self.manifest.record(partition).counters)
