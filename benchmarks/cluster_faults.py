"""Examine a cluster under faults: is every page archived once, and every host left its delay?

    python benchmarks/cluster_faults.py --minutes 60

Four workers crawl some hosts of a recorded web, without budget, over a Redis Cluster of three
masters and three replicas. At random times a worker is killed (and another one started), suspended
for up to a minute, all its connections to Redis are cut, or a master of Redis is killed. When a
crawl has ended it starts again with another seed, until the time is over. A crawl by one process
gives the pages that must be there, the access log of the web's server the requests.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from local_cluster import LocalCluster

from focused.cluster.coordinator import ClusterState
from focused.errors import FocusedError
from focused.recorded_web.recorded_web import RecordedWeb
from focused.topic.topic_file import load_topic
from focused.web.urls import host_of

TOPIC = """
name = "faults"
[seeds]
urls = {seeds}
[training]
directory = {directory}
good = {good}
model = "{model}"
[scope]
allow_hosts = {hosts}
private_addresses = true
near_duplicates = false
mirrors = false
traps = false
[politeness]
user_agent = "FocusedFaults/0.1 (+https://example.org/faults)"
delay_s = {delay_s}
patience = 0
suspend_s = 0
max_tries = 10
"""
MAX_SUSPENDED_S = 60.0
_CLOCK_TOLERANCE_S = 0.002


@dataclass(frozen=True)
class Findings:
    """What the archive and the access log of a crawl show."""

    pages: int
    missing: Sequence[str]
    archived_twice: Sequence[str]
    requested_again: int
    in_flight_at_kills: int
    overlapping: int
    too_soon: int
    shortest_pause_s: float
    faults: Mapping[str, int]
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether nothing is missing or doubled, and every host had its delay."""
        return not (self.missing or self.archived_twice or self.overlapping or self.too_soon)


def write_topic(base: Path, web: Path, folder: Path, pages: range, delay_s: float) -> Path:
    """Write the topic: all hosts of the web with so many pages, and one seed on each."""
    training = load_topic(base).training
    recorded = RecordedWeb.open(web)
    by_host: dict[str, list[str]] = defaultdict(list)
    for url in recorded.page_urls:
        by_host[host_of(url)].append(url)
    recorded.close()
    chosen = {host: urls for host, urls in by_host.items() if len(urls) in pages}
    topic = folder / "faults.toml"
    topic.write_text(
        TOPIC.format(
            seeds=json.dumps([min(urls, key=len) for urls in chosen.values()]),
            directory=json.dumps([str(path.absolute()) for path in training.directory]),
            good=json.dumps(list(training.good)),
            model=training.model.absolute(),
            hosts=json.dumps(list(chosen)),
            delay_s=delay_s,
        )
    )
    return topic


def crawl_alone(topic: Path, web: Path, folder: Path) -> frozenset[str]:
    """Return the pages that one process fetches."""
    command = [sys.executable, "-m", "focused.cli", "crawl", str(topic), "--web", str(web)]
    subprocess.run([*command, "--folder", str(folder)], check=True, capture_output=True)
    return fetched_urls(pd.read_parquet(folder / "pages.parquet"))


def fetched_urls(pages: pd.DataFrame) -> frozenset[str]:
    """Return the URLs of fetched pages."""
    return frozenset(pages[pages.outcome == "fetched"].url)


class Saboteur:
    """Does harm to a cluster at random times."""

    def __init__(self, cluster: LocalCluster, chance: random.Random, workers: int) -> None:
        self.faults: Counter[str] = Counter()
        self.in_flight_at_kills = 0
        self._cluster = cluster
        self._chance = chance
        self._suspended: dict[str, float] = {}
        self._repair_at = float("inf")
        self._started = 0
        self._workers = workers
        for _ in range(workers):
            self._start()

    def act(self, now: float) -> float:
        """Do harm, and repair what is due; return when to act again."""
        for name, until in list(self._suspended.items()):
            if now >= until:
                self._cluster.signal(name, signal.SIGCONT)
                del self._suspended[name]
        if now >= self._repair_at:
            self._cluster.redis.restart_killed()
            self._repair_at = float("inf")
        fault = self._chance.choice(("kill", "suspend", "cut", "master"))
        if fault == "master" and self._repair_at < float("inf"):
            fault = "kill"  # a second master at once would take its data with it
        getattr(self, f"_{fault}")(now)
        self.faults[fault] += 1
        for name, worker in list(self._cluster.workers.items()):
            if worker.poll() is not None and worker.returncode != 0:
                raise RuntimeError(f"{name} failed; see {self._cluster.folder / name}.log")
        while len(self._cluster.workers) < self._workers:
            self._start()
        return now + self._chance.uniform(3.0, 12.0)

    def end(self) -> None:
        """Let all workers go on."""
        for name in self._suspended:
            self._cluster.signal(name, signal.SIGCONT)
        self._cluster.redis.restart_killed()

    def _start(self) -> None:
        self._started += 1
        self._cluster.start(f"worker-{self._started}")

    def _kill(self, now: float) -> None:
        name = self._any_worker()
        self._suspended.pop(name, None)
        self.in_flight_at_kills += self._in_flight(name)
        self._cluster.signal(name, signal.SIGKILL)

    def _suspend(self, now: float) -> None:
        name = self._any_worker()
        if name not in self._suspended:
            self.in_flight_at_kills += self._in_flight(name)
            self._cluster.signal(name, signal.SIGSTOP)
            self._suspended[name] = now + self._chance.uniform(1.0, MAX_SUSPENDED_S)

    def _cut(self, now: float) -> None:
        self._cluster.cut_connections()

    def _master(self, now: float) -> None:
        self._cluster.redis.kill_master(self._chance.randrange(3))
        self._repair_at = now + 10.0

    def _any_worker(self) -> str:
        return self._chance.choice(sorted(self._cluster.workers))

    def _in_flight(self, name: str) -> int:
        try:
            statuses = self._cluster.coordinator.statuses().values()
        except FocusedError:
            return 0
        return sum(each.in_flight for each in statuses if each.worker == name)


def crawl_under_faults(
    topic: Path,
    web: Path,
    folder: Path,
    expected: frozenset[str],
    *,
    workers: int,
    delay_s: float,
    seed: int,
    max_faults: int | None = None,
) -> Findings:
    """Crawl once; a fault every 3 to 12 seconds, at most ``max_faults``."""
    began_at = time.monotonic()
    with LocalCluster(topic, web, folder) as cluster:
        saboteur = Saboteur(cluster, random.Random(seed), workers)
        act_at = time.monotonic() + 10.0
        while not _has_ended(cluster):
            now = time.monotonic()
            if now >= act_at and max_faults == saboteur.faults.total():
                saboteur.end()
                act_at = float("inf")
            elif now >= act_at:
                act_at = saboteur.act(now)
            time.sleep(0.2)
        saboteur.end()
        cluster.wait(cluster.has_ended, 120.0, "the end of all workers")
    parts = folder / "shared" / cluster.name
    pages = pd.read_parquet(parts / "pages")
    fetched = pages[pages.outcome == "fetched"]
    requests = read_requests(cluster.access_log)
    overlapping, too_soon, shortest_s = check_delays(requests, delay_s)
    asked = Counter(
        (each["host"], each["path"]) for each in requests if each["path"] != "/robots.txt"
    )
    return Findings(
        pages=len(fetched),
        missing=sorted(expected - fetched_urls(pages)),
        archived_twice=sorted(fetched.url[fetched.url.duplicated()]),
        requested_again=sum(count - 1 for count in asked.values()),
        in_flight_at_kills=saboteur.in_flight_at_kills,
        overlapping=overlapping,
        too_soon=too_soon,
        shortest_pause_s=shortest_s,
        faults=dict(saboteur.faults),
        seconds=time.monotonic() - began_at,
    )


def _has_ended(cluster: LocalCluster) -> bool:
    try:
        return cluster.coordinator.command().state is ClusterState.ENDED
    except FocusedError:  # no master at the moment
        return False


def read_requests(path: Path) -> list[dict[str, object]]:
    """Return the requests of an access log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_delays(requests: list[dict[str, object]], delay_s: float) -> tuple[int, int, float]:
    """Return how many requests to a host overlapped, came too soon, and the shortest pause."""
    by_host: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for each in requests:
        by_host[each["host"]].append((float(str(each["start"])), float(str(each["end"]))))
    overlapping = too_soon = 0
    shortest_s = float("inf")
    for times in by_host.values():
        times.sort()
        for (_, end), (start, _) in itertools.pairwise(times):
            overlapping += start < end
            too_soon += start - end < delay_s - _CLOCK_TOLERANCE_S
            shortest_s = min(shortest_s, start - end)
    return overlapping, too_soon, shortest_s


def main() -> None:
    """Examine until the time is over; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--folder", type=Path, default=Path("build/cluster-faults"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--delay-s", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    topic = write_topic(options.topic, options.web, options.folder, range(20, 151), options.delay_s)
    expected = crawl_alone(topic, options.web, options.folder / "alone")
    print(f"{len(expected)} pages by one process")
    give_up_at, seed, good = time.monotonic() + options.minutes * 60.0, options.seed, True
    while time.monotonic() < give_up_at:
        folder = options.folder / f"run-{seed}"
        findings = crawl_under_faults(
            topic,
            options.web,
            folder,
            expected,
            workers=options.workers,
            delay_s=options.delay_s,
            seed=seed,
        )
        print(f"seed {seed}: {'good' if findings.is_good else 'WRONG'}: {findings}", flush=True)
        good, seed = good and findings.is_good, seed + 1
    sys.exit(not good)


if __name__ == "__main__":
    main()
