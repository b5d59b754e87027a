"""Harvest of a crawl by several processes in rounds, compared with a single crawl.

    python benchmarks/round_harvest.py --web webs/docweb-small --topic topics/security.toml

Simulates crawls of recorded webs by the driver and the partitions of a live crawl, and a single
crawl from the same start: the topic's seeds (or others, ``--seeds``) with other latencies in each
repeat. Prints a line per topic, and the mean over topics. Gain is the harvest rate minus that of
the single crawl, in points, ± the standard deviation over repeats, or over topics.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd

from focused.crawl.policy import Policy
from focused.orderings import PolicyInputs, find_policy
from focused.reports.metrics import harvest_pages, harvest_rate
from focused.topic import Budget
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import Trial
from focused_lab.ground_truth import GroundTruth
from focused_lab.runner import WebContext, topic_for_run
from focused_lab.simulation.rounds_simulator import simulate_rounds
from focused_lab.simulation.simulator import hashed_latency, simulate
from focused_lab.trials import plan_trials


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl; a single one has 0 partitions, and its ``rounds`` and ``sent`` are 0.

    ``harvest`` and ``coverage``, the share of the single crawl's pages, are in [0, 1].
    """

    topic: str
    repeat: int
    partitions: int
    fetched: int
    harvest: float
    coverage: float
    rounds: int
    sent: int
    simulated_s: float


def crawl_topic(options: argparse.Namespace, topic: Path) -> list[Row]:
    """Return the rows of all crawls of a topic."""
    settings = ExperimentSettings(str(options.pages), options.repeat)
    with plan_trials(options.web, [topic], settings, seeds=(options.seeds,)) as planned:
        context = planned.context
        return [row for trial in planned.trials for row in crawl_trial(context, trial, options)]


def crawl_trial(context: WebContext, trial: Trial, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the single crawl and of those by several processes."""
    truth, seed = context.ground_truth, trial.repeat
    topic = topic_for_run(context.prepared_topic.topic, trial)
    topic = replace(topic, budget=Budget(pages=trial.budget))
    if options.delay_s is not None:
        topic = replace(topic, politeness=replace(topic.politeness, delay_s=options.delay_s))
    latency = hashed_latency(options.latency_s, seed)

    def make_policy() -> Policy:
        inputs = PolicyInputs(context.classifier, context.apprentice(), seed)
        return find_policy(trial.policy)(inputs)

    single = simulate(
        topic,
        context.classifier,
        context.network,
        make_policy(),
        latency=latency,
        training_urls=truth.training_urls,
        seeds=trial.start,
    )
    urls = set(fetched_of(single.pages)["url"])

    def row(pages: pd.DataFrame, partitions: int, rounds: int, sent: int, seconds: float) -> Row:
        fetched = fetched_of(pages)
        shared = len(urls & set(fetched["url"])) / max(len(urls), 1)
        harvest = harvest_of_all(truth, fetched)
        return Row(
            trial.topic, seed, partitions, len(fetched), harvest, shared, rounds, sent, seconds
        )

    yield row(single.pages, 0, 0, 0, single.simulated_s)
    for partitions in options.partitions:
        run = simulate_rounds(
            topic,
            context.classifier,
            context.network,
            make_policy,
            partitions,
            latency=latency,
            training_urls=truth.training_urls,
            seeds=trial.start,
        )
        yield row(run.pages, partitions, len(run.rounds), run.sent, run.simulated_s)


def fetched_of(pages: pd.DataFrame) -> pd.DataFrame:
    """Return the pages that were fetched."""
    return pages[pages["outcome"] == "fetched"]


def harvest_of_all(truth: GroundTruth, pages: pd.DataFrame) -> float:
    """Return the harvest rate; each content counts once, whichever partition fetched it first."""
    found: set[int] = set()
    flags = []
    for url in harvest_pages(pages)["url"]:
        recorded = truth.resolve_url(url)
        is_new = False
        if recorded is not None and recorded in truth.relevant:
            content = int(truth.graph.first_duplicate[truth.graph.index[recorded]])
            is_new = content not in found
            found.add(content)
        flags.append(is_new)
    return harvest_rate(flags)


def print_tables(rows: Sequence[Row], partitions: Sequence[int]) -> None:
    """Print a line per topic, and the means of topics."""
    columns = " | ".join(f"{n}: gain, rounds, time" for n in partitions)
    print(f"topic | single | {columns}")
    gains: dict[int, list[float]] = {n: [] for n in partitions}
    for topic in dict.fromkeys(row.topic for row in rows):
        own = [row for row in rows if row.topic == topic]
        single = {row.repeat: row for row in own if not row.partitions}
        cells = [f"{topic} | {fmean(row.harvest for row in single.values()):.1%}"]
        for n in partitions:
            runs = [row for row in own if row.partitions == n]
            differences = [100 * (row.harvest - single[row.repeat].harvest) for row in runs]
            gains[n].append(fmean(differences))
            times = fmean(row.simulated_s / single[row.repeat].simulated_s for row in runs)
            cells.append(
                f"{with_spread(differences)}, {fmean(row.rounds for row in runs):.0f}, {times:.2f}"
            )
        print(" | ".join(cells))
    print("mean | | " + " | ".join(with_spread(gains[n]) for n in partitions))


def with_spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation."""
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):+.1f}{spread}"


def main() -> None:
    """Crawl, print the table, write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--topic", type=Path, action="append", required=True)
    parser.add_argument("--seeds", default="topic", help="as for focused compare")
    parser.add_argument("--partitions", default="4,16")
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency-s", type=float, default=0.2)
    parser.add_argument("--delay-s", type=float, help="instead of the topics' delay")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write all rows as JSON")
    options = parser.parse_args()
    options.partitions = [int(each) for each in options.partitions.split(",")]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(partial(crawl_topic, options), options.topic)
        rows = [row for each in found for row in each]
    if options.out is not None:
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print_tables(rows, options.partitions)


if __name__ == "__main__":
    main()
