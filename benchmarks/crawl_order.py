"""Fetch orders of twelve simulated crawls, to show that a change leaves them alone.

``python benchmarks/crawl_order.py --out FILE`` crawls four recorded webs, three crawls each:
``focused`` from seeds on and off topic, and one ordering that ranks links by the relevance of
pages. It writes a line for each crawl with the number of requests and a digest of their URLs in
order. ``--compare FILE`` exits with status 1 where an order differs from that in the file, which
another checkout wrote with the same models. Missing webs are built.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harvest import PARTS, ROOT, Part, build

from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.orderings import PolicyInputs, find_policy
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import (
    PreparedTopic,
    RequestedRuns,
    Trial,
    parse_seed_set,
    plan_experiment,
)
from focused_lab.runner import WebContext, WebContextCache, topic_for_run
from focused_lab.simulation.simulator import SimulatedRun, hashed_latency, simulate
from focused_lab.web_sources import ExperimentWeb

ON_TOPIC, OFF_TOPIC = "on-topic:5", "off-topic:5"
BY_RELEVANCE = {
    "docweb-medium": "shark",
    "foldoc": "best-first",
    "wordnet": "tag-path",
    "debian": "two-phase",
}
"""The ordering that each web is crawled with besides ``focused``."""


def main() -> int:
    """Crawl, write and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", default="500", help="pages per crawl (default: 500)")
    parser.add_argument("--out", type=Path, help="write the orders into this file")
    parser.add_argument("--compare", type=Path, help="compare with the orders in this file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    options.compare = options.compare and options.compare.resolve()
    os.chdir(ROOT)
    lines = []
    for part in PARTS:
        if status := build(part):
            return status
        for line in crawl_orders(part, ExperimentSettings(options.budget, 1)):
            print(line, flush=True)
            lines.append(line)
    if options.out is not None:
        options.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if options.compare is None:
        return 0
    before = options.compare.read_text(encoding="utf-8").splitlines()
    changed = [f"- {old}\n+ {new}" for old, new in zip(before, lines, strict=True) if old != new]
    print("\n".join(changed) or f"all {len(lines)} orders are the same")
    return 1 if changed else 0


def crawl_orders(part: Part, settings: ExperimentSettings) -> Iterator[str]:
    """Yield a line for each crawl of one web."""
    web = ExperimentWeb(part.web.name, part.web)
    topic = load_topic(Path(f"topics/{part.topics[0]}.toml"))
    models = load_crawl_models(topic, web=str(part.web), replay=None, say=print)
    prepared = {
        topic.name: PreparedTopic(topic, models.classifier, models.scorer, models.training_urls)
    }
    crawls = (
        ("focused", ON_TOPIC),
        ("focused", OFF_TOPIC),
        (BY_RELEVANCE[part.web.name], ON_TOPIC),
    )
    # Planning opens the cache of parsed pages, which a process may open once at a time.
    planned = [
        (policy, seeds, trial)
        for policy, seeds in crawls
        for trial in plan_experiment(
            [web],
            [topic],
            prepared,
            RequestedRuns((policy,), [parse_seed_set(seeds)], (None,), settings),
            print,
        ).trials
    ]
    contexts = WebContextCache({web.name: web}, prepared)
    try:
        for policy, seeds, trial in planned:
            asked = _simulate(contexts.for_trial(trial), trial, settings)
            digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:16]
            yield f"{part.web.name}\t{topic.name}\t{policy}\t{seeds}\t{len(asked)}\t{digest}"
    finally:
        contexts.close()


def _simulate(context: WebContext, trial: Trial, settings: ExperimentSettings) -> Sequence[str]:
    settled: list[SettledFetch] = []

    def crawl(policy: Policy) -> SimulatedRun:
        return simulate(
            topic_for_run(context.prepared_topic.topic, trial),
            context.classifier,
            context.network,
            policy,
            latency=hashed_latency(settings.latency_s, settings.seed * 1_000_003 + trial.repeat),
            training_urls=context.ground_truth.training_urls,
            seeds=trial.start,
            pages=trial.budget,
            watch=settled.append,
        )

    def preliminary_crawl(policy: Policy) -> Sequence[SettledFetch]:
        crawl(policy)
        return settled

    inputs = PolicyInputs(context.classifier, context.apprentice(), trial.repeat, preliminary_crawl)
    return crawl(find_policy(trial.policy)(inputs)).asked


if __name__ == "__main__":
    sys.exit(main())
