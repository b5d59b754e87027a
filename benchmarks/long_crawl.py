"""Cost of a page as a crawl grows: the real crawl on up to a million pages of a generated web.

    taskset -c 1 python benchmarks/long_crawl.py --pages 1000000

Crawl loop, frontier on disk with its journal, focused policy with classifier and apprentice,
parser, duplicates, traps, mirrors, robots.txt, archive with WARC: all as in a live crawl. Only the
network is simulated, and the clock: answers take 0.2 s on average, and the state is synced to disk
every so many pages, as a live crawl does every second. One process, one core. Generating the web is
not counted.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from long_meter import HEAD, Meter, Window, flatness, line, sentence
from long_web import LongWeb
from machine import anonymous_mb, machine

from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.crawl import Crawl, SettledFetch, Step, build_crawl
from focused.crawl.crawl_stats import StageTimes
from focused.files import write_json_atomically
from focused.orderings import PolicyInputs, find_policy
from focused.storage.state_store import StateStore
from focused.topic import Budget, Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Fetched, Outcome
from focused_lab.experiment_plan import PreparedTopic
from focused_lab.run_measures import reset_peak
from focused_lab.simulation.simulator import CrawlDriver, hashed_latency
from focused_lab.trials import prepare_topic

_CONCURRENCY = 64
_LATENCY_S = 0.2
_PAGES_PER_SYNC = 500
_SEEDS = 20


class MeteredCrawl:
    """A crawl whose steps are timed by stage."""

    def __init__(self, crawl: Crawl, meter: Meter) -> None:
        self.settled = 0
        self._crawl = crawl
        self._meter = meter

    def next(self, now: float) -> Step:
        """Return what to do next."""
        return self._meter.spent(partial(self._crawl.next, now))

    def settle(self, lease_id: int, outcome: Outcome, now: float) -> SettledFetch | None:
        """Settle a fetch."""
        self.settled += 1
        if isinstance(outcome, Fetched):
            outcome = replace(outcome, received_at=now)
        return self._meter.spent(partial(self._crawl.settle, lease_id, outcome, now))


def drive(
    crawl: Crawl,
    web: LongWeb,
    concurrency: int,
    meter: Meter,
    pages: int,
    watch: Callable[[Window], object],
) -> tuple[str, float]:
    """Crawl until the number of pages is reached; return why it ended, and the time."""
    metered = MeteredCrawl(crawl, meter)
    driver = CrawlDriver(metered, web, hashed_latency(_LATENCY_S, 0), concurrency)
    while crawl.counters.fetched < pages:
        if (done := driver.step()) is not None:
            return done.reason, driver.now
        if metered.settled >= _PAGES_PER_SYNC:
            meter.synced(crawl.sync)
            metered.settled = 0
        if (window := meter.look()) is not None:
            watch(window)
    return "the number of pages was reached", driver.now


def main(arguments: Sequence[str]) -> None:
    """Crawl; print a line per window, store JSON of all so far, and print the conclusion."""
    options = _options(arguments)
    topic = replace(load_topic(options.topic), budget=Budget())
    output = replace(topic.output, folder=options.folder, parquet=False)
    politeness = replace(topic.politeness, concurrency=_CONCURRENCY)
    # All pages are made of the same words: sites would be closed for it.
    scope = replace(topic.scope, spam="report")
    topic = replace(topic, output=output, politeness=politeness, scope=scope)
    prepared = prepare_topic(topic, options.web)
    web = LongWeb(_model_of(prepared))
    shutil.rmtree(options.folder, ignore_errors=True)
    gc.collect()
    gc.freeze()  # as the live crawl does
    reset_peak()
    before_mb = anonymous_mb()
    print(f"before the crawl: {before_mb:.0f} MB")
    windows: list[Window] = []
    options.out.mkdir(parents=True, exist_ok=True)

    def report(window: Window) -> None:
        print(line(window), flush=True)
        windows.append(window)
        figures = {
            "machine": machine(),
            "pages": options.pages,
            "warm_up": options.warm_up,
            "before_mb": before_mb,
            "flatness": flatness(windows, options.warm_up),
            "windows": [{**asdict(each), "cpu_us": each.cpu_us} for each in windows],
        }
        write_json_atomically(options.out / "long-crawl.json", figures)

    print(f"it ended: {_crawl(topic, prepared, web, options, report)}")
    print(sentence(flatness(windows, options.warm_up), windows, before_mb))


def _crawl(
    topic: Topic,
    prepared: PreparedTopic,
    web: LongWeb,
    options: argparse.Namespace,
    watch: Callable[[Window], object],
) -> str:
    """Crawl to the end; return why it ended."""
    policy = find_policy("focused")(PolicyInputs(prepared.classifier, prepared.apprentice))
    identity = {"topic": topic.name, "policy": policy.name}
    store = StateStore.open(options.folder / "state", identity)
    stages = StageTimes(time.process_time)
    crawl = build_crawl(
        topic, prepared.classifier, policy, store, training_urls=prepared.sample_urls, stages=stages
    )
    model = _model_of(prepared)
    seeds = web.seeds(model.taxonomy.good.index(True), _SEEDS)
    page = web.answer(seeds[0], 0.0, _LATENCY_S)
    assert isinstance(page, Fetched)
    print(HEAD)
    with Meter(crawl, stages, options.folder, options.window, page) as meter:
        crawl.seed(seeds, 0.0)
        ended, now = drive(crawl, web, _CONCURRENCY, meter, options.pages, watch)
    crawl.close(now)
    return ended


def _model_of(prepared: PreparedTopic) -> LinearTopicClassifier:
    model = getattr(prepared.classifier, "current", prepared.classifier)
    assert isinstance(model, LinearTopicClassifier), "the web is made of a topic classifier's words"
    return model


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--window", type=int, default=10_000, help="pages a line")
    parser.add_argument("--warm-up", type=int, default=10_000, help="pages not compared")
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument(
        "--web", type=Path, help="recorded web to train from, where there is no model"
    )
    parser.add_argument("--folder", type=Path, default=Path("crawls/long"), help="is made anew")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/long-crawl"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
