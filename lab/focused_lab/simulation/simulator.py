"""The simulator: drives the crawl loop over a recorded web with a clock of its own.

Only the driver differs from a live crawl: the same :class:`focused.crawl.loop.Crawl`, storage,
classifier and politeness. A :class:`Network` answers as the replay server does: an unknown host
does not exist, an unknown URL is a 404.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pandas as pd

from focused.archive.archive import PageRow, added_columns, page_values
from focused.archive.parquet import PAGES_SCHEMA
from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl import Done, Fetch, SettledFetch, Step, Wait, build_crawl
from focused.crawl.policy import Policy
from focused.crawl.traps.trap_filter import TrapCount
from focused.errors import RecordedWebError
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.text import hash_fraction
from focused.topic import Topic, adapt_to_recorded_web
from focused.web.html.parse import parse_page
from focused.web.http_response import outcome_from_response
from focused.web.page import Failed, FailureKind, Fetched, Outcome, Page
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import WebSource

Latency = Callable[[str], float]
"""Seconds from request to last byte, by URL."""


class Network(Protocol):
    """Answers requests and parses the answers."""

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``; ``now`` dates a Retry-After."""

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse an answer of :meth:`answer`; see :func:`parse_page`."""


class RecordedNetwork:
    """Answers from a recorded web without a cache."""

    def __init__(self, web: WebSource) -> None:
        self._web = web

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        try:
            response = self._web.get(url)
        except RecordedWebError:  # a damaged record answers as when replayed
            return outcome_from_response(500, {}, url, b"", elapsed_s, now)
        if response is not None:
            return outcome_from_response(
                response.status, response.headers, url, response.body, elapsed_s, now
            )
        if host_of(url) not in self._web.hosts:
            return Failed(url, FailureKind.NO_HOST, detail="not in the recorded web")
        return outcome_from_response(404, {}, url, b"", elapsed_s, now)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse the answer."""
        return parse_page(fetched)


def constant_latency(latency_s: float) -> Latency:
    """Every answer takes ``latency_s`` seconds."""
    return lambda url: latency_s


def hashed_latency(mean_s: float, seed: int) -> Latency:
    """Half to one and a half of ``mean_s`` seconds, by a hash of URL and seed."""

    def latency_s(url: str) -> float:
        return mean_s * (0.5 + hash_fraction(url, seed))

    return latency_s


_MAX_IDLE_STEPS = 10_000
SETTLES_PER_COMMIT = 1_000
"""Nothing needs to survive a simulation's process."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """The result of a simulated crawl.

    ``asked`` are the requested URLs in order, without robots.txt. ``pages`` has the columns of
    :data:`focused.archive.parquet.PAGES_SCHEMA` except the features, in the order they were
    settled. ``mirrors`` maps a prefix to the preferred one. ``simulated_s`` passed on the simulated
    clock, ``cpu_s`` on this process's. ``traps`` are the lines of the trap statistics.
    """

    asked: Sequence[str]
    pages: pd.DataFrame
    end_reason: str
    simulated_s: float
    cpu_s: float
    mirrors: Mapping[str, str] = field(default_factory=dict)
    traps: Sequence[TrapCount] = ()


def simulate(
    topic: Topic,
    classifier: TopicClassifier,
    network: Network,
    policy: Policy,
    *,
    latency: Latency,
    training_urls: frozenset[str] = frozenset(),
    seeds: Sequence[str] | None = None,
    pages: int | None = None,
    watch: Callable[[SettledFetch], object] | None = None,
) -> SimulatedRun:
    """Crawl ``network`` until the frontier is empty, a budget is spent, or ``pages`` are
    classified.

    ``pages`` does not count training samples and feeds. ``seeds`` replace the topic's own; scope,
    budget, delays, concurrency and patience are the topic's. ``watch`` receives each settled fetch.
    The clock starts at 0 s.
    """
    began_s = time.process_time()
    with tempfile.TemporaryDirectory(prefix="focused-simulation-") as folder:
        topic = without_output(adapt_to_recorded_web(topic), Path(folder))
        store = StateStore.open(
            Path(folder) / "state",
            {"simulation": policy.name},
            commit_every=SETTLES_PER_COMMIT,
        )
        try:
            crawl = build_crawl(
                topic,
                classifier,
                policy,
                store,
                training_urls=training_urls,
                parse=network.parse,
                keep_links=False,
            )
            crawl.seed(topic.seeds.urls if seeds is None else seeds, 0.0)
            driver = CrawlDriver(crawl, network, latency, topic.politeness.concurrency, watch)
            ended = "page budget spent"
            while pages is None or crawl.counters.classified < pages:
                if (done := driver.step()) is not None:
                    ended = done.reason
                    break
            rows = pages_frame(store.tables)
            mirrors, traps = dict(crawl.mirrors), crawl.traps.stats.lines()
        finally:
            store.close()
    cpu_s = time.process_time() - began_s
    return SimulatedRun(driver.asked, rows, ended, driver.now, cpu_s, mirrors, traps)


def without_output(topic: Topic, folder: Path) -> Topic:
    """Return the topic of a crawl that writes nothing but its state, below ``folder``."""
    return replace(topic, output=replace(topic.output, folder=folder, warc="off", parquet=False))


def pages_frame(tables: Tables) -> pd.DataFrame:
    """Return the archived pages, in the order they were settled, without their features."""
    columns = [name for name in PAGES_SCHEMA.names if name != "features"]
    values = zip(*page_values(tables), strict=True)
    by_name = dict(zip(PageRow.__struct_fields__, values, strict=False))
    added = by_name.pop("added", ())  # without it nothing was settled
    frame = pd.DataFrame(by_name, columns=columns)
    return frame.assign(
        **{name: [row.get(name) for row in added] for name in added_columns(tables)}
    )


class SteppedCrawl(Protocol):
    """The part of a :class:`focused.crawl.Crawl` that a driver calls."""

    def next(self, now: float) -> Step:
        """Return what to do next."""

    def settle(self, lease_id: int, outcome: Outcome, now: float) -> SettledFetch | None:
        """Settle a fetch."""


class AnsweringNetwork(Protocol):
    """The part of a :class:`Network` that a driver calls."""

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request."""


class CrawlDriver:
    """Sends requests, advances the clock and settles answers, as Scrapy's engine does in a live
    crawl.
    """

    def __init__(
        self,
        crawl: SteppedCrawl,
        network: AnsweringNetwork,
        latency: Latency,
        concurrency: int,
        watch: Callable[[SettledFetch], object] | None = None,
    ) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self._crawl = crawl
        self._network = network
        self._latency = latency
        self._concurrency = concurrency
        self._watch = watch
        self._under_way: list[tuple[float, int, Outcome]] = []
        self._idle = 0

    def step(self) -> Done | None:
        """Send what is ready and advance to the next event; return the end when it is reached."""
        step = self._ask()
        if isinstance(step, Done):
            return step
        before = self.now
        self._let_time_pass(step.until)
        # next() excludes links in batches and then asks to be called again at once.
        self._idle = self._idle + 1 if self.now == before and not self._under_way else 0
        if self._idle > _MAX_IDLE_STEPS:
            raise AssertionError("the crawl waits for a time that has passed")
        return None

    def _ask(self) -> Wait | Done:
        """Send all requests that are ready."""
        while len(self._under_way) < self._concurrency:
            step = self._crawl.next(self.now)
            if isinstance(step, Wait | Done):
                return step
            assert isinstance(step, Fetch), "no driver's own requests are queued here"
            self._send(step)
        return Wait(None)

    def _send(self, fetch: Fetch) -> None:
        if fetch.is_page:
            self.asked.append(fetch.url)
        elapsed_s = self._latency(fetch.url)
        outcome = self._network.answer(fetch.url, self.now, elapsed_s)
        # Leases count up: of simultaneous answers the first requested is settled first.
        heapq.heappush(self._under_way, (self.now + elapsed_s, fetch.lease, outcome))

    def _let_time_pass(self, until: float | None) -> None:
        """Advance to the next event; settle at most one answer."""
        if not self._under_way:
            if until is None:
                raise AssertionError("the crawl waits for a fetch, but none is in flight")
            self.now = max(self.now, until)
            return
        if until is not None and until < self._under_way[0][0]:
            self.now = max(self.now, until)
            return
        self.now, lease, outcome = heapq.heappop(self._under_way)
        settled = self._crawl.settle(lease, outcome, self.now)
        if self._watch is not None and settled is not None:
            self._watch(settled)
