"""Simulate a crawl of many partitions over a recorded web, on one clock.

Each partition is a :class:`focused.crawl.loop.Crawl`, with the outbox, routing, learning and budget
of a live cluster; only the exchange is in memory. The partitions of a worker share its concurrency
and its link scorer.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from focused.cluster.leadership import MAX_REPORTED_PRIORITIES

from focused.classifier.topic_classifier import TopicClassifier
from focused.cluster.assignment import PartitionMap, SiteUnit
from focused.cluster.budget import (
    MIN_PAGES_AHEAD,
    Demand,
    next_grants,
    priority_floors,
    unused_pages,
)
from focused.cluster.exchange import MemoryExchange
from focused.cluster.learning import SharedLearning
from focused.cluster.partition import Partition, build_partition
from focused.cluster.routing import LinkMode
from focused.cluster.shared_contents import MemoryContentStore
from focused.crawl import Done, Fetch, SettledFetch, Wait
from focused.crawl.policy import Policy
from focused.frontier.queued_link import link_key
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import Topic, adapt_to_recorded_web
from focused.web.page import Outcome
from focused.web.urls import normalize_url
from focused_lab.simulation.simulator import Latency, Network, pages_frame

_SETTLES_PER_COMMIT = 1_000
_CROSSED_AT_ONCE = 10
_SECONDS_AHEAD = 2.0


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a simulated cluster works.

    Partition n belongs to worker n modulo ``workers``. Links and training examples are exchanged
    every ``batch_s`` seconds, priorities told and pages granted every ``round_s``. Without
    ``shares_learning`` each partition trains a scorer of its own; without ``shares_budget`` each
    has an equal part of the budget; without ``shares_contents`` each detects its own duplicates
    only. All partitions know the ``replicated`` URLs from the start.
    """

    partitions: int
    workers: int = 1
    mode: LinkMode = LinkMode.EXCHANGE
    unit: SiteUnit = SiteUnit.DOMAIN
    batch_s: float = 1.0
    round_s: float = 0.25
    shares_learning: bool = True
    shares_budget: bool = True
    shares_contents: bool = True
    replicated: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The result of a simulated cluster.

    ``pages`` has the columns of :attr:`focused_lab.simulation.simulator.SimulatedRun.pages`
    and ``partition``. The counts are those of :class:`focused.cluster.routing.RoutingCounts`.
    """

    pages: pd.DataFrame
    partitions: int
    sent: int
    suppressed: int
    replicated: int
    dropped: int
    simulated_s: float

    @property
    def fetched(self) -> pd.DataFrame:
        """The pages that were fetched, by all partitions."""
        return self.pages[self.pages["outcome"] == "fetched"]


def simulate_cluster(
    topic: Topic,
    classifier: TopicClassifier,
    network: Network,
    make_policy: Callable[[], Policy],
    settings: ClusterSettings,
    *,
    latency: Latency,
    training_urls: frozenset[str] = frozenset(),
    seeds: Sequence[str] | None = None,
    watch: Callable[[SettledFetch], object] = lambda settled: None,
) -> ClusterRun:
    """Crawl ``network`` by many partitions until the budget of pages is spent or no link is left.

    ``seeds`` replace the topic's own; the budget is the topic's. Each worker has the topic's
    concurrency. ``watch`` receives each settled fetch.
    """
    topic = adapt_to_recorded_web(topic)
    with TemporaryDirectory(prefix="focused-cluster-") as folder, ExitStack() as stack:
        cluster = _Cluster(topic, network, latency, settings, watch)
        makers = settings.workers if settings.shares_learning else settings.partitions
        policies = [make_policy() for _ in range(makers)]
        if settings.shares_learning:
            for policy in policies:
                cluster.share_learning(policy)
        for number in range(settings.partitions):
            where = Path(folder) / str(number)
            output = replace(topic.output, folder=where, warc="off", parquet=False)
            identity = {"simulation": str(number)}
            store = StateStore.open(where / "state", identity, commit_every=_SETTLES_PER_COMMIT)
            stack.callback(store.close)
            cluster.add(
                replace(topic, output=output),
                classifier,
                policies[number % makers],
                store,
                training_urls,
                topic.seeds.urls if seeds is None else seeds,
            )
        return cluster.run()


class _Driver:
    """One partition with its requests in flight."""

    def __init__(self, partition: Partition, tables: Tables) -> None:
        self.partition = partition
        self.crawl = partition.crawl
        self.tables = tables
        self.granted = 0
        self.pages_in_flight = 0
        self.ask_at: float | None = 0.0
        """When to ask for the next fetch; None: when something happens."""

    def grant(self, pages: int) -> None:
        """Give the partition further pages, or take some back."""
        self.granted += pages
        self.crawl.limit_pages(self.granted)

    def demand(self, now: float) -> Demand:
        """What the partition tells about its pages and links."""
        used = self.crawl.counters.fetched + self.pages_in_flight
        priorities = self.crawl.best_priorities(MAX_REPORTED_PRIORITIES, now)
        return Demand(self.granted, used, priorities)


@dataclass(frozen=True, slots=True, order=True)
class _Request:
    """A request in flight."""

    ends_at: float
    number: int
    partition: int
    lease: int
    is_page: bool
    outcome: Outcome


class _Cluster:
    def __init__(
        self,
        topic: Topic,
        network: Network,
        latency: Latency,
        settings: ClusterSettings,
        watch: Callable[[SettledFetch], object],
    ) -> None:
        self._settings = settings
        self._network = network
        self._latency = latency
        self._watch = watch
        self._concurrency = topic.politeness.concurrency
        self._budget = topic.budget.pages
        self._owner_of = PartitionMap(settings.partitions, settings.unit)
        self._replicated = frozenset(map(link_key, settings.replicated))
        self._exchange = MemoryExchange()
        self._contents = MemoryContentStore()
        self._learning: list[SharedLearning] = []
        self._drivers: list[_Driver] = []
        self._requests: list[_Request] = []
        self._requested = 0
        self._in_flight: Counter[int] = Counter()
        """Requests by worker."""
        self._now = 0.0
        self._used_before = 0

    def share_learning(self, policy: Policy) -> None:
        """Train the policy's scorer, that of a worker, on the examples of all partitions."""
        if isinstance(policy.scorer, OnlineLinkScorer):
            self._learning.append(SharedLearning(policy.scorer, self._exchange))

    def add(
        self,
        topic: Topic,
        classifier: TopicClassifier,
        policy: Policy,
        store: StateStore,
        training_urls: frozenset[str],
        seeds: Sequence[str],
    ) -> None:
        """Add the next partition, with its seeds."""
        number, settings = len(self._drivers), self._settings
        partition = build_partition(
            number,
            1,
            topic,
            classifier,
            policy,
            store,
            self._owner_of,
            shares_examples=bool(self._learning),
            contents=self._contents if settings.shares_contents else None,
            mode=settings.mode,
            replicated=self._replicated,
            training_urls=training_urls,
            parse=self._network.parse,
            keep_links=False,
        )
        crawl = partition.crawl
        crawl.seed(self._own(seeds, number), 0.0)
        for url in self._own(self._settings.replicated, number):
            crawl.enqueue_url(url, 0.0, 0.0)
        self._drivers.append(_Driver(partition, store.tables))

    def _own(self, urls: Sequence[str], partition: int) -> Sequence[str]:
        normalized = filter(None, map(normalize_url, urls))
        return [url for url in normalized if self._owner_of.of_url(url) == partition]

    def run(self) -> ClusterRun:
        """Drive all partitions until the budget is spent or no link is left."""
        self._divide_budget()
        exchange_at = round_at = 0.0
        while True:
            if self._now >= exchange_at:
                self._exchange_all()
                exchange_at = self._now + self._settings.batch_s
            if self._now >= round_at:
                self._share_out()
                round_at = self._now + self._settings.round_s
            self._ask_all()
            times = [driver.ask_at for driver in self._drivers if driver.ask_at is not None]
            if self._requests:
                times.append(self._requests[0].ends_at)
            elif not times and not self._is_waiting():
                break
            if times or self._has_outgoing():
                self._now = max(self._now, min([*times, exchange_at, round_at]))
            else:
                round_at = self._now = self._next_due_at(round_at)
            if self._requests and self._requests[0].ends_at <= self._now:
                self._settle(heapq.heappop(self._requests))
        return self._result()

    def _divide_budget(self) -> None:
        """Grant each partition an equal part, unless the budget is shared out later."""
        if self._budget is not None:
            budget = 0 if self._settings.shares_budget else self._budget
            part, left = divmod(budget, len(self._drivers))
            for number, driver in enumerate(self._drivers):
                driver.grant(part + (number < left))

    def _is_waiting(self) -> bool:
        """Whether anything is left to do, though nothing is in flight."""
        if self._has_outgoing():
            return True
        if self._shares_budget and self._used() < (self._budget or 0):
            return any(driver.crawl.frontier.hosts.with_links for driver in self._drivers)
        return False

    def _has_outgoing(self) -> bool:
        return any(len(driver.partition.outbox) for driver in self._drivers)

    def _next_due_at(self, round_at: float) -> float:
        """When to share out again: in the next round, or later if no host is due before."""
        if any(driver.crawl.best_priorities(1, self._now) for driver in self._drivers):
            return round_at
        due = [driver.crawl.frontier.hosts.next_due_at() for driver in self._drivers]
        return max(round_at, min((at for at in due if at is not None), default=round_at))

    @property
    def _shares_budget(self) -> bool:
        return self._budget is not None and self._settings.shares_budget

    def _used(self) -> int:
        return sum(each.crawl.counters.fetched + each.pages_in_flight for each in self._drivers)

    def _share_out(self) -> None:
        """Grant the next pages of the budget, and exchange the best priorities."""
        if not self._shares_budget or self._budget is None:
            return
        used = self._used()
        pages_per_s = (used - self._used_before) / self._settings.round_s
        ahead = max(MIN_PAGES_AHEAD, round(_SECONDS_AHEAD * pages_per_s))
        self._used_before = used
        patience = self._drivers[0].crawl.worth_waiting_for
        demands = {number: each.demand(self._now) for number, each in enumerate(self._drivers)}
        for number, pages in unused_pages(demands, patience).items():
            self._drivers[number].grant(-pages)
            demands[number] = replace(demands[number], granted=self._drivers[number].granted)
        grants = next_grants(self._budget, demands, patience, ahead)
        for number, pages in grants.items():
            self._drivers[number].grant(pages)
        priorities = {number: demand.priorities for number, demand in demands.items()}
        for number, floor in priority_floors(priorities, patience).items():
            driver = self._drivers[number]
            driver.crawl.limit_priority(floor)
            driver.ask_at = self._now

    def _ask_all(self) -> None:
        for number, driver in enumerate(self._drivers):
            if driver.ask_at is not None and driver.ask_at <= self._now:
                driver.ask_at = self._ask(number, driver)

    def _ask(self, number: int, driver: _Driver) -> float | None:
        """Send the requests that are ready; return when to ask again."""
        worker = number % self._settings.workers
        while self._in_flight[worker] < self._concurrency:
            step = driver.crawl.next(self._now)
            if isinstance(step, Done) and self._crosses_over(driver):
                continue
            if isinstance(step, Done):
                return None
            if isinstance(step, Wait):
                return step.until
            assert isinstance(step, Fetch), "no driver's own requests are queued here"
            self._send(number, driver, step)
            self._in_flight[worker] += 1
        return None

    def _crosses_over(self, driver: _Driver) -> bool:
        """Whether the partition, which has no own link left, takes links of others."""
        if self._settings.mode is not LinkMode.CROSSOVER or len(driver.crawl.frontier):
            return False
        return driver.partition.links.cross_over(self._now, _CROSSED_AT_ONCE) > 0

    def _send(self, number: int, driver: _Driver, fetch: Fetch) -> None:
        is_page = fetch.is_page
        elapsed_s = self._latency(fetch.url)
        outcome = self._network.answer(fetch.url, self._now, elapsed_s)
        self._requested += 1
        request = _Request(
            self._now + elapsed_s, self._requested, number, fetch.lease, is_page, outcome
        )
        heapq.heappush(self._requests, request)
        driver.pages_in_flight += is_page

    def _settle(self, request: _Request) -> None:
        driver, worker = (
            self._drivers[request.partition],
            request.partition % self._settings.workers,
        )
        driver.pages_in_flight -= request.is_page
        settled = driver.crawl.settle(request.lease, request.outcome, self._now)
        if settled is not None:
            self._watch(settled)
        driver.ask_at = self._now
        if self._in_flight[worker] == self._concurrency:
            for each in self._drivers[worker :: self._settings.workers]:
                each.ask_at = self._now
        self._in_flight[worker] -= 1

    def _exchange_all(self) -> None:
        """Deliver the links and training examples of all partitions."""
        for driver in self._drivers:
            driver.partition.send(self._exchange, self._now)
        for driver in self._drivers:
            partition = driver.partition
            if partition.receive(self._exchange, self._now):
                self._exchange.trim(partition.number, partition.position)
                driver.ask_at = self._now
        for learning in self._learning:
            while learning.learn():
                pass

    def _result(self) -> ClusterRun:
        counts = [driver.partition.links.counts for driver in self._drivers]
        frames = [
            pages_frame(driver.tables).assign(partition=number)
            for number, driver in enumerate(self._drivers)
        ]
        return ClusterRun(
            pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True),
            len(self._drivers),
            sum(each.sent for each in counts),
            sum(each.suppressed for each in counts),
            sum(each.replicated for each in counts),
            sum(each.dropped for each in counts),
            self._now,
        )
