"""Driver and partitions of a crawl in this process, over a dictionary of answers, on one clock."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from focused.archive.archive import page_rows
from focused.cluster.exchange import MemoryExchange
from focused.cluster.learning import SharedLearning
from focused.cluster.storage import SharedStorage
from focused.crawl import Done, Fetch, Wait
from focused.crawl.policy import Policy
from focused.frontier.queued_link import highest_score_first
from focused.link_scoring.apprentice import Apprentice
from focused.rounds.driver import Limits, RoundDriver, RoundReport
from focused.rounds.manifest import Manifest, last_manifest
from focused.rounds.messages import Start, decode_for_partition
from focused.rounds.partition_rounds import (
    PartitionRounds,
    build_partition_rounds,
    partition_map,
)
from focused.storage.state_store import StateStore
from focused.topic import Budget, Topic
from focused.web.page import Failed, FailureKind, Outcome
from focused.web.urls import host_of
from tests.support.keyword_guide import WhaleClassifier
from tests.support.simulated import FETCH_S, START
from tests.support.simulated import topic as simulated_topic

T = TypeVar("T")
CONCURRENCY = 4


def run_at_once(call: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    try:
        done.set_result(call())
    except Exception as error:
        done.set_exception(error)
    return done


@dataclass(eq=False)
class Process:
    """A partition's process: its requests under way are (end, number, lease, URL)."""

    rounds: PartitionRounds
    store: StateStore
    received: deque[bytes]
    sent: deque[bytes]
    under_way: list[tuple[float, int, int, str]] = field(default_factory=list)
    is_asleep: bool = False
    is_closed: bool = False


class Channel:
    """The end of a connection that a partition has."""

    def __init__(self) -> None:
        self.received: deque[bytes] = deque()
        self.sent: deque[bytes] = deque()

    def send_bytes(self, data: bytes, /) -> None:
        self.sent.append(data)

    def recv_bytes(self) -> bytes:
        return self.received.popleft()

    def poll(self) -> bool:
        return bool(self.received)


class SimulatedRounds:
    """The :class:`focused.rounds.driver.Executor` of partitions in this process.

    ``asked`` has (time, partition, URL) of every request; ``addresses`` are those of hosts.
    ``on_step`` is called as time goes on.
    """

    def __init__(
        self,
        folder: Path,
        web: Mapping[str, Outcome],
        *seeds: str,
        partitions: int = 3,
        addresses: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        delay_s: float = 0.2,
        limits: Limits | None = None,
        step_s: float = 0.02,
        **sections: Any,
    ) -> None:
        self.folder, self.web, self.seeds = folder, web, seeds
        self.partitions, self.budget = partitions, budget or Budget()
        self.limits = limits or Limits(round_s=2.0, answer_s=3.0, silence_s=30.0)
        self.sections = {"delay_s": delay_s, **sections}
        self.addresses = addresses or {}
        self.now, self.step_s = START, step_s
        self.storage = SharedStorage(f"file://{folder}", "shared")
        self.asked: list[tuple[float, int, str]] = []
        self.reports: list[RoundReport] = []
        self.problems: list[str] = []
        self.processes: dict[int, Process] = {}
        self.started: list[int] = []
        self.on_step: Callable[[], object] = lambda: None
        self._numbers = count()
        self._ended: deque[int] = deque()

    def driver(self) -> RoundDriver:
        """A driver that goes on after the last manifest."""
        found = last_manifest(self.storage)
        start = Manifest("whales", "focused", self.partitions, "domain")
        starts = [
            Start(n, self.partitions, "domain", self.storage.url, {})
            for n in range(self.partitions)
        ]
        learning = SharedLearning(Apprentice(WhaleClassifier()), MemoryExchange(), self.storage)
        learning.restore()
        return RoundDriver(
            found or start,
            starts,
            self,
            self.storage,
            self.budget,
            learning=learning,
            limits=self.limits,
            on_round=self.reports.append,
            on_problem=self.problems.append,
            clock=lambda: self.now,
        )

    def run(self) -> str:
        """Run the crawl to its end; return why it ended."""
        return self.driver().run()

    def start(self, partition: int, message: bytes) -> None:
        """Open the partition's crawl."""
        start = decode_for_partition(message)
        assert isinstance(start, Start)
        self.started.append(partition)
        topic = self._topic(start)
        channel = Channel()
        store = StateStore.open(topic.output.folder / "state", {"partition": str(partition)})
        rounds = build_partition_rounds(
            start,
            topic,
            WhaleClassifier(),
            Policy("focused", Apprentice(WhaleClassifier()), highest_score_first),
            store,
            channel,
            driver_lost=lambda: None,
            submit=run_at_once,
            clock=lambda: self.now,
        )
        rounds.crawl.seed(topic.seeds.urls, self.now)
        self.processes[partition] = Process(rounds, store, channel.received, channel.sent)

    def send(self, partition: int, message: bytes) -> None:
        """Deliver a message."""
        if partition in self.processes:
            self.processes[partition].received.append(message)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Let time pass until a message comes."""
        until = self.now + timeout_s
        while True:
            for number, process in list(self.processes.items()):
                if not process.is_asleep:
                    self._drive(number, process)
            found: list[tuple[int, bytes | None]] = []
            for number, process in self.processes.items():
                while process.sent:
                    found.append((number, process.sent.popleft()))
                if process.is_closed:
                    self._ended.append(number)
            for number in self._ended:
                self.processes.pop(number, None)
                found.append((number, None))
            self._ended.clear()
            if found or self.now >= until:
                return found
            self.now += self.step_s
            self.on_step()

    def kill(self, partition: int) -> None:
        """Let a process die: only what it committed is left."""
        process = self.processes.pop(partition, None)
        if process is not None:
            process.rounds.crawl.abandon()
            self._ended.append(partition)

    def abandon(self) -> None:
        """Let all processes die, as those of a killed driver do."""
        for number in list(self.processes):
            self.kill(number)
        self._ended.clear()

    def fetched(self) -> list[str]:
        """The pages in the archives of all partitions."""
        return sorted(row["url"] for row in self._rows() if row["outcome"] == "fetched")

    def duplicates(self) -> list[str]:
        """The pages that are duplicates."""
        return [row["url"] for row in self._rows() if row["duplicate_of"] is not None]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for data in sorted(self.folder.glob("p*/**/state/data.mdb")):
            store = StateStore.reopen(data.parent)
            yield from page_rows(store.tables)
            store.close()

    def partition_of(self, url: str) -> int:
        """The partition of a URL."""
        return partition_map(Start(0, self.partitions, "domain", "", {})).of_url(url)

    def _topic(self, start: Start) -> Topic:
        folder = self.folder / f"p{start.partition}"
        seeds = [url for url in self.seeds if self.partition_of(url) == start.partition]
        return simulated_topic(folder, *seeds, **self.sections)

    def _drive(self, number: int, process: Process) -> None:
        rounds, under_way = process.rounds, process.under_way
        while under_way and under_way[0][0] <= self.now:
            _, _, lease, url = heapq.heappop(under_way)
            gone = Failed(url, FailureKind.GONE, 404)
            rounds.settle(lease, self.web.get(url, gone), self.now)
        rounds.attend(self.now)
        while len(under_way) < CONCURRENCY:
            step = rounds.next(self.now)
            if isinstance(step, Done):
                rounds.close(self.now)
                process.is_closed = True
                return
            if isinstance(step, Wait):
                return
            assert isinstance(step, Fetch)
            host = host_of(step.url)
            address = self.addresses.get(host, host)
            if not rounds.may_connect(step.lease, step.url, address, self.now):
                rounds.put_back(step.lease, self.now)
                return
            self.asked.append((self.now, number, step.url))
            heapq.heappush(
                under_way, (self.now + FETCH_S, next(self._numbers), step.lease, step.url)
            )


def ring(hosts: int, pages: int, text: Callable[[int, int], str] | None = None) -> dict[str, Any]:
    """Pages of many hosts: each links to the next one of its host and to the next host."""
    from tests.support.simulated import page

    described = text or (lambda host, number: f"a whale of its own, page {number} of host {host}")
    web = {}
    for host in range(hosts):
        for number in range(pages):
            url = f"http://h{host}.test/{number}"
            onward = f"http://h{(host + 1) % hosts}.test/{number}"
            links = [onward] + [f"http://h{host}.test/{number + 1}"] * (number + 1 < pages)
            web[url] = page(
                url, *links, text=described(host, number), title=f"whale {host} {number}"
            )
    return web
