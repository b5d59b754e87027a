"""Start the processes of partitions, and start those again that died; their last messages.

One that is silent is killed first. The next attempt begins with the stored state, on whatever
machine it runs (:func:`focused.rounds.replication.restore`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from focused.errors import StateError
from focused.rounds.messages import (
    Closed,
    Finished,
    Finishing,
    Opened,
    Progress,
    Ready,
    Start,
    Stop,
    ToPartition,
    decode_for_driver,
    encode,
)

_POLL_S = 0.2
LOOK_S = 0.05
"""Time between two looks at all partitions, whatever messages come."""


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


class ProcessState(Enum):
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
class Seat:
    """A partition and its process."""

    start: Start
    state: ProcessState = ProcessState.CLOSED
    start_at: float = 0.0
    """When to start the process; infinite while it runs."""
    heard_at: float = 0.0
    failures: int = 0
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
        return self.state is not ProcessState.CLOSED

    @property
    def is_free(self) -> bool:
        """Whether the process can begin a round."""
        return self.state in (ProcessState.FREE, ProcessState.READY)

    @property
    def best_priorities(self) -> Sequence[float]:
        """The priorities of the partition's best links, as it told last."""
        if self.progress is not None:
            return () if self.progress.best is None else (self.progress.best,)
        return () if self.ready is None else self.ready.priorities

    def enter(self, state: ProcessState) -> None:
        """Note what the process does now; what it said before is over."""
        self.state = state
        self.ready = self.progress = self.finished = None

    def counters(self, before: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the process counted last; ``before`` if it has not told yet."""
        if self.closed is not None:
            return self.closed.counters
        if self.finished is not None:
            return self.finished.counters
        told = before if self.ready is None else self.ready.counters
        if self.progress is not None:
            told = {**told, "fetched": self.progress.fetched}
        return told


class PartitionProcesses:
    """Starts the processes of all partitions, and keeps them running while the driver waits."""

    def __init__(
        self,
        starts: Sequence[Start],
        executor: Executor,
        limits: Limits,
        *,
        restart_from: Callable[[Start], Start] | None,
        version: str,
        on_problem: Callable[[str], object],
        clock: Callable[[], float],
    ) -> None:
        """``starts`` are the first messages to the partitions.

        ``restart_from`` returns such a message with the state from which the process is to go on;
        None: processes keep their states to their machine. All must be of ``version``, unless it
        is empty.
        """
        self.should_stop = False
        """Whether the crawl is to stop."""
        self.round = 1
        """The number of the round that runs or comes next; answers to others are late."""
        self.may_start = True
        """False while the state from which a process would go on is about to change."""
        self.seats: Mapping[int, Seat] = {each.partition: Seat(each) for each in starts}
        self._executor = executor
        self._limits = limits
        self._restart_from = restart_from
        self._version = version
        self._on_problem = on_problem
        self._clock = clock
        self._is_closing = False
        self._keep_at = -math.inf
        """When to look after the processes again."""

    def send(self, partition: int, message: ToPartition) -> None:
        """Send a message; one to a process that has ended is lost."""
        self._executor.send(partition, encode(message))

    def wait(self, until: Callable[[], bool], within_s: float = math.inf) -> None:
        """Wait for a condition, or until the crawl is to stop; keep the processes running.

        Raises StateError for a process that cannot be run.
        """

        def is_over() -> bool:
            if (now := self._clock()) >= self._keep_at:
                self._keep_at = now + LOOK_S
                self._keep_running(now)
            return self.should_stop or until()

        self._receive_until(is_over, within_s)

    def wait_while_any(
        self, state: ProcessState, partitions: Iterable[int], within_s: float
    ) -> None:
        """Wait until none of the partitions is in a state, as :meth:`wait`."""
        seats = [self.seats[n] for n in partitions]
        self.wait(lambda: not any(seat.state is state for seat in seats), within_s)

    def close(self, reason: str) -> None:
        """Let all partitions write their results and end; kill those that don't in time."""
        self._is_closing = True
        for n, seat in self.seats.items():
            if seat.is_open:
                self.send(n, Stop(reason))
        self._receive_until(
            lambda: not any(seat.is_open for seat in self.seats.values()), self._limits.close_s
        )
        for n, seat in self.seats.items():
            if seat.closed is not None and seat.closed.problem:
                self._on_problem(f"partition {n}: {seat.closed.problem}")
            if not self.is_closed(seat):
                self._executor.kill(n)
                self._on_problem(f"partition {n} did not close; the same command resumes it")

    def is_closed(self, seat: Seat) -> bool:
        """Whether the crawl of a partition was closed, and its state stored."""
        closed = seat.closed
        return closed is not None and (self._restart_from is None or closed.state is not None)

    def _receive_until(self, until: Callable[[], bool], within_s: float) -> None:
        give_up_at = self._clock() + within_s
        while not until() and (left_s := give_up_at - self._clock()) > 0:
            for n, data in self._executor.receive(min(left_s, _POLL_S)):
                if data is None:
                    self._note_end(n, self.seats[n], self._clock())
                else:
                    self._note_message(n, self.seats[n], data, self._clock())

    def _keep_running(self, now: float) -> None:
        for n, seat in self.seats.items():
            if now >= seat.start_at and self.may_start:
                self._start(n, seat, now)
            elif self._executor.is_waiting(n):
                seat.heard_at = now
                if now >= seat.waiting_told_at + self._limits.silence_s:
                    seat.waiting_told_at = now
                    self._on_problem(
                        f"partition {n} waits for a machine with a free CPU; until then nobody "
                        "crawls its hosts"
                    )
            elif (
                seat.start_at == math.inf  # else it is yet to be started
                and seat.state is not ProcessState.FREE
                and now >= seat.heard_at + self._limits.silence_s
            ):
                self._on_problem(f"partition {n} does not answer: its process is started again")
                seat.heard_at = now
                self._executor.kill(n)

    def _start(self, partition: int, seat: Seat, now: float) -> None:
        seat.start_at, seat.heard_at = math.inf, now
        seat.waiting_told_at = now + self._limits.answer_s - self._limits.silence_s
        start = seat.start if self._restart_from is None else self._restart_from(seat.start)
        self._executor.start(partition, encode(start))

    def _note_message(self, partition: int, seat: Seat, data: bytes, now: float) -> None:
        seat.heard_at = now
        message = decode_for_driver(partition, data)
        if isinstance(message, Closed):
            seat.closed = message
        elif isinstance(message, Opened):
            if self._version and message.version != self._version:
                raise StateError(
                    f"{message.machine} has version {message.version} of focused-crawler and this "
                    f"machine {self._version}; install the same one everywhere"
                )
            seat.enter(ProcessState.FREE)
        elif message.round != self.round:
            # Late: the round was committed without it. It waits for the next one.
            if isinstance(message, Ready | Finished):
                seat.state = ProcessState.FREE
        elif isinstance(message, Ready):
            seat.state, seat.ready, seat.ready_at = ProcessState.READY, message, now
        elif isinstance(message, Progress):
            seat.progress = message
        elif isinstance(message, Finishing):
            seat.state = ProcessState.FINISHING
        else:
            seat.state, seat.finished, seat.failures = ProcessState.FREE, message, 0

    def _note_end(self, partition: int, seat: Seat, now: float) -> None:
        seat.state = ProcessState.CLOSED
        if self._is_closing:
            return
        if self._restart_from is not None and self.may_start:
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
