"""The simulator: the live crawl's own crank, turned over a recorded web by a clock of its own.

Nothing but the driver differs from a live crawl: the same
:class:`focused.crawl.Crawl` over the same store, the same judge, the same
politeness. A simulated second costs nothing, and the same arguments give the
same crawl.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from focused.archive import PAGE_COLUMNS, page_values
from focused.archive_schema import PAGES_SCHEMA
from focused.crawl import Crawl, Done, Fetch, Purpose, Settled, Wait
from focused.crawl.policy import Policy
from focused.evaluation.simulation.network import Latency, Network
from focused.frontier.store import StateStore
from focused.frontier.tables import Tables
from focused.learning.protocols import TopicJudge
from focused.topic import Topic, on_a_recorded_web
from focused.web.page import Outcome

_UNTIL_STUCK = 10_000
_SETTLES_PER_COMMIT = 1_000


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What a simulated crawl did.

    ``asked`` are the URLs in the order of asking, robots.txt left out;
    ``pages`` is a frame with the columns of
    :data:`focused.archive_schema.PAGES_SCHEMA` but the evidence, in the order
    of settling. ``mirrors`` are the pairs known at the end, the preferred prefix by the
    lesser one. ``simulated_s`` passed on the crawl's clock, ``cpu_s`` on this
    process's.
    """

    asked: Sequence[str]
    pages: pd.DataFrame
    ended_because: str
    simulated_s: float
    cpu_s: float
    mirrors: Mapping[str, str] = field(default_factory=dict)


def simulate(
    topic: Topic,
    judge: TopicJudge,
    network: Network,
    policy: Policy,
    *,
    latency: Latency,
    training_urls: frozenset[str] = frozenset(),
    seeds: Sequence[str] | None = None,
    pages: int | None = None,
    watch: Callable[[Settled], object] | None = None,
) -> SimulatedRun:
    """Crawl ``network`` until the frontier is empty, a budget spent, or ``pages`` judged.

    ``pages`` counts as the harvest does: training samples and feeds do not.
    ``seeds`` stand in for the topic's own. Scope, budget, delays, concurrency
    and patience are the topic's; a policy that knows no better link to wait
    for has no patience. ``watch`` is shown what is settled. The clock starts at 0 s.
    """
    began_s = time.process_time()
    with tempfile.TemporaryDirectory(prefix="focused-simulation-") as folder:
        topic = _cheaply(topic, Path(folder))
        store = StateStore.open(
            Path(folder) / "state",
            {"simulation": policy.name},
            commit_every=_SETTLES_PER_COMMIT,  # whatever is lost with the process is made again
        )
        try:
            crawl = Crawl(
                topic,
                judge,
                policy,
                store,
                training_urls=training_urls,
                parse=network.parse,
                keep_links=False,
            )
            crawl.seed(topic.seeds.urls if seeds is None else seeds, 0.0)
            driver = _Driver(crawl, network, latency, topic.politeness.concurrency, watch)
            ended = driver.run(pages)
            rows = _frame(store.tables)
            mirrors = dict(crawl.mirrors)
        finally:
            store.close()
    cpu_s = time.process_time() - began_s
    return SimulatedRun(driver.asked, rows, ended, driver.now, cpu_s, mirrors)


def _cheaply(topic: Topic, folder: Path) -> Topic:
    output = replace(topic.output, folder=folder, warc="off", parquet=False)
    return replace(on_a_recorded_web(topic), output=output)


def _frame(tables: Tables) -> pd.DataFrame:
    columns = [name for name in PAGES_SCHEMA.names if name != "evidence"]
    values = zip(*page_values(tables), strict=True)
    by_name = dict(zip(PAGE_COLUMNS, values, strict=False))  # nothing was settled: no values
    return pd.DataFrame(by_name, columns=columns)


class _Driver:
    """Asks, lets time pass, settles: what Scrapy's engine is to a live crawl."""

    def __init__(
        self,
        crawl: Crawl,
        network: Network,
        latency: Latency,
        concurrency: int,
        watch: Callable[[Settled], object] | None,
    ) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self._crawl = crawl
        self._network = network
        self._latency = latency
        self._concurrency = concurrency
        self._watch = watch
        self._under_way: list[tuple[float, int, Outcome]] = []

    def run(self, pages: int | None) -> str:
        """Turn the crank to the end; return why it ended."""
        idle = 0
        while pages is None or self._crawl.counters.judged < pages:
            step = self._ask()
            if isinstance(step, Done):
                return step.reason
            before = self.now
            self._let_time_pass(step.until)
            # next() excludes links in batches, and says to look again at once.
            idle = idle + 1 if self.now == before and not self._under_way else 0
            if idle > _UNTIL_STUCK:
                raise AssertionError("the crawl waits for a moment that has come")
        return "page budget spent"

    def _ask(self) -> Wait | Done:
        """Send what may be sent now."""
        while len(self._under_way) < self._concurrency:
            step = self._crawl.next(self.now)
            if isinstance(step, Wait | Done):
                return step
            assert isinstance(step, Fetch), "no driver's own requests are queued here"
            self._send(step)
        return Wait(None)

    def _send(self, fetch: Fetch) -> None:
        if fetch.purpose is Purpose.PAGE:
            self.asked.append(fetch.url)
        elapsed_s = self._latency(fetch.url)
        outcome = self._network.answer(fetch.url, self.now, elapsed_s)
        # Leases count up: of answers that come at one time the first asked is settled first.
        heapq.heappush(self._under_way, (self.now + elapsed_s, fetch.lease, outcome))

    def _let_time_pass(self, until: float | None) -> None:
        """Go to the next moment something happens; settle at most one answer."""
        if not self._under_way:
            if until is None:
                raise AssertionError("the crawl waits for a fetch, but none is under way")
            self.now = max(self.now, until)
            return
        if until is not None and until < self._under_way[0][0]:
            self.now = max(self.now, until)
            return
        self.now, lease, outcome = heapq.heappop(self._under_way)
        settled = self._crawl.settle(lease, outcome, self.now)
        if self._watch is not None and settled is not None:
            self._watch(settled)
