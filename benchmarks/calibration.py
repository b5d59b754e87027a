"""Calibration of relevances and link scores on crawls of recorded webs, by labels.

``python benchmarks/calibration.py`` crawls the topics of the main benchmark with ``focused`` from
seeds on and off topic, and compares what the pages' labels say with their relevance: as the crawl
stores it, with an online prior correction (Saerens, Latinne, Decaestecker 2002, "Adjusting the
outputs of a classifier to new a priori probabilities"), each page corrected by the prior that the
pages before it give, and with log-odds divided by a temperature (Guo, Pleiss, Sun, Weinberger 2017,
"On calibration of modern neural networks"). The last column is of the links' scores. Pages without
a label, samples, seeds and duplicates are left out. Missing webs are built. The table goes into
``benchmarks/results/calibration/``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from estimator_harvest import markdown
from harvest import PARTS, ROOT, build
from numpy.typing import NDArray

from focused.classifier.calibration import expit, logit
from focused.classifier.model_file import load_model
from focused.crawl import SettledFetch
from focused.experiments.analysis.comparison_runs import ExperimentSettings
from focused.experiments.experiment_plan import (
    PreparedTopic,
    RequestedRuns,
    Trial,
    parse_seed_set,
    plan_experiment,
)
from focused.experiments.runner import WebContext, WebContextCache, topic_for_run
from focused.experiments.simulation.simulator import hashed_latency, simulate
from focused.experiments.web_sources import ExperimentWeb
from focused.orderings import PolicyInputs, find_policy
from focused.reports.reliability import calibration_error, count_bins, mean_brier_score
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.topic.topic_file import load_topic

SEEDS = ("on-topic:5", "off-topic:5")
ANCHOR_PAGES = 100
"""The prior of the samples weighs as much as so many pages."""

TEMPERATURE, PIVOT_LOG_ODDS = 1.5, -0.75
"""Log-odds keep their distance from the pivot, a typical threshold, divided by the temperature."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LoggedPages:
    """The pages of one run in order, shape (n,): what was predicted, and the truth by labels.

    ``prior`` is the classifier's.
    """

    prior: float
    score: FloatArray
    relevance: FloatArray
    is_relevant: NDArray[np.bool_]


def main() -> int:
    """Crawl, write and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default=",".join(part.web.name for part in PARTS))
    parser.add_argument("--budget", default="500", help="pages per run (default: 500)")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--topics", type=int, help="only the first topics of each web")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/calibration"))
    options = parser.parse_args()
    os.chdir(ROOT)
    rows = []
    for part in PARTS:
        if part.web.name not in options.webs.split(","):
            continue
        if status := build(part):
            return status
        settings = ExperimentSettings(options.budget, options.repeat)
        runs = list(log_runs(part.web, part.topics[: options.topics], settings))
        rows.append({"web": part.web.name, "runs": len(runs), **errors_of(runs)})
    table = pd.DataFrame(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "calibration.csv", index=False)
    (options.out / "calibration.md").write_text(markdown(table.round(3)) + "\n", encoding="utf-8")
    print(table.round(3).to_string(index=False))
    return 0


def log_runs(
    folder: Path, names: Sequence[str], settings: ExperimentSettings
) -> Iterator[LoggedPages]:
    """Yield the runs of all topics on one web."""
    web = ExperimentWeb(folder.name, folder)
    topics = [load_topic(Path(f"topics/{name}.toml")) for name in names]
    prepared, priors = {}, {}
    for topic in topics:
        models = load_crawl_models(topic, web=str(folder), replay=None, say=print)
        prepared[topic.name] = PreparedTopic(
            topic, models.classifier, models.scorer, models.training_urls
        )
        priors[topic.name] = load_model(topic.training.model).classifier.calibration.prior
    seeds = [parse_seed_set(each) for each in SEEDS]
    requested = RequestedRuns(("focused",), seeds, (None,), settings)
    contexts = WebContextCache({web.name: web}, prepared)
    try:
        for trial in plan_experiment([web], topics, prepared, requested, print).trials:
            pages = _log_pages(contexts.for_trial(trial), trial, settings)
            yield replace(pages, prior=priors[trial.topic])
    finally:
        contexts.close()


def _log_pages(context: WebContext, trial: Trial, settings: ExperimentSettings) -> LoggedPages:
    rows: list[tuple[float, float, bool]] = []

    def note(settled: SettledFetch) -> None:
        classification, link = settled.classification, settled.link
        truth = context.ground_truth.known_relevance(link.url)
        counts = settled.outcome == "fetched" and settled.duplicate_of is None and link.features
        if truth is None or classification is None or not classification.known or not counts:
            return
        rows.append((link.score, classification.relevance, truth))

    inputs = PolicyInputs(context.classifier, context.apprentice(), trial.repeat, lambda policy: ())
    simulate(
        topic_for_run(context.prepared_topic.topic, trial),
        context.classifier,
        context.network,
        find_policy(trial.policy)(inputs),
        latency=hashed_latency(settings.latency_s, settings.seed * 1_000_003 + trial.repeat),
        training_urls=context.ground_truth.training_urls,
        seeds=trial.start,
        pages=trial.budget,
        watch=note,
    )
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return LoggedPages(0.0, columns[0], columns[1], columns[2].astype(bool))


def corrected_by_prior(pages: LoggedPages, bound: float) -> FloatArray:
    """Return the relevances with a prior correction of at most ``bound`` nats, shape (n,).

    The prior is the mean of the corrected relevances so far, anchored at the classifier's.
    """
    total, count = ANCHOR_PAGES * pages.prior, float(ANCHOR_PAGES)
    corrected = np.empty_like(pages.relevance)
    for place, relevance in enumerate(pages.relevance.tolist()):
        shift = logit(total / count) - logit(pages.prior)
        log_odds = logit(relevance) + min(max(shift, -bound), bound)
        corrected[place] = float(expit(np.array(log_odds)))
        total, count = total + corrected[place], count + 1.0
    return corrected


def tempered(relevance: FloatArray) -> FloatArray:
    """Return the relevances nearer to a typical threshold."""
    log_odds = np.log(relevance / (1.0 - relevance))
    return expit(PIVOT_LOG_ODDS + (log_odds - PIVOT_LOG_ODDS) / TEMPERATURE)


def errors_of(runs: Sequence[LoggedPages]) -> dict[str, float]:
    """Calibration errors and Brier scores over the pages of all runs."""
    truth = np.concatenate([run.is_relevant for run in runs])
    predicted = {
        "as stored": [run.relevance for run in runs],
        "prior correction": [corrected_by_prior(run, math.inf) for run in runs],
        "within 1 nat": [corrected_by_prior(run, 1.0) for run in runs],
        "tempered": [tempered(run.relevance) for run in runs],
        "link scores": [run.score for run in runs],
    }
    bins = {name: count_bins(np.concatenate(each), truth) for name, each in predicted.items()}
    return (
        {"pages": len(truth), "on topic": float(truth.mean())}
        | {name: calibration_error(counts) for name, counts in bins.items()}
        | {f"Brier, {name}": mean_brier_score(counts) for name, counts in bins.items()}
    )


if __name__ == "__main__":
    sys.exit(main())
