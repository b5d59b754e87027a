"""Cost of pushes and pops as the frontier grows to ten million links, beside Scrapy's scheduler.

``python benchmarks/frontier.py`` (or ``make benchmark-frontier``) grows one frontier to a
hundredth, a tenth and all of ``--links``, measures it at each size, kills it with ``kill -9`` and
opens it again. Then it does the same with 100,000 links on 1,000 hosts, in turn with Scrapy's stock
scheduler and its disk queues. The links are sampled from those of a real crawl
(:mod:`frontier_links`). Prints two tables and writes them into ``benchmarks/results/frontier/``.
Ten million links need some gigabytes on disk, which are checked first.

- ``push``: pushes, counters and commit of a page of 50 links, for each link.
- ``pop``: offer a link, settle the one offered 16 before, its host due again after a second, and
  commit; ``patient pop``: as in a topic without its own setting (two delays).
- ``turn``: a pop, and look-ups and pushes of a page, one commit, as a crawl does for each page.

Times are medians by the clock.
"""

from __future__ import annotations

import argparse
import gc
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pandas as pd
from frontier_links import LinkSource, Recording, queued_links, record_crawl
from frontier_scrapy import measure_scrapy, reopen_scrapy
from harvest import ROOT, Part, build
from machine import allocated_bytes, anonymous_mb

from focused.frontier.disk_frontier import DiskFrontier, NotYet, Offer
from focused.frontier.host_pace import after_success
from focused.storage.state_store import StateStore

WEB = Part(Path("webs/docweb-small"), ("docweb", "--tier", "small"), (), ())
TOPIC = Path("topics/parallel-computing.toml")
RECORDED_PAGES = 2_000
LINKS_PER_HOST = 100  # ten million links on a hundred thousand hosts
BESIDE_SCRAPY = 100_000  # more than a thousand hosts need more open files than it may have
MAX_BYTES_PER_LINK = 500  # on disk; checked before the start, not after hours

DELAY_S = 1.0
PATIENCE_S = 2.0
IN_FLIGHT = 16
TURN_S = 1 / 300  # of the crawl's clock: 300 pages per second
ANSWER_S = IN_FLIGHT * TURN_S
WINDOW_PAGES = 1_000  # the last ones, of which pushes are measured
POPS, PATIENT_POPS, TURNS = 10_000, 2_000, 1_000
_WARM_UP_PAGES = 10


@dataclass(frozen=True)
class Job:
    """Grow the frontier in ``folder`` to ``links`` queued links of ``source``."""

    folder: Path
    source: LinkSource
    links: int
    now: float = 0.0

    def open(self) -> tuple[StateStore, DiskFrontier]:
        """Open the frontier as a crawl does."""
        store = StateStore.open(self.folder, {"benchmark": "frontier"})
        recording = self.source.recording
        return store, DiskFrontier(
            store.tables,
            worth_waiting_for=recording.worth_waiting_for,
            exploration=recording.exploration,
        )


@dataclass(frozen=True)
class Grown:
    """A frontier of some size.

    ``figures`` are a row of the table, ``committed`` the links that a kill must not lose. The job
    goes on with ``source`` at ``now``.
    """

    figures: Mapping[str, float]
    committed: int
    source: LinkSource
    now: float


def main() -> int:
    """Measure, print, write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--links", type=int, default=10_000_000, help="the largest size")
    parser.add_argument("--rounds", type=int, default=3, help="beside Scrapy")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="on a disk"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/frontier"))
    options = parser.parse_args()
    os.chdir(ROOT)
    needed, free = options.links * MAX_BYTES_PER_LINK, shutil.disk_usage(options.folder).free
    if free < needed:
        parser.error(f"{options.folder} has {free / 1e9:.1f} GB free of {needed / 1e9:.1f} needed")
    build(WEB)
    recording = record_crawl(WEB.web, TOPIC, RECORDED_PAGES)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="frontier-", dir=options.folder) as folder:
        growth = pd.DataFrame(list(_grow(recording, options.links, Path(folder))))
        _write(growth.set_index("links").T, options.out / "growth.csv")
    with tempfile.TemporaryDirectory(prefix="frontier-", dir=options.folder) as folder:
        links = min(BESIDE_SCRAPY, options.links)
        rounds = _beside_scrapy(recording, links, options.rounds, Path(folder))
        _write(pd.DataFrame(list(rounds)).groupby("scheduler").median(), options.out / "scrapy.csv")
    return 0


def _write(table: pd.DataFrame, file: Path) -> None:
    print(f"\n{table.round(2).to_string()}")
    table.round(3).to_csv(file)


def _grow(recording: Recording, links: int, folder: Path) -> Iterator[Mapping[str, float]]:
    """Yield the figures of one frontier at each size."""
    source = LinkSource(recording, max(1, links // LINKS_PER_HOST), LINKS_PER_HOST)
    job = Job(folder / "state", source, 0)
    for part in (100, 10, 1):
        job = replace(job, links=links // part)
        grown, reopened = measure_frontier(job)
        job = replace(job, source=grown.source, now=grown.now)
        print({**grown.figures, **reopened}, flush=True)
        yield {**grown.figures, **reopened}


def measure_frontier(job: Job) -> tuple[Grown, Mapping[str, float]]:
    """Grow a frontier in another process, kill that, and open the frontier in a third one."""
    with _killed(grow_frontier, job) as connection:
        grown: Grown = connection.recv()
    with _killed(reopen_frontier, replace(job, now=grown.now)) as connection:
        reopened_s, links = connection.recv()
    return grown, {"reopened s": reopened_s, "lost links": grown.committed - links}


def _beside_scrapy(
    recording: Recording, links: int, rounds: int, folder: Path
) -> Iterator[Mapping[str, object]]:
    """Yield figures of both, in turn, so that other work on the machine disturbs both."""
    hosts = max(1, links // LINKS_PER_HOST)
    for number in range(rounds):
        source = LinkSource(recording, hosts, LINKS_PER_HOST, seed=number)
        grown, reopened = measure_frontier(Job(folder / f"state-{number}", source, links))
        figures = {**grown.figures, **reopened}
        columns = ("push us", "pop us", "lost links")
        yield {"scheduler": "Focused", **{name: figures[name] for name in columns}}
        job_folder = folder / f"job-{number}"
        with _killed(measure_scrapy, job_folder, source, links) as connection:
            push_s, pop_s, left = connection.recv()
        with _killed(reopen_scrapy, job_folder) as connection:
            lost = left - connection.recv()
        values = (_median_us(push_s), _median_us(pop_s), lost)
        yield {"scheduler": "Scrapy", **dict(zip(columns, values, strict=True))}


@contextmanager
def _killed(work: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """Run ``work(connection, *arguments)`` in a new process; ``kill -9`` it when the block ends."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *arguments), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()
        here.close()


def _median_us(seconds: Sequence[float]) -> float:
    return float(np.median(seconds)) * 1e6


def reopen_frontier(connection: Connection, job: Job) -> None:
    """Send the seconds to the first offer and the number of links; wait to be killed."""
    began_s = time.perf_counter()
    _, frontier = job.open()
    offer = frontier.offer(job.now)
    passed_s = time.perf_counter() - began_s
    if not isinstance(offer, Offer):
        raise AssertionError(f"nothing is offered after reopening: {offer}")
    connection.send((passed_s, len(frontier)))
    connection.recv()


def grow_frontier(connection: Connection, job: Job) -> None:
    """Grow and measure; leave work in flight, send :class:`Grown`, and wait to be killed."""
    run = _Run(job)
    figures = run.measure()
    committed = run.leave_in_flight()
    connection.send(Grown(figures, committed, job.source, run.now))
    connection.recv()


class _Run:
    """One process's work on a frontier."""

    def __init__(self, job: Job) -> None:
        self.now = job.now
        self._job = job
        self._source = job.source
        # Memory that Python needs to sample links is not the frontier's.
        for _ in range(_WARM_UP_PAGES):
            queued_links(self._source.page(), {}, 0.0)
        gc.collect()
        self._before_mb = anonymous_mb()
        self._store, self._frontier = job.open()
        self._leased: deque[Offer] = deque()
        self._synced_at = time.monotonic()

    def measure(self) -> Mapping[str, float]:
        """Grow, then measure single operations, which hardly change a large frontier."""
        push_s: deque[float] = deque(maxlen=WINDOW_PAGES)
        while len(self._frontier) < self._job.links:
            push_s.append(self._push_page())
        self._store.sync()
        links = len(self._frontier)
        disk_bytes = allocated_bytes(self._job.folder)
        pop_s = [self._pop(0.0) for _ in range(min(POPS, links // 10))]
        patient_s = [self._pop(PATIENCE_S) for _ in range(min(PATIENT_POPS, links // 10))]
        turn_s = [self._turn() for _ in range(min(TURNS, links // 100))]
        return {
            "links": links,
            "hosts": len(self._frontier.hosts),
            "push us": _median_us(push_s),
            "pop us": _median_us(pop_s),
            "patient pop us": _median_us(patient_s),
            "turn us": _median_us(turn_s),
            "turn us, 99th percentile": float(np.quantile(turn_s, 0.99)) * 1e6,
            "disk bytes a link": disk_bytes / links,
            "memory MB": anonymous_mb() - self._before_mb,
        }

    def leave_in_flight(self) -> int:
        """Commit, then offer links and push a page without a commit; return what is committed."""
        while self._leased:
            self._settle(self._leased.popleft())
        self._commit()
        committed = len(self._frontier)
        for _ in range(IN_FLIGHT):
            self._offer(0.0)
        for link in queued_links(self._source.page(), {}, self.now):
            self._frontier.push(link, self.now, joined=True)
        return committed

    def _push_page(self) -> float:
        """Push and commit a page's links; return the seconds for one."""
        page = self._source.page()
        known = self._frontier.lookup_links(page.host_keys())
        queued = queued_links(page, known.waiting, self.now)
        links = [link for link in queued if link.key not in known.settled]
        began_s = time.perf_counter()
        for link in links:
            self._frontier.push(link, self.now, joined=True)
        self._commit()
        passed_s = time.perf_counter() - began_s
        self._sync_when_due()
        return passed_s / max(1, len(links))

    def _pop(self, patience_s: float) -> float:
        """Offer a link, settle the oldest offer, commit; return the seconds."""
        began_s = time.perf_counter()
        self._offer(patience_s)
        if len(self._leased) > IN_FLIGHT:
            self._settle(self._leased.popleft())
        self._commit()
        passed_s = time.perf_counter() - began_s
        self._end_turn()
        return passed_s

    def _turn(self) -> float:
        """A crawl's work for a page, without fetching, parsing and scoring."""
        page = self._source.page()
        host_keys = page.host_keys()
        began_s = time.perf_counter()
        self._offer(0.0)
        known = self._frontier.lookup_links(host_keys)
        passed_s = time.perf_counter() - began_s
        links = queued_links(page, known.waiting, self.now)
        began_s = time.perf_counter()
        for link in links:
            if link.key not in known.settled:
                self._frontier.push(link, self.now, joined=True)
        if len(self._leased) > IN_FLIGHT:
            self._settle(self._leased.popleft())
        self._commit()
        passed_s += time.perf_counter() - began_s
        self._end_turn()
        return passed_s

    def _offer(self, patience_s: float) -> Offer:
        while True:
            offer = self._frontier.offer(self.now, patience_s)
            if isinstance(offer, Offer):
                self._leased.append(offer)
                return offer
            if offer is None:
                raise AssertionError("the frontier is empty")
            self._wait(offer)

    def _wait(self, offer: NotYet) -> None:
        """Advance the clock until something is due, or the oldest fetch is answered."""
        due_at = math.inf if offer.until is None else offer.until
        answered_at = self._leased[0].host.leased_at + ANSWER_S if self._leased else math.inf
        if min(due_at, answered_at) == math.inf:
            raise AssertionError("the frontier waits for a fetch, and none is in flight")
        self.now = max(self.now, min(due_at, answered_at))
        if answered_at <= self.now:
            self._settle(self._leased.popleft())

    def _settle(self, offer: Offer) -> None:
        offer.host.asked += 1
        self._frontier.hosts.count_fetched(offer.host)
        self._frontier.settle(offer, after_success(offer.host.pace, self.now, DELAY_S), self.now)

    def _commit(self) -> None:
        self._frontier.save()
        self._store.commit()

    def _end_turn(self) -> None:
        self.now += TURN_S
        self._sync_when_due()

    def _sync_when_due(self) -> None:
        if time.monotonic() - self._synced_at >= 1.0:  # as the crawl's driver does
            self._store.sync()
            self._synced_at = time.monotonic()


if __name__ == "__main__":
    sys.exit(main())
