"""Simulate a crawl of many partitions over a recorded web, on one clock.

Each partition is a :class:`focused.crawl.loop.Crawl`, with the outbox, routing and budget of a live
cluster; only the exchange is in memory.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from focused.classifier.topic_classifier import TopicClassifier
from focused.cluster.assignment import PartitionMap, SiteUnit
from focused.cluster.budget import share_out
from focused.cluster.exchange import MemoryExchange
from focused.cluster.outbox import Outbox
from focused.cluster.partition import Partition
from focused.cluster.routing import LinkMode, RoutedLinks
from focused.crawl import Done, Fetch, FetchPurpose, SettledFetch, Wait, build_crawl
from focused.crawl.policy import Policy
from focused.experiments.simulation.simulator import Latency, Network
from focused.frontier.interface import Frontier
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import Topic, adapt_to_recorded_web
from focused.web.page import Outcome
from focused.web.urls import normalize_url

_SETTLES_PER_COMMIT = 1_000


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a simulated cluster works.

    Links are exchanged every ``batch_s`` seconds. The budget is shared out in ``rounds`` rounds;
    None: each partition crawls as fast as it can until the whole budget is spent.
    """

    partitions: int
    mode: LinkMode = LinkMode.EXCHANGE
    unit: SiteUnit = SiteUnit.DOMAIN
    batch_s: float = 1.0
    rounds: int | None = 100


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The result of a simulated cluster.

    ``asked`` are the requested URLs in order, each with its partition, without robots.txt.
    ``messages`` counts the links sent, ``suppressed`` those not sent because they were sent lately.
    """

    asked: Sequence[tuple[int, str]]
    pages: Sequence[int]
    """Pages fetched by each partition."""
    messages: int
    suppressed: int
    dropped: int
    simulated_s: float

    @property
    def overlap(self) -> float:
        """(N - I) / N, with N pages fetched, I of them distinct (Cho and Garcia-Molina 2002)."""
        n = len(self.asked)
        return 0.0 if not n else (n - len({url for _, url in self.asked})) / n

    @property
    def communication_overhead(self) -> float:
        """M / N: links exchanged per page fetched."""
        return self.messages / max(len(self.asked), 1)


def simulate_cluster(
    topic: Topic,
    classifier: TopicClassifier,
    network: Network,
    make_policy: Callable[[], Policy],
    settings: ClusterSettings,
    *,
    latency: Latency,
    training_urls: frozenset[str] = frozenset(),
    watch: Callable[[int, SettledFetch], object] | None = None,
) -> ClusterRun:
    """Crawl ``network`` by many partitions until the topic's page budget is spent.

    Each partition has a policy of its own, and the topic's concurrency.
    """
    with TemporaryDirectory(prefix="focused-cluster-") as folder, ExitStack() as stack:
        cluster = _Cluster(settings, network, latency, topic, watch)
        for number in range(settings.partitions):
            where = Path(folder) / str(number)
            output = replace(topic.output, folder=where, warc="off", parquet=False)
            own_topic = replace(adapt_to_recorded_web(topic), output=output)
            identity = {"simulation": str(number)}
            store = StateStore.open(where / "state", identity, commit_every=_SETTLES_PER_COMMIT)
            stack.callback(store.close)
            cluster.add(number, own_topic, classifier, make_policy(), store, training_urls)
        return cluster.run()


class _Driver:
    """One partition with its requests under way."""

    def __init__(self, partition: Partition, concurrency: int) -> None:
        self.partition = partition
        self.concurrency = concurrency
        self.under_way = 0
        self.ask_at: float | None = 0.0
        """When to ask for the next fetch; None: when something happens."""
        self.granted = 0

    @property
    def fetched(self) -> int:
        return self.partition.crawl.counters.fetched


class _Cluster:
    def __init__(
        self,
        settings: ClusterSettings,
        network: Network,
        latency: Latency,
        topic: Topic,
        watch: Callable[[int, SettledFetch], object] | None,
    ) -> None:
        self._settings = settings
        self._network = network
        self._latency = latency
        self._topic = topic
        self._watch = watch
        self._owner_of = PartitionMap(settings.partitions, settings.unit)
        self._exchange = MemoryExchange()
        self._drivers: list[_Driver] = []
        self._under_way: list[tuple[float, int, int, int, Outcome]] = []
        self._asked: list[tuple[int, str]] = []
        self._now = 0.0
        self._budget = topic.budget.pages or 0

    def add(
        self,
        number: int,
        topic: Topic,
        classifier: TopicClassifier,
        policy: Policy,
        store: StateStore,
        training_urls: frozenset[str],
    ) -> None:
        """Add a partition, and seed it."""
        outbox = Outbox(store.tables)
        routed: list[RoutedLinks] = []

        def route(frontier: Frontier, tables: Tables) -> RoutedLinks:
            routed.append(
                RoutedLinks(number, self._owner_of, frontier, outbox, self._settings.mode)
            )
            return routed[0]

        crawl = build_crawl(
            topic,
            classifier,
            policy,
            store,
            training_urls=training_urls,
            parse=self._network.parse,
            keep_links=False,
            route=route,
        )
        seeds = filter(None, map(normalize_url, topic.seeds.urls))
        crawl.seed([url for url in seeds if self._owner_of.of_url(url) == number], 0.0)
        partition = Partition(number, 1, crawl, store.tables, outbox, routed[0], self._owner_of)
        self._drivers.append(_Driver(partition, topic.politeness.concurrency))

    def run(self) -> ClusterRun:
        """Drive all partitions until the budget is spent or no link is left."""
        exchange_at = self._settings.batch_s
        self._share_out()
        while True:
            self._ask_all()
            times = [driver.ask_at for driver in self._drivers if driver.ask_at is not None]
            if self._under_way:
                times.append(self._under_way[0][0])
            if not times and not self._go_on():
                break
            until = min([*times, exchange_at], default=exchange_at)
            self._now = max(self._now, until)
            if self._now >= exchange_at:
                self._exchange_links()
                exchange_at = self._now + self._settings.batch_s
            if self._under_way and self._under_way[0][0] <= self._now:
                self._settle()
        return self._result()

    def _go_on(self) -> bool:
        """Whether links under way between partitions or a new round wake a partition."""
        self._exchange_links()
        if any(driver.ask_at is not None for driver in self._drivers):
            return True
        return self._share_out()

    def _ask_all(self) -> None:
        for number, driver in enumerate(self._drivers):
            if driver.ask_at is not None and driver.ask_at <= self._now:
                self._ask(number, driver)

    def _ask(self, number: int, driver: _Driver) -> None:
        driver.ask_at = None
        while driver.under_way < driver.concurrency:
            step = driver.partition.crawl.next(self._now)
            if isinstance(step, Done):
                return
            if isinstance(step, Wait):
                driver.ask_at = step.until
                return
            assert isinstance(step, Fetch), "no driver's own requests are queued here"
            if step.purpose is FetchPurpose.PAGE:
                self._asked.append((number, step.url))
            elapsed_s = self._latency(step.url)
            outcome = self._network.answer(step.url, self._now, elapsed_s)
            entry = (self._now + elapsed_s, len(self._asked), number, step.lease, outcome)
            heapq.heappush(self._under_way, entry)
            driver.under_way += 1

    def _settle(self) -> None:
        self._now, _, number, lease, outcome = heapq.heappop(self._under_way)
        driver = self._drivers[number]
        driver.under_way -= 1
        settled = driver.partition.crawl.settle(lease, outcome, self._now)
        if self._watch is not None and settled is not None:
            self._watch(number, settled)
        driver.ask_at = self._now
        if self._settings.rounds is not None and self._left_of_round() <= 0:
            self._share_out()

    def _left_of_round(self) -> int:
        return sum(max(driver.granted - driver.fetched, 0) for driver in self._drivers)

    def _share_out(self) -> bool:
        """Give each partition its pages of the next round; False when nothing is to be given."""
        fetched = sum(driver.fetched + driver.under_way for driver in self._drivers)
        left = self._budget - fetched
        if left <= 0:
            return False
        if self._settings.rounds is None:
            shares = dict.fromkeys(range(len(self._drivers)), left)
        else:
            pages = min(left, math.ceil(self._budget / self._settings.rounds))
            shares = dict(
                share_out(
                    pages,
                    {
                        number: driver.partition.crawl.frontier.best_priorities(pages)
                        for number, driver in enumerate(self._drivers)
                    },
                )
            )
        for number, share in shares.items():
            driver = self._drivers[number]
            driver.granted = driver.fetched + driver.under_way + share
            driver.partition.crawl.limit_pages(driver.granted)
            if share:
                driver.ask_at = self._now
        return any(shares.values())

    def _exchange_links(self) -> None:
        for driver in self._drivers:
            driver.partition.send(self._exchange, self._now)
        for driver in self._drivers:
            partition = driver.partition
            if partition.receive(self._exchange, self._now):
                self._exchange.trim(partition.number, partition.position)
                driver.ask_at = self._now

    def _result(self) -> ClusterRun:
        counts = [driver.partition.links.counts for driver in self._drivers]
        return ClusterRun(
            self._asked,
            [driver.fetched for driver in self._drivers],
            sum(each.sent for each in counts),
            sum(each.suppressed for each in counts),
            sum(each.dropped for each in counts),
            self._now,
        )
