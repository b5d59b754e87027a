"""How much faster several processes crawl than one, in rounds.

    python benchmarks/rounds.py --processes 1,2,4 --latency-s 0.5
    python benchmarks/rounds.py --processes 1,2 --latency-s 0

All hosts of a recorded web are crawled for some seconds, from a seed on each. Pages are counted in
the access log of the web's server, after the start; CPU time is that of the crawl with all its
processes. Each line is the median of several turns, in which the numbers of processes alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from focused.topic.topic_file import load_topic
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.recorded_web.replay_process import ReplayProcess

_TOPIC = """
name = "rounds"
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
user_agent = "FocusedRounds/0.1 (+https://example.org/rounds)"
delay_s = {delay_s}
patience = 0
suspend_s = 0
"""
_MIN_PAGES = 20
_WARM_UP_S = 10.0
"""From the first request on: each host's robots.txt, and links that reach their processes."""
_WAITED = re.compile(r"([\d.]+) s and ([\d.]+) s between rounds")


@dataclass(frozen=True)
class Speed:
    """Pages per second, CPU milliseconds per page, and the share of time between rounds."""

    pages_per_s: float
    cpu_ms: float
    between: float


def measure(
    topic: Path, web: Path, folder: Path, processes: int, options: argparse.Namespace
) -> Speed:
    """Crawl for some seconds."""
    folder.mkdir(parents=True)
    access_log = folder / "access.log"
    faults = FaultPlan(
        (parse_fault(f"*:kind=latency,latency_s={options.latency_s}"),) if options.latency_s else ()
    )
    command = [sys.executable, "-m", "focused.cli", "crawl", str(topic)]
    command += ["--folder", str(folder / "crawl"), "--concurrency", str(options.concurrency)]
    command += ["-s", "FOCUSED_PARSER_PROCESSES=0"]
    if processes > 1:
        command += ["--processes", str(processes), "--round-s", str(options.round_s)]
    with ReplayProcess(web, access_log=access_log, faults=faults) as replay:
        command += ["-s", f"FOCUSED_REPLAY={replay.address}"]
        with (folder / "output.log").open("wb") as log:
            crawl = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            crawl.wait(options.seconds + 2 * _WARM_UP_S)
        except subprocess.TimeoutExpired:
            crawl.send_signal(signal.SIGTERM)
        _, _, used = os.wait4(crawl.pid, 0)
    requests = [json.loads(line) for line in access_log.read_text().splitlines()]
    pages = sorted(
        float(each["start"])
        for each in requests
        if each["status"] == 200 and each["path"] != "/robots.txt"
    )
    begun = pages[0] + _WARM_UP_S
    counted = [at for at in pages if begun <= at < begun + options.seconds]
    rounds = [
        tuple(map(float, each)) for each in _WAITED.findall((folder / "output.log").read_text())
    ]
    ran, waited = (sum(each) for each in zip(*rounds, strict=True)) if rounds else (1.0, 0.0)
    return Speed(
        len(counted) / options.seconds,
        1_000 * (used.ru_utime + used.ru_stime) / len(pages),
        waited / (ran + waited),
    )


def write_topic(base: Path, web: Path, folder: Path, delay_s: float) -> Path:
    """Write the topic: all hosts of the web that are not small, and one seed on each."""
    training = load_topic(base).training
    recorded = RecordedWeb.open(web)
    by_host: dict[str, list[str]] = defaultdict(list)
    for url in recorded.page_urls:
        by_host[host_of(url)].append(url)
    recorded.close()
    chosen = {host: urls for host, urls in by_host.items() if len(urls) >= _MIN_PAGES}
    topic = folder / "rounds.toml"
    topic.write_text(
        _TOPIC.format(
            seeds=json.dumps([min(urls, key=len) for urls in chosen.values()]),
            directory=json.dumps([str(path.absolute()) for path in training.directory]),
            good=json.dumps(list(training.good)),
            model=training.model.absolute(),
            hosts=json.dumps(list(chosen)),
            delay_s=delay_s,
        )
    )
    return topic


def print_table(speeds: dict[int, list[Speed]]) -> None:
    """Print medians; the factors are medians of the turns' own factors."""
    print("processes | pages/s | factor | CPU ms/page | between rounds")
    first = next(iter(speeds))
    for processes, measured in speeds.items():
        factors = [
            each.pages_per_s / one.pages_per_s
            for each, one in zip(measured, speeds[first], strict=True)
        ]
        print(
            f"{processes} | {_median([each.pages_per_s for each in measured]):.1f} | "
            f"{_median(factors):.2f} | {_median([each.cpu_ms for each in measured]):.1f} | "
            f"{_median([each.between for each in measured]):.1%}"
        )


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--folder", type=Path, default=Path("build/rounds"))
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--latency-s", type=float, default=0.5)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--delay-s", type=float, default=0.0)
    parser.add_argument("--round-s", type=float, default=30.0)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    topic = write_topic(options.topic, options.web, options.folder, options.delay_s)
    numbers = [int(number) for number in options.processes.split(",")]
    speeds: dict[int, list[Speed]] = {number: [] for number in numbers}
    for turn in range(options.turns):
        for processes in numbers:
            folder = options.folder / f"{turn}-{processes}"
            speeds[processes].append(measure(topic, options.web, folder, processes, options))
            print(f"turn {turn}: {processes} processes: {speeds[processes][-1]}", flush=True)
    print_table(speeds)


if __name__ == "__main__":
    main()
