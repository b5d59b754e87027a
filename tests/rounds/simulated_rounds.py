"""Driver and partitions of a crawl in this process, over a dictionary of answers, on one clock."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from io import BytesIO
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from focused.archive.archive import page_rows
from focused.crawl.policy import Policy
from focused.frontier.queued_link import highest_score_first
from focused.link_scoring.apprentice import Apprentice
from focused.rounds.driver import RoundDriver, RoundReport
from focused.rounds.learning import SharedLearning
from focused.rounds.manifest import Manifest, last_manifest
from focused.rounds.messages import Start
from focused.rounds.partition import PartitionMap
from focused.rounds.partition_rounds import (
    DriverConnection,
    PartitionRounds,
    build_partition_rounds,
    restore_state,
)
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage
from focused.storage.state_store import StateStore
from focused.topic import Budget, Topic
from focused.web.page import Failed, FailureKind, Outcome
from focused.web.urls import host_of
from focused_lab.simulation.rounds_simulator import SimulatedProcesses, run_at_once
from tests.rounds.shared_storages import AtOnce
from tests.support.simulated import FETCH_S, START
from tests.support.simulated import topic as simulated_topic
from tests.support.whale_models import WhaleClassifier

CONCURRENCY = 4


class DriverDiedError(Exception):
    """The driver died."""


class SimulatedRounds(SimulatedProcesses):
    """The processes of a crawl over a dictionary of answers, and its driver.

    ``asked`` has (time, partition, URL) of every request; ``addresses`` are those of hosts.
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
        shared: str | None = None,
        version: str = "",
        **sections: Any,
    ) -> None:
        """``shared`` is the URL of a storage to which partitions copy their states."""
        by_host = addresses or {}
        super().__init__(
            self._open_rounds,
            self._answer_to,
            concurrency=CONCURRENCY,
            address_of=lambda url: by_host.get(host_of(url), host_of(url)),
            start=START,
            step_s=step_s,
        )
        self.folder, self.web, self.seeds = folder, web, seeds
        self.partitions, self.budget = partitions, budget or Budget()
        self.limits = limits or Limits(round_s=2.0, answer_s=3.0, silence_s=30.0)
        self.sections = {"delay_s": delay_s, **sections}
        self.shared, self.version = shared, version
        self.storage = SharedStorage(shared or f"file://{folder}", "shared")
        self._drivers = count()
        self.submit: Callable[..., Future[Any]] = run_at_once
        self.asked: list[tuple[float, int, str]] = []
        self.reports: list[RoundReport] = []
        self.problems: list[str] = []
        self.started: list[int] = []
        self.on_request = lambda partition, url: self.asked.append((self.now, partition, url))

    def driver(self) -> RoundDriver:
        """A driver that goes on after the last manifest."""
        found = last_manifest(self.storage)
        start = Manifest("whales", "focused", self.partitions, "domain")
        starts = [
            Start(n, self.partitions, "domain", self.storage.url, {})
            for n in range(self.partitions)
        ]
        learning = SharedLearning(Apprentice(WhaleClassifier()), self.storage)
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
            version=self.version,
            name=None if self.shared is None else f"driver {next(self._drivers)}",
        )

    def run(self) -> str:
        """Run the crawl to its end; return why it ended."""
        return self.driver().run()

    def run_until_driver_dies(self, after_s: float) -> None:
        """Run the crawl; its driver dies some time after the start."""
        dies_at = self.now + after_s

        def die() -> None:
            if self.now >= dies_at:
                raise DriverDiedError

        self.on_step = die
        with contextlib.suppress(DriverDiedError):
            self.run()
            raise AssertionError("the crawl ended before")
        self.on_step = lambda: None

    def at_times(self, call: Callable[[int], object], *after_s: float) -> None:
        """Call with 0, 1, ... at times after the start, once the partitions run."""
        begun, left = self.now, list(enumerate(after_s))

        def step() -> None:
            if left and self.now >= begun + left[0][1] and len(self.processes) == self.partitions:
                call(left.pop(0)[0])

        self.on_step = step

    def pages_asked(self) -> Counter[str]:
        return Counter(url for _, _, url in self.asked if not url.endswith("/robots.txt"))

    def pauses_s(self) -> list[float]:
        """The pauses between two requests of a host."""
        times = defaultdict(list)
        for at, _, url in self.asked:
            times[host_of(url)].append(at)
        return [
            later - before - FETCH_S
            for asked in times.values()
            for before, later in pairwise(asked)
        ]

    def fetched(self) -> list[str]:
        """The pages in the archives of all partitions."""
        return sorted(row["url"] for row in self._rows() if row["outcome"] == "fetched")

    def duplicates(self) -> list[str]:
        """The pages that are duplicates."""
        return [row["url"] for row in self._rows() if row["duplicate_of"] is not None]

    def _rows(self) -> Iterator[dict[str, Any]]:
        if self.shared is not None:
            for name in sorted(self.storage.entries("pages")):
                yield from pq.read_table(BytesIO(self.storage.read(f"pages/{name}"))).to_pylist()
            return
        for data in sorted(self.folder.glob("p*/**/state/data.mdb")):
            store = StateStore.reopen(data.parent)
            yield from page_rows(store.tables)
            store.close()

    def partition_of(self, url: str) -> int:
        """The partition of a URL."""
        return PartitionMap(self.partitions).of_url(url)

    def _open_rounds(self, start: Start, connection: DriverConnection) -> PartitionRounds:
        self.started.append(start.partition)
        topic = self._topic(start)
        restore_state(start, topic.output.folder)
        store = StateStore.open(topic.output.folder / "state", {"partition": str(start.partition)})
        rounds = build_partition_rounds(
            start,
            topic,
            WhaleClassifier(),
            Policy("focused", Apprentice(WhaleClassifier()), highest_score_first),
            store,
            connection,
            driver_lost=lambda: None,
            submit=self.submit,
            background=AtOnce(),
            clock=lambda: self.now,
        )
        if start.state is not None:
            rounds.crawl.hosts.restart_delays(self.now)
        rounds.crawl.seed(topic.seeds.urls, self.now)
        return rounds

    def _answer_to(self, url: str, now: float) -> tuple[float, Outcome]:
        return FETCH_S, self.web.get(url, Failed(url, FailureKind.GONE, 404))

    def _topic(self, start: Start) -> Topic:
        # Each process of a crawl with shared storage runs on a machine of its own.
        folder = self.folder / f"p{start.partition}-{start.attempt}"
        seeds = [url for url in self.seeds if self.partition_of(url) == start.partition]
        return simulated_topic(folder, *seeds, **self.sections)


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
