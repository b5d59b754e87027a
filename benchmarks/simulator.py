"""Speed of the simulator: pages per second on a recorded web, per policy.

    python benchmarks/simulator.py WEB --topic TOPIC.toml [--pages N] [--json FILE]

Each policy runs twice, with a cold and a warm cache of parsed pages, classifying every page; then
twice more with cached classifications, as experiments do. One process, one core.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from focused.files import write_json_atomically
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import CrawlModels, load_crawl_models
from focused.topic import Budget, Topic
from focused.topic.topic_file import load_topic
from focused_lab.runner import CachingClassifier, SharedCpuTime
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import hashed_latency, simulate

_LATENCY_S = 0.2


@dataclass(frozen=True, slots=True)
class Lap:
    """One simulated crawl.

    Rates are per second of the clock; ``fetched_per_cpu_s`` is per CPU second, which a busy machine
    disturbs less. ``settled`` counts all URLs that were requested or given up, including those that
    the web lacks. ``peak_mb`` is the process's peak so far, in MiB.
    """

    policy: str
    remembered: bool
    lap: int
    fetched: int
    settled: int
    wall_s: float
    cpu_s: float
    fetched_per_cpu_s: float
    fetched_per_s: float
    settled_per_s: float
    peak_mb: int


def main(arguments: Sequence[str]) -> None:
    """Run, print a line per lap, write JSON if requested."""
    options = _options(arguments)
    topic = replace(load_topic(options.topic), budget=Budget())
    off: dict[str, Any] = dict.fromkeys(options.without, False)
    topic = replace(topic, scope=replace(topic.scope, **off))
    guide = load_crawl_models(topic, web=str(options.web), replay=None, say=print)
    began = time.perf_counter()
    web = RecordedWeb.open(options.web)
    opened = time.perf_counter()
    with ParsedWeb(web) as network:
        cached = time.perf_counter()
        opening = {"web_s": opened - began, "cache_s": cached - opened}
        print(f"opened the web in {opening['web_s']:.2f} s, the cache in {opening['cache_s']:.3f}")
        laps = _laps(topic, guide, network, options.policies.split(","), options.pages)
    if options.json:
        whole = {"pages": options.pages, **opening, "laps": [asdict(lap) for lap in laps]}
        write_json_atomically(options.json, whole)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("web", type=Path, help="folder of a recorded web")
    parser.add_argument("--topic", type=Path, required=True, help="topic file")
    parser.add_argument("--pages", type=int, default=2000, help="pages that count, per run")
    parser.add_argument("--policies", default="bfs,focused", help="names, with commas between")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["traps", "near_duplicates"],
        help="switch a scope.* setting off, to see what it costs",
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    return parser.parse_args(arguments)


def _laps(
    topic: Topic, guide: CrawlModels, network: ParsedWeb, policies: Sequence[str], pages: int
) -> list[Lap]:
    print(f"{'':<28}fetched/s  of CPU  settled/s  peak MiB")
    laps = []
    for classifier, remembered in (
        (guide.classifier, False),
        (CachingClassifier(guide.classifier, SharedCpuTime()), True),
    ):
        for name in policies:
            for number in (1, 2):
                lap = _lap(topic, replace(guide, classifier=classifier), network, name, pages)
                lap = replace(lap, remembered=remembered, lap=number)
                laps.append(lap)
                judging = "remembered" if remembered else "each page"
                print(
                    f"{name:<14}{judging:<11}{number:>2}"
                    f"{lap.fetched_per_s:>10,.0f}{lap.fetched_per_cpu_s:>8,.0f}"
                    f"{lap.settled_per_s:>11,.0f}{lap.peak_mb:>10,}",
                    flush=True,
                )
    return laps


def _lap(topic: Topic, guide: CrawlModels, network: ParsedWeb, name: str, pages: int) -> Lap:
    policy = find_policy(name)(PolicyInputs(guide.classifier, guide.scorer))
    began, cpu_began = time.perf_counter(), time.process_time()
    run = simulate(
        topic,
        guide.classifier,
        network,
        policy,
        latency=hashed_latency(_LATENCY_S, 0),
        training_urls=guide.training_urls,
        pages=pages,
    )
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    fetched, settled = int((run.pages["outcome"] == "fetched").sum()), len(run.pages)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rates = fetched / cpu_s, fetched / wall_s, settled / wall_s
    return Lap(name, False, 1, fetched, settled, wall_s, cpu_s, *rates, peak_mb)


if __name__ == "__main__":
    main(sys.argv[1:])
