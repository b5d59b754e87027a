"""Simulate a crawl by several processes in rounds, on one clock.

Driver and partitions are those of a live crawl (:mod:`focused.rounds`), with their messages, files
and manifests; only processes and network are simulated. Messages and files take no time.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pandas as pd

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl import Done, Fetch, Wait
from focused.crawl.policy import Policy
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.rounds.driver import RoundDriver, RoundReport
from focused.rounds.learning import SharedLearning
from focused.rounds.manifest import Manifest
from focused.rounds.messages import Start, decode_for_partition
from focused.rounds.outbox import OUTBOX, NumberedRows
from focused.rounds.partition import PartitionMap
from focused.rounds.partition_rounds import (
    DriverConnection,
    PartitionRounds,
    build_partition_rounds,
)
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage
from focused.storage.state_store import StateStore
from focused.topic import PARTITION_UNITS, Budget, Topic, adapt_to_recorded_web
from focused.web.page import Outcome
from focused.web.urls import normalize_url
from focused_lab.simulation.simulator import (
    SETTLES_PER_COMMIT,
    Latency,
    Network,
    pages_frame,
    without_output,
)

_MAX_STEPS_AT_ONCE = 10_000
_ATTEND_S = 0.1
"""A partition looks for messages at least so often, also while all its connections are in use."""

OpenRounds = Callable[[Start, DriverConnection], PartitionRounds]
"""Opens the partition that the first message names."""
Answer = Callable[[str, float], tuple[float, Outcome]]
"""Answers a request for a URL at a time: the seconds that it takes, and the outcome."""

_T = TypeVar("_T")


def run_at_once(call: Callable[[], _T], /) -> Future[_T]:
    """Run a call, as :meth:`concurrent.futures.Executor.submit` starts one."""
    done: Future[_T] = Future()
    try:
        done.set_result(call())
    except Exception as error:
        done.set_exception(error)
    return done


class _Channel:
    """A partition's end of its connection to the driver."""

    def __init__(self) -> None:
        self.received: deque[bytes] = deque()
        self.sent: deque[bytes] = deque()

    def send_bytes(self, data: bytes, /) -> None:
        self.sent.append(data)

    def recv_bytes(self) -> bytes:
        return self.received.popleft()

    def poll(self) -> bool:
        return bool(self.received)


@dataclass(frozen=True, slots=True, order=True)
class _Request:
    ends_at: float
    number: int
    lease: int
    outcome: Outcome = field(compare=False)


@dataclass(eq=False)
class SimulatedProcess:
    """A partition's process; while it is suspended it does nothing, and its answers wait."""

    partition: int
    rounds: PartitionRounds
    channel: _Channel
    requests: list[_Request] = field(default_factory=list)
    wake_at: float = -math.inf
    is_suspended: bool = False
    is_closed: bool = False

    @property
    def next_event_at(self) -> float:
        """When there is something to do."""
        if self.is_suspended:
            return math.inf
        if self.channel.received:
            return -math.inf
        return min(self.wake_at, self.requests[0].ends_at if self.requests else math.inf)


class SimulatedProcesses:
    """The :class:`focused.rounds.process_supervision.Executor` of partitions in this process."""

    def __init__(
        self,
        open_rounds: OpenRounds,
        answer: Answer,
        *,
        concurrency: int,
        address_of: Callable[[str], str] | None = None,
        start: float = 0.0,
        step_s: float = 0.0,
    ) -> None:
        """``address_of`` a URL's host; None: each host has its own. Steps take ``step_s`` or more.

        ``on_step`` is called after each step of time, ``on_request`` with partition and URL.
        """
        self.now = start
        self.processes: dict[int, SimulatedProcess] = {}
        self.lost: list[SimulatedProcess] = []
        """Processes out of the driver's reach, which go on."""
        self.is_certain = True
        """Whether it is known that processes have ended."""
        self.without_room: set[int] = set()
        """Partitions for which no machine has room."""
        self.on_step: Callable[[], object] = lambda: None
        self.on_request: Callable[[int, str], object] = lambda partition, url: None
        self._open = open_rounds
        self._answer = answer
        self._concurrency = concurrency
        self._address_of = address_of
        self._step_s = step_s
        self._requested = 0
        self._ended: list[int] = []

    def start(self, partition: int, message: bytes) -> None:
        """Open the partition's crawl."""
        start = decode_for_partition(message)
        assert isinstance(start, Start)
        channel = _Channel()
        self.processes[partition] = SimulatedProcess(partition, self._open(start, channel), channel)

    def send(self, partition: int, message: bytes) -> None:
        """Deliver a message at once."""
        if partition in self.processes:
            self.processes[partition].channel.received.append(message)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Let time pass until a message comes."""
        until = self.now + timeout_s
        while True:
            for process in [*self.processes.values(), *self.lost]:
                if process.next_event_at <= self.now:
                    self._drive(process)
            found = self._take_messages()
            if found or self.now >= until:
                return found
            events = (each.next_event_at for each in (*self.processes.values(), *self.lost))
            earliest = min(events, default=math.inf)
            self.now = min(until, max(earliest, self.now + self._step_s))
            self.on_step()

    def kill(self, partition: int) -> None:
        """Let a process die: only what it committed is left."""
        process = self.processes.pop(partition, None)
        if process is not None:
            process.rounds.crawl.abandon()
            self._ended.append(partition)

    def cut_off(self, partition: int) -> None:
        """Let the connection to a machine break: its process goes on, and reaches nobody."""
        self.lost.append(self.processes.pop(partition))
        self._ended.append(partition)

    def is_waiting(self, partition: int) -> bool:
        """Whether no machine has room for the process."""
        return partition in self.without_room

    def is_gone(self, partition: int) -> bool:
        """Whether the process is known to have ended."""
        return self.is_certain

    def abandon(self) -> None:
        """Let all processes die, as those of a killed driver do."""
        for number in list(self.processes):
            self.kill(number)
        for process in self.lost:
            process.rounds.crawl.abandon()
        self.lost.clear()
        self._ended.clear()

    def _take_messages(self) -> list[tuple[int, bytes | None]]:
        found: list[tuple[int, bytes | None]] = []
        for number, process in list(self.processes.items()):
            found += [(number, message) for message in process.channel.sent]
            process.channel.sent.clear()
            if process.is_closed:
                del self.processes[number]
                self._ended.append(number)
        found += [(number, None) for number in self._ended]
        self._ended.clear()
        return found

    def _drive(self, process: SimulatedProcess) -> None:
        """Settle what has come, obey the driver, and send the requests that are ready."""
        rounds, requests = process.rounds, process.requests
        while requests and requests[0].ends_at <= self.now:
            request = heapq.heappop(requests)
            rounds.crawl.settle(request.lease, request.outcome, self.now)
        rounds.attend(self.now)
        process.wake_at = self.now + _ATTEND_S
        for _ in range(_MAX_STEPS_AT_ONCE):
            if len(requests) >= self._concurrency:
                return
            step = rounds.next(self.now)
            if isinstance(step, Done):
                rounds.close(self.now)
                process.is_closed = True
                return
            if isinstance(step, Wait):
                if step.until is not None and step.until <= self.now:
                    continue  # it excludes links in batches
                until = math.inf if step.until is None else step.until
                process.wake_at = min(process.wake_at, until)
                return
            assert isinstance(step, Fetch), "no driver's own requests are queued here"
            if not self._request(process, step):
                return
        raise AssertionError("a partition waits for a time that has passed")

    def _request(self, process: SimulatedProcess, fetch: Fetch) -> bool:
        rounds = process.rounds
        if self._address_of is not None:
            address = self._address_of(fetch.url)
            if not rounds.may_connect(fetch.lease, fetch.url, address, self.now):
                rounds.crawl.put_back(fetch.lease, self.now)
                return False
        self.on_request(process.partition, fetch.url)
        elapsed_s, outcome = self._answer(fetch.url, self.now)
        self._requested += 1
        request = _Request(self.now + elapsed_s, self._requested, fetch.lease, outcome)
        heapq.heappush(process.requests, request)
        return True


@dataclass(frozen=True, slots=True)
class RoundsRun:
    """The result of a simulated crawl by several processes.

    ``pages`` has the columns of :attr:`focused_lab.simulation.simulator.SimulatedRun.pages` and
    ``partition``. ``sent`` counts the links that partitions sent to each other.
    """

    pages: pd.DataFrame
    rounds: Sequence[RoundReport]
    sent: int
    end_reason: str
    simulated_s: float


def simulate_rounds(
    topic: Topic,
    classifier: TopicClassifier,
    network: Network,
    make_policy: Callable[[], Policy],
    partitions: int,
    *,
    latency: Latency,
    training_urls: frozenset[str] = frozenset(),
    seeds: Sequence[str] | None = None,
    unit: str = PARTITION_UNITS[0],
    limits: Limits | None = None,
) -> RoundsRun:
    """Crawl ``network`` by several processes until the topic's budget is spent.

    ``seeds`` replace the topic's own. Each process has the topic's concurrency.
    """
    topic = adapt_to_recorded_web(topic)
    urls = topic.seeds.urls if seeds is None else seeds
    with TemporaryDirectory(prefix="focused-rounds-") as folder:
        storage = SharedStorage(f"file://{folder}", "shared")

        def open_rounds(start: Start, connection: DriverConnection) -> PartitionRounds:
            owner = PartitionMap(partitions, unit)
            normalized = filter(None, map(normalize_url, urls))
            own = [url for url in normalized if owner.of_url(url) == start.partition]
            where = Path(folder) / str(start.partition)
            store = StateStore.open(
                where / "state", {"simulation": "rounds"}, commit_every=SETTLES_PER_COMMIT
            )
            rounds = build_partition_rounds(
                start,
                replace(without_output(topic, where), budget=Budget()),
                classifier,
                make_policy(),
                store,
                connection,
                driver_lost=lambda: None,
                submit=run_at_once,
                clock=lambda: processes.now,
                training_urls=training_urls,
                parse=network.parse,
                keep_links=False,
            )
            rounds.crawl.seed(own, processes.now)
            return rounds

        def answer(url: str, now: float) -> tuple[float, Outcome]:
            elapsed_s = latency(url)
            return elapsed_s, network.answer(url, now, elapsed_s)

        processes = SimulatedProcesses(
            open_rounds, answer, concurrency=topic.politeness.concurrency
        )
        policy = make_policy()
        reports: list[RoundReport] = []
        driver = RoundDriver(
            Manifest(topic.name, policy.name, partitions, unit),
            [Start(n, partitions, unit, storage.url, {}) for n in range(partitions)],
            processes,
            storage,
            topic.budget,
            learning=SharedLearning(policy.scorer, storage)
            if isinstance(policy.scorer, OnlineLinkScorer)
            else None,
            limits=limits or Limits(),
            worth_waiting_for=policy.wait_threshold(topic.politeness.patience_s),
            on_round=reports.append,
            clock=lambda: processes.now,
        )
        reason = driver.run()
        frames, sent = [], 0
        for number in range(partitions):
            store = StateStore.reopen(Path(folder) / str(number) / "state")
            frames.append(pages_frame(store.tables).assign(partition=number))
            outbox = NumberedRows(store.tables, OUTBOX)
            sent += outbox.next_number - len(outbox)
            store.close()
    pages = pd.concat([each for each in frames if len(each)] or frames[:1], ignore_index=True)
    return RoundsRun(pages, reports, sent, reason, processes.now)
