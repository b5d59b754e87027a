"""Workers of one crawl in one process, over a dictionary of answers, on one clock.

Coordinator, exchange and pace leases are in memory; states and shared storage are on disk.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from focused.cluster.assignment import PartitionMap, SiteUnit
from focused.cluster.coordinator import ClusterState, WorkerStatus
from focused.cluster.exchange import MemoryExchange
from focused.cluster.leadership import Leadership
from focused.cluster.learning import SharedLearning
from focused.cluster.memory_coordinator import MemoryCoordinator, MemoryPaceLeases
from focused.cluster.open_partition import PartitionModels, PartitionStates
from focused.cluster.storage import SharedStorage
from focused.cluster.worker import ROUND_S, ClusterWorker
from focused.cluster.worker_round import WorkerRounds
from focused.crawl import Done, Fetch, Wait
from focused.crawl.policy import Policy
from focused.frontier.queued_link import highest_score_first
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Outcome
from tests.support.keyword_guide import WhaleClassifier, WhaleScorer
from tests.support.simulated import FETCH_S, START

T = TypeVar("T")
LEASE_S = 20.0
CONCURRENCY = 8


def run_at_once(call: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_result(call())
    return done


@dataclass
class RunningWorker:
    """A worker with its requests under way: (end, number, lease, URL)."""

    group: ClusterWorker
    under_way: list[tuple[float, int, int, str]] = field(default_factory=list)
    ended: str | None = None
    is_asleep: bool = False


class Workers:
    """``asked`` has (time, worker, URL) of every page that was requested."""

    def __init__(
        self,
        topic: Topic,
        web: Mapping[str, Outcome],
        folder: Path,
        *,
        partitions: int = 4,
        new_scorer: Callable[[], LinkScorer] = WhaleScorer,
    ) -> None:
        self.topic, self.web, self.folder = topic, web, folder
        self.partitions = partitions
        self.new_scorer = new_scorer
        self.scorers: dict[str, LinkScorer] = {}
        self.now = START
        self.coordinator = MemoryCoordinator(lambda: self.now, LEASE_S)
        self.exchange = MemoryExchange()
        self.paces = MemoryPaceLeases(lambda: self.now)
        self.storage = SharedStorage(f"file://{folder}/shared", topic.name)
        self.asked: list[tuple[float, str, str]] = []
        self.running: dict[str, RunningWorker] = {}
        self._numbers = count()
        self._maintained_at = START

    def start(self, name: str) -> ClusterWorker:
        scorer = self.scorers[name] = self.new_scorer()
        models = PartitionModels(WhaleClassifier(), Policy("focused", scorer, highest_score_first))
        learning = None
        if isinstance(scorer, OnlineLinkScorer):
            learning = SharedLearning(scorer, self.exchange, self.storage)
            learning.restore()
        partitions = PartitionMap(self.partitions, SiteUnit.HOST)
        states = PartitionStates(self.topic, models, partitions, self.storage, self.folder / name)
        group = ClusterWorker(
            WorkerStatus(name, "here", 1, self.now),
            WorkerRounds(
                name,
                self.partitions,
                self.coordinator,
                self.exchange,
                states,
                Leadership(self.coordinator, self.partitions, self.topic.budget),
            ),
            self.paces,
            states,
            run_at_once,
            lease_s=LEASE_S,
            request_s=10.0,
            partitions=self.partitions,
            has_page_budget=self.topic.budget.pages is not None,
            learning=learning,
        )
        self.running[name] = RunningWorker(group)
        return group

    def run(self, *, until: Callable[[], bool] = lambda: False, within_s: float = 3_600.0) -> None:
        """Run until all workers have ended, or ``until`` holds."""
        give_up_at = self.now + within_s
        while self._awake() and not until():
            assert self.now < give_up_at, "the workers did not end in time"
            self._step()

    def kill(self, name: str) -> None:
        """Let a worker die without a word: only what it uploaded is left."""
        worker = self.running.pop(name)
        for crawl in worker.group.crawls:
            crawl.abandon()

    def pages(self) -> pd.DataFrame:
        """The pages of the archive of all partitions."""
        return pd.read_parquet(self.folder / "shared" / self.topic.name / "pages")

    def fetched(self) -> Sequence[str]:
        pages = self.pages()
        return sorted(pages[pages.outcome == "fetched"].url)

    def close(self) -> None:
        for worker in self.running.values():
            for crawl in worker.group.crawls:
                crawl.abandon()

    def _awake(self) -> Mapping[str, RunningWorker]:
        return {
            name: each
            for name, each in self.running.items()
            if each.ended is None and not each.is_asleep
        }

    def _step(self) -> None:
        maintains = self.now >= self._maintained_at + ROUND_S
        if maintains:
            self._maintained_at = self.now
        wake_at = self._maintained_at + ROUND_S
        for name, worker in self._awake().items():
            if maintains:
                worker.group.maintain(self.now)
            wake_at = min(wake_at, self._drive(name, worker))
        self.now = max(self.now, wake_at)

    def _drive(self, name: str, worker: RunningWorker) -> float:
        """Settle what has come and ask for more; return when to go on."""
        group, under_way = worker.group, worker.under_way
        while under_way and under_way[0][0] <= self.now:
            _, _, lease, url = heapq.heappop(under_way)
            if group.of_lease(lease) is not None:
                answer = self.web.get(url, Failed(url, FailureKind.GONE, 404))
                group.settle(lease, answer, self.now)
        until = float("inf")
        while len(under_way) < CONCURRENCY:
            step = group.next(self.now)
            if isinstance(step, Done) and group.is_finished(self.now):
                worker.ended = step.reason
                group.close(self.now)
                return self.now
            if isinstance(step, Wait):
                until = float("inf") if step.until is None else step.until
                break
            assert isinstance(step, Fetch)
            if not group.may_connect(step.lease, step.url, "192.0.2.1", self.now):
                group.put_back(step.lease, self.now)
                continue
            self.asked.append((self.now, name, step.url))
            entry = (self.now + FETCH_S, next(self._numbers), step.lease, step.url)
            heapq.heappush(under_way, entry)
        return min(until, under_way[0][0] if under_way else float("inf"))


def stop(workers: Workers, state: ClusterState) -> None:
    workers.coordinator.set_state(state, "the user said so")


def ring(hosts: int, pages: int) -> dict[str, Any]:
    """Pages of many hosts: each links to the next one of its host and to the next host."""
    from tests.support.simulated import page

    web = {}
    for host in range(hosts):
        for number in range(pages):
            url = f"http://h{host}.test/{number}"
            onward = f"http://h{(host + 1) % hosts}.test/{number}"
            text = f"a whale of its own, page {number} of host {host}"
            next_page = f"http://h{host}.test/{number + 1}"
            web[url] = page(url, next_page, onward, text=text, title=f"whale {host} {number}")
    return web
