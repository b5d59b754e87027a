"""The driver of a crawl by many processes: rounds, grants, commits.

A round has a barrier at both ends: every partition gets the links that others found before it, and
tells its best links; the next pages of the budget go to the best links of all; each partition
fetches until the round ends, and writes what it has for others. The manifest commits that.

A partition that does not answer in time misses the round, and what it wrote is ignored. A process
that ends is started again. The driver keeps nothing that the last manifest and the partitions do
not have, so a new driver goes on where a killed one stopped. :mod:`focused.rounds.replication`
moves the state of a partition to another machine.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import islice
from typing import Any, Protocol

import msgspec

from focused.crawl.crawl_stats import Counters
from focused.crawl.stop_conditions import reached_limit
from focused.durations import HOUR_S
from focused.errors import StateError, StorageError
from focused.rounds.budget import priority_floors, share_out
from focused.rounds.learning import SharedLearning, sharing_probability
from focused.rounds.manifest import (
    Manifest,
    PartitionRecord,
    check_driver,
    commit_manifest,
    delete_outdated,
)
from focused.rounds.messages import (
    Begin,
    Closed,
    Finish,
    Finished,
    Finishing,
    Hold,
    Opened,
    Progress,
    ProtocolError,
    Ready,
    Run,
    Start,
    Stop,
    ToPartition,
    decode_for_driver,
    encode,
)
from focused.rounds.round_files import (
    CONTENTS,
    EXAMPLES,
    DamagedFileError,
    RoundFile,
    read_section,
    write_round_file,
)
from focused.rounds.storage import SharedStorage
from focused.topic import Budget

logger = logging.getLogger(__name__)

ROUNDS = 60
"""Rounds in which a budget of pages is fetched, unless it is so large that they take longer."""
_MIN_PAGES = 10
_MAX_PRIORITIES = 2_000
_FIRST_ROUND_S = 1.0
_GROWTH = 1.5
_POLL_S = 0.2
_DRIVER = "driver"
_LOOK_S = 0.05
"""Time between two looks at all partitions, whatever messages come."""
_MAX_ATTEMPTS = 10_000_000
"""Processes that one driver starts, at most."""


class Executor(Protocol):
    """Runs the processes of partitions, on this machine or on others."""

    def start(self, partition: int, message: bytes) -> None:
        """Start the process of a partition; ``message`` is the first that it gets."""

    def send(self, partition: int, message: bytes) -> None:
        """Send a message; one to a process that has ended is lost."""

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Return the next messages by partition, at the latest after a time.

        None tells that the process has ended.
        """

    def kill(self, partition: int) -> None:
        """End a process at once; :meth:`receive` tells when it has ended."""

    def is_waiting(self, partition: int) -> bool:
        """Whether no machine has room for the process yet."""

    def is_gone(self, partition: int) -> bool:
        """Whether the process that ended is known to have ended, not only out of reach."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds: of a round at most, and what the driver waits for."""

    round_s: float = 30.0
    answer_s: float = 10.0
    """For a partition to have its inbox, or to say that it is finishing."""
    write_s: float = 120.0
    """For a partition to write its file."""
    silence_s: float = 120.0
    """After that a silent process is killed and started again."""
    close_s: float = 600.0
    """For a partition to write its results at the end."""
    restart_s: float = 1.0
    request_s: float = 30.0
    """The longest time of a request, which a process out of reach may have begun."""
    max_failures: int = 5
    """Starts in a row without a finished round, before the crawl is stopped."""


class _State(Enum):
    """What the process of a partition does."""

    CLOSED = auto()
    FREE = auto()
    """It waits for a round."""
    DELIVERING = auto()
    READY = auto()
    """It has its inbox."""
    RUNNING = auto()
    FINISHING = auto()


@dataclass(slots=True)
class _Seat:
    """A partition and its process, as the driver sees them."""

    start: Start
    state: _State = _State.CLOSED
    start_at: float = 0.0
    """When to start the process; infinite while it runs."""
    heard_at: float = 0.0
    failures: int = 0
    granted: int = 0
    ready: Ready | None = None
    ready_at: float = 0.0
    progress: Progress | None = None
    finished: Finished | None = None
    closed: Closed | None = None
    fetches_until: float = -math.inf
    """The deadline that its process was given last."""
    waiting_told_at: float = -math.inf
    """When the user was told that no machine has room for it."""

    @property
    def is_open(self) -> bool:
        """Whether the process runs and its crawl is open."""
        return self.state is not _State.CLOSED


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
        for :func:`focused.rounds.budget.priority_floors`. ``name`` is unique among the drivers of
        a crawl on several machines, whose partitions store their states in ``storage``; without it
        they keep them. All partitions must be of this ``version``, unless it is empty.
        """
        self.should_stop = False
        """Set it to stop the crawl, so that it can be resumed."""
        self._manifest = manifest
        self._executor = executor
        self._storage = storage
        self._budget = budget
        self._learning = learning
        self._limits = limits
        self._worth_waiting_for = worth_waiting_for
        self._on_round = on_round
        self._on_problem = on_problem
        self._clock = clock
        self._seats = {each.partition: _Seat(each) for each in starts}
        self._counted_at = clock()
        self._name, self._version = name, version
        self._attempts = 0
        self._is_first, self._is_closing = name is None, False
        self._is_committing = name is not None
        """A process that was started now would restore what is about to change."""
        self._round_s = min(_FIRST_ROUND_S, limits.round_s)
        self._fetched_per_s = 0.0
        self._addresses = dict(manifest.addresses)
        self._inboxes = manifest.inboxes()
        self._keep_at = -math.inf
        """When to look after the processes again."""
        for number, seat in self._seats.items():
            seat.granted = manifest.record(number).granted

    @property
    def manifest(self) -> Manifest:
        """The last manifest."""
        return self._manifest

    @property
    def counters(self) -> Counters:
        """The totals of all partitions, as far as they were told."""
        return Counters.total([Counters.from_state(self._told(each)) for each in self._seats])

    def run(self) -> str:
        """Run rounds until the crawl is over or is to stop; return why.

        Raises StateError if a partition cannot be run, StorageError if the crawl is to stop while
        the storage does not answer.
        """
        if self._name is not None:
            self._take_lead(self._name)
        reason = self._run_rounds()
        self._close(reason)
        self._commit((), end_reason="" if self.should_stop else reason)
        return reason

    def _take_lead(self, name: str) -> None:
        """Commit that this driver runs the crawl now; wait until nobody fetches for another one.

        From the storage nobody can tell whether the processes of a driver that died still run.
        """
        before, now = self._manifest, self._clock()
        manifest = msgspec.structs.replace(
            before,
            round=before.round + 1,
            drivers=before.drivers + 1,
            driver=name,
            round_s=self._limits.round_s,
        )
        self._insist(lambda: self._write_manifest(manifest))
        self._manifest, self._is_committing = manifest, False
        if before.round_s:
            for seat in self._seats.values():
                seat.start_at = now + before.round_s + self._limits.request_s
            self._on_problem(
                "the last command did not end this crawl: waiting "
                f"{before.round_s + self._limits.request_s:.0f} s for the requests of its processes"
            )

    def _run_rounds(self) -> str:
        # Of a crawl on several machines the manifest tells what each partition has fetched.
        patience_s = math.inf if self._name is None else self._limits.silence_s
        self._wait(lambda: all(seat.is_open for seat in self._seats.values()), patience_s)
        while not self.should_stop:
            reason = self._run_round()
            if reason is not None:
                return reason
        return "stopped"

    def _run_round(self) -> str | None:
        """Run one round; return why the crawl is over, None if it goes on."""
        began_at = self._clock()
        number = self._manifest.round + 1
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
                tuple(n for n in self._seats if n not in files),
                self._clock() - began_at - ran_s,
            )
        )
        return None

    def _begin(self, number: int) -> Mapping[int, Ready]:
        """Let all partitions that are free get their inboxes; return what they have then."""
        free = _State.FREE, _State.READY
        self._wait(lambda: any(seat.state in free for seat in self._seats.values()))
        manifest, wanted = self._manifest, self._wanted_priorities()
        self._inboxes = manifest.inboxes()
        seats = {n: seat for n, seat in self._seats.items() if seat.state in free}
        for n, seat in seats.items():
            seat.state = _State.DELIVERING
            seat.ready = seat.progress = seat.finished = None
            inbox, last = tuple(self._inboxes[n]), manifest.record(n).round
            self._send(n, Begin(number, inbox, last, wanted, manifest.learned))
        # At first nobody knows what is left of the budget: all must tell what they fetched.
        patience_s = math.inf if self._is_first else self._limits.answer_s
        self._wait(
            lambda: not any(seat.state is _State.DELIVERING for seat in seats.values()), patience_s
        )
        ready = {
            n: seat.ready
            for n, seat in seats.items()
            if seat.state is _State.READY and seat.ready is not None
        }
        self._is_first = self._is_first and len(ready) < len(self._seats)
        return {} if self._is_first else ready

    def _end_reason(self, ready: Mapping[int, Ready]) -> str | None:
        budget, counters = self._budget, self.counters
        reached = reached_limit(
            budget,
            counters.recent,
            pages=counters.fetched,
            bytes_=counters.bytes,
            active_s=self._manifest.active_s,
        )
        if reached is not None:
            return reached
        all_over = len(ready) == len(self._seats) and all(
            each.is_over and each.delivered >= self._last_file_for(n) for n, each in ready.items()
        )
        return "no link is left" if all_over else None

    def _last_file_for(self, partition: int) -> int:
        return max((each.round for each in self._inboxes[partition]), default=0)

    def _wanted_priorities(self) -> int:
        """The best links that each partition is to tell: more than one in the last rounds."""
        # Pages in flight are not known yet, and what was granted in vain is to be taken back.
        left = (self._budget.pages or 0) - self._fetched
        if self._pages_for_each(2 * len(self._seats), left):
            return 1
        return min(self._pages_at_once(), _MAX_PRIORITIES)

    def _pages_for_each(self, partitions: int, left: int) -> int:
        """The pages that each of so many partitions gets; 0 if the best links are to get them."""
        enough = self._pages_at_once()
        each = enough if self._budget.pages is None else min(enough, left // partitions)
        return each if each >= min(enough, _MAX_PRIORITIES) else 0

    def _pages_at_once(self) -> int:
        """The pages of a round, of all partitions together."""
        if self._budget.pages is None:
            return 1
        return max(_MIN_PAGES, math.ceil(self._budget.pages / ROUNDS))

    def _grant(self, number: int, ready: Mapping[int, Ready]) -> None:
        """Share out the next pages among the best links of all, and let the partitions run."""
        for n, each in ready.items():
            seat = self._seats[n]
            # What it did not use is taken back.
            seat.granted = int(each.counters["fetched"]) + each.in_flight
        if self._budget.pages is not None:
            for n, pages in self._pages_for(number, ready).items():
                self._seats[n].granted += pages
        self._note_addresses(ready)
        shared: dict[int, dict[str, int]] = {n: {} for n in self._seats}
        for address, owners in self._addresses.items():
            for n in owners if len(owners) > 1 else ():
                shared[n][address] = len(owners)
        sharing = sharing_probability(self._fetched_per_s)
        if self._budget.hours is not None:
            left_s = self._budget.hours * HOUR_S - self._manifest.active_s
            self._round_s = max(min(self._round_s, left_s), 0.0)
        floors = self._floors(ready)
        for n in ready:
            seat = self._seats[n]
            seat.state = _State.RUNNING
            seat.fetches_until = self._clock() + self._round_s
            until_s = seat.fetches_until - seat.ready_at
            most = None if self._budget.pages is None else seat.granted
            self._send(n, Run(number, until_s, most, floors[n], shared[n], sharing))

    def _pages_for(self, number: int, ready: Mapping[int, Ready]) -> Mapping[int, int]:
        """Return the pages to grant: enough to each, or the last ones to the best links."""
        left = (self._budget.pages or 0) - sum(seat.granted for seat in self._seats.values())
        if each := self._pages_for_each(len(ready), left):
            return dict.fromkeys(ready, each)
        best = share_out(max(left, 0), {n: each.priorities for n, each in ready.items()})
        if best:
            return best
        # Without a link that is due now, all have their turn.
        waiting = deque(n for n, each in ready.items() if each.queued)
        waiting.rotate(-number)
        return dict.fromkeys(islice(waiting, max(left, 0)), 1)

    def _note_addresses(self, ready: Mapping[int, Ready]) -> None:
        known = self._addresses
        for n, each in ready.items():
            for address in each.addresses:
                known[address] = tuple(sorted({*known.get(address, ()), n}))

    def _wait_for_end(self, ready: Mapping[int, Ready], began_at: float, fetched: int) -> None:
        """Wait for the round's deadline, or until it has brought enough or most are idle."""
        enough = math.inf if self._budget.pages is None else fetched + self._pages_at_once()
        number = self._manifest.round + 1
        floors = dict(self._floors(ready))
        look_at = began_at

        def has_ended() -> bool:
            nonlocal look_at
            if self._clock() < look_at:
                return False
            running = {n for n in ready if self._seats[n].state is _State.RUNNING}
            for n, floor in self._floors(running).items():
                if floor != floors[n]:
                    floors[n] = floor
                    self._send(n, Hold(number, floor))
            idle = {n for n in running if self._is_idle(n)}
            now_fetched = self._fetched
            look_at = self._clock() + _LOOK_S
            # Where nothing was fetched, nothing is due before the round's deadline either; unless
            # all wait for a better link of a partition that was granted too little.
            may_help = now_fetched > fetched or any(map(self._needs_more, running))
            return not running or (idle == running and may_help) or now_fetched >= enough

        self._wait(has_ended, began_at + self._round_s - self._clock())

    def _floors(self, running: Iterable[int]) -> Mapping[int, float]:
        """Return the priorities below which partitions wait, as others have better links."""
        best: dict[int, Sequence[float]] = {}
        for n in running:
            progress, ready = self._seats[n].progress, self._seats[n].ready
            if progress is not None:
                best[n] = () if progress.best is None else (progress.best,)
            else:
                best[n] = () if ready is None else ready.priorities
        return priority_floors(best, self._worth_waiting_for)

    def _needs_more(self, partition: int) -> bool:
        """Whether a partition has fetched all that it was granted, and a link that is due."""
        progress, granted = self._seats[partition].progress, self._seats[partition].granted
        if progress is None or self._budget.pages is None:
            return False
        return progress.best is not None and progress.fetched >= granted

    def _is_idle(self, partition: int) -> bool:
        progress = self._seats[partition].progress
        return progress is not None and progress.is_idle

    def _finish(self, number: int, taking_part: AbstractSet[int]) -> Mapping[int, RoundFile]:
        """End the round; return the files of those that wrote theirs in time."""
        seats = {n: self._seats[n] for n in taking_part}
        for n in seats:
            self._send(n, Finish(number))
        for state, within_s in (
            (_State.RUNNING, self._limits.answer_s),
            (_State.FINISHING, self._limits.write_s),
        ):
            self._wait(partial(self._has_left, seats, state), within_s)
        files = {}
        for n, seat in seats.items():
            done = seat.finished
            if done is not None and done.problem:
                self._on_problem(f"partition {n}: {done.problem}")
            if done is not None and done.file is not None and done.round == number:
                files[n] = done.file
        return files

    @staticmethod
    def _has_left(seats: Mapping[int, _Seat], state: _State) -> bool:
        return not any(seat.state is state for seat in seats.values())

    def _commit(
        self,
        files: Sequence[RoundFile],
        end_reason: str = "",
    ) -> None:
        """Commit a round; try again until the storage takes it."""
        self._is_committing = self._name is not None
        before = self._manifest
        number, now = before.round + 1, self._clock()
        finished = {file.partition for file in files}
        records = {}
        for n, seat in self._seats.items():
            old, told = before.record(n), self._told(n)
            done = seat.finished if n in finished else None
            closed = seat.closed if self._is_closed(seat) else None
            last = seat.ready if closed is not None else done
            records[n] = PartitionRecord(
                number if done is not None else old.round,
                max(old.delivered, last.delivered if last is not None else 0),
                seat.granted,
                told,
                next((each.state for each in (closed, done) if each is not None), old.state),
            )
        learned = before.learned + self._learn(files)
        files = self._merge_claims(number, files)
        manifest = msgspec.structs.replace(
            before,
            round=number,
            records=records,
            inbox=(*before.inbox, *(each for each in files if each.sections)),
            addresses=self._addresses,
            learned=learned,
            active_s=before.active_s + now - self._counted_at,
            end_reason=end_reason,
            round_s=0.0 if all(map(self._is_closed, self._seats.values())) else before.round_s,
        )
        manifest = msgspec.structs.replace(manifest, inbox=tuple(self._still_needed(manifest)))
        self._insist(lambda: self._write_manifest(manifest))
        self._manifest, self._counted_at = manifest, now
        self._is_committing = False
        try:
            delete_outdated(self._storage, manifest)
        except StorageError as error:
            self._on_problem(str(error))

    def _write_manifest(self, manifest: Manifest) -> None:
        if self._name is not None:
            check_driver(self._storage, self._manifest, self._name)
        commit_manifest(self._storage, manifest)

    def _still_needed(self, manifest: Manifest) -> Iterator[RoundFile]:
        """Yield the files that some partition has not got yet."""
        for file in manifest.inbox:
            receivers = (n for n, _ in file.inboxes(manifest.partitions))
            if any(manifest.record(n).delivered < file.round for n in receivers):
                yield file

    def _learn(self, files: Sequence[RoundFile]) -> int:
        """Train the scorer on the examples of a round, and store it; return how many they are."""
        if self._learning is None:
            return 0
        count = 0
        for messages in self._read_all(files, EXAMPLES):
            for message in messages:
                self._learning.take(message)
                count += 1
        if count:
            self._insist(self._learning.save)
        return count

    def _merge_claims(self, number: int, files: Sequence[RoundFile]) -> Sequence[RoundFile]:
        """Write the claims of all partitions into one file; return it with what the others keep.

        Every partition gets all claims, and would else read a section of each other one.
        """
        claims = [claim for part in self._read_all(files, CONTENTS) for claim in part]
        kept = [each.for_partitions() for each in files]
        if claims:
            write = partial(write_round_file, self._storage, number, self._manifest.partitions)
            content = {CONTENTS: claims}
            self._insist(lambda: kept.append(write(self._name or _DRIVER, content)))
        return kept

    def _read_all(self, files: Sequence[RoundFile], name: str) -> Sequence[Sequence[bytes]]:
        """Return a section of each file; damaged ones are left out."""
        found: list[Sequence[bytes]] = []

        def read() -> None:
            for file in files[len(found) :]:
                try:
                    found.append(read_section(self._storage, file, name))
                except DamagedFileError as error:
                    self._on_problem(f"{error}; it is left out")
                    found.append(())

        self._insist(read)
        return found

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
            self._wait(lambda: self.should_stop, wait_s)
            wait_s = min(2 * wait_s, 30.0)

    def _close(self, reason: str) -> None:
        """Let all partitions write their results and end."""
        self._is_closing = True
        for n, seat in self._seats.items():
            if seat.is_open:
                self._send(n, Stop(reason))
        self._receive_until(
            lambda: not any(seat.is_open for seat in self._seats.values()), self._limits.close_s
        )
        for n, seat in self._seats.items():
            if seat.closed is not None and seat.closed.problem:
                self._on_problem(f"partition {n}: {seat.closed.problem}")
            if not self._is_closed(seat):
                self._executor.kill(n)
                self._on_problem(f"partition {n} did not close; the same command resumes it")

    def _is_closed(self, seat: _Seat) -> bool:
        """Whether the crawl of a partition was closed, and its state stored."""
        closed = seat.closed
        return closed is not None and (self._name is None or closed.state is not None)

    def _wait(self, until: Callable[[], bool], within_s: float = math.inf) -> None:
        """Wait for a condition, or until the crawl is to stop; keep the processes running."""

        def is_over() -> bool:
            if (now := self._clock()) >= self._keep_at:
                self._keep_at = now + _LOOK_S
                self._keep_processes(now)
            return self.should_stop or until()

        self._receive_until(is_over, within_s)

    def _receive_until(self, until: Callable[[], bool], within_s: float) -> None:
        give_up_at = self._clock() + within_s
        while not until() and (left_s := give_up_at - self._clock()) > 0:
            for partition, data in self._executor.receive(min(left_s, _POLL_S)):
                self._take(partition, data)

    def _keep_processes(self, now: float) -> None:
        for n, seat in self._seats.items():
            if now >= seat.start_at and not self._is_committing:
                seat.start_at, seat.heard_at = math.inf, now
                seat.waiting_told_at = now + self._limits.answer_s - self._limits.silence_s
                self._executor.start(n, encode(self._next_start(n, seat)))
            elif self._executor.is_waiting(n):
                seat.heard_at = now
                if now >= seat.waiting_told_at + self._limits.silence_s:
                    seat.waiting_told_at = now
                    self._on_problem(
                        f"partition {n} waits for a machine with a free CPU; until then nobody "
                        "crawls its hosts"
                    )
            elif seat.state is not _State.FREE and now >= seat.heard_at + self._limits.silence_s:
                self._on_problem(f"partition {n} does not answer: its process is started again")
                seat.heard_at = now
                self._executor.kill(n)

    def _next_start(self, partition: int, seat: _Seat) -> Start:
        if self._name is None:
            return seat.start
        self._attempts += 1
        return msgspec.structs.replace(
            seat.start,
            attempt=self._manifest.drivers * _MAX_ATTEMPTS + self._attempts,
            state=self._manifest.record(partition).state,
        )

    def _take(self, partition: int, data: bytes | None) -> None:
        """Note a message, or the end of a process."""
        seat, now = self._seats[partition], self._clock()
        if data is None:
            self._note_end(partition, seat, now)
            return
        seat.heard_at = now
        try:
            message = decode_for_driver(data)
        except ProtocolError as error:
            raise StateError(f"partition {partition}: {error}") from error
        if isinstance(message, Closed):
            seat.closed = message
        elif isinstance(message, Opened):
            if self._version and message.version != self._version:
                raise StateError(
                    f"{message.machine} has version {message.version} of focused-crawler and this "
                    f"machine {self._version}; install the same one everywhere"
                )
            seat.state = _State.FREE
            seat.ready = seat.progress = seat.finished = None
        elif message.round != self._manifest.round + 1:
            # Late: the round was committed without it. It waits for the next one.
            if isinstance(message, Ready | Finished):
                seat.state = _State.FREE
        elif isinstance(message, Ready):
            seat.state, seat.ready, seat.ready_at = _State.READY, message, now
        elif isinstance(message, Progress):
            seat.progress = message
        elif isinstance(message, Finishing):
            seat.state = _State.FINISHING
        else:
            seat.state, seat.finished, seat.failures = _State.FREE, message, 0

    def _note_end(self, partition: int, seat: _Seat, now: float) -> None:
        seat.state = _State.CLOSED
        if self._is_closing:
            return
        if self._name is not None and not self._is_committing:
            # The next process goes on from the last manifest.
            seat.finished = None
        seat.failures += 1
        if seat.failures >= self._limits.max_failures:
            raise StateError(
                f"partition {partition} ended {seat.failures} times before it finished a round; "
                "see the log in its folder"
            )
        self._on_problem(f"the process of partition {partition} ended; it is started again")
        seat.start_at = now + self._limits.restart_s * 2 ** (seat.failures - 1)
        if not self._executor.is_gone(partition):
            seat.start_at = max(seat.start_at, seat.fetches_until + self._limits.request_s)

    def _send(self, partition: int, message: ToPartition) -> None:
        self._executor.send(partition, encode(message))

    @property
    def _fetched(self) -> int:
        """The pages of all partitions, as far as they were told."""
        return sum(int(self._told(n).get("fetched", 0)) for n in self._seats)

    def _told(self, partition: int) -> Mapping[str, Any]:
        """Return the newest counters of a partition."""
        seat = self._seats[partition]
        told: Mapping[str, Any]
        if seat.closed is not None:
            return seat.closed.counters
        if seat.finished is not None:
            return seat.finished.counters
        told = seat.ready.counters if seat.ready else self._manifest.record(partition).counters
        if seat.progress is not None:
            told = {**told, "fetched": seat.progress.fetched}
        return told
