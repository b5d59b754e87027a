"""Measure how the speed of a cluster grows with its workers, where hosts are slow.

    python benchmarks/cluster_throughput.py --web webs/docweb-medium

Every answer takes a second, every host has a delay of a second, every worker four requests in
flight at most: so the hosts and not this machine's cores bound the speed. Rounds alternate between
numbers of workers; the table gives medians and ranges of pages a second relative to one worker.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from cluster_faults import read_requests, write_topic
from local_cluster import LocalCluster

from focused.recorded_web.replay_faults import FaultPlan, parse_fault

CONCURRENCY = 4


def pages_per_s(
    topic: Path, web: Path, folder: Path, *, workers: int, latency_s: float, seconds: float
) -> float:
    """Return the pages a second of so many workers, once they own all partitions."""
    faults = FaultPlan((parse_fault(f"*:kind=latency,latency_s={latency_s}"),))
    arguments = ["--concurrency", str(CONCURRENCY)]
    with LocalCluster(
        topic, web, folder, masters=1, replicas=0, arguments=arguments, faults=faults
    ) as cluster:
        for number in range(1, workers + 1):
            cluster.start(f"worker-{number}")

        def is_balanced() -> bool:
            owned = [cluster.partitions_of(name) for name in cluster.workers]
            return sum(owned) == 64 and min(owned) > 0

        cluster.wait(is_balanced, 180.0, "all partitions with an owner")
        time.sleep(20.0)  # each host's robots.txt, and links that reach their partitions
        began_at = time.time()
        time.sleep(seconds)
        ended_at = time.time()
    requests = read_requests(cluster.access_log)
    pages = [
        each
        for each in requests
        if began_at <= float(str(each["time"])) < ended_at
        and each["status"] == 200
        and each["path"] != "/robots.txt"
    ]
    return len(pages) / seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-medium"))
    parser.add_argument("--folder", type=Path, default=Path("build/cluster-throughput"))
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--latency-s", type=float, default=1.0)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    topic = write_topic(options.topic, options.web, options.folder, range(20, 100_000), 1.0)
    numbers = [int(number) for number in options.workers.split(",")]
    speeds: dict[int, list[float]] = {number: [] for number in numbers}
    for turn in range(options.rounds):
        for workers in numbers:
            speed = pages_per_s(
                topic,
                options.web,
                options.folder / f"{workers}-{turn}",
                workers=workers,
                latency_s=options.latency_s,
                seconds=options.seconds,
            )
            speeds[workers].append(speed)
            print(f"round {turn + 1}: {workers} workers, {speed:.2f} pages/s", flush=True)
    for workers, found in speeds.items():
        ratios = [each / first for each, first in zip(found, speeds[numbers[0]], strict=True)]
        share = statistics.median(ratios) / (workers / numbers[0])
        print(
            f"{workers} workers: {statistics.median(found):.1f} pages/s, "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) times one, "
            f"{share:.0%} of linear"
        )


if __name__ == "__main__":
    main()
