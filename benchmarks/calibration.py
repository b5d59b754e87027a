"""Calibration of relevances and link scores on crawls of recorded webs, by labels.

``python benchmarks/calibration.py`` crawls the topics of the main benchmark with ``focused`` from
seeds on and off topic, and compares what the pages' labels say with their relevance: as the
classifier gives it, with an online prior correction (Saerens, Latinne, Decaestecker 2002,
"Adjusting the outputs of a classifier to new a priori probabilities"), each page corrected by the
prior that the pages before it give, and tempered, as the crawl stores it. The same for the scores
of links, before and after their online recalibration. Of several webs, those "left out" are
calibrated with the temperature and pivot that have the least log loss on the others. Pages without
a label, samples, seeds and duplicates are left out. Missing webs are built. The table goes into
``benchmarks/results/calibration/``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from focused.link_scoring.protocols import ScoreCalibrator
from focused.link_scoring.recalibration import ScoreRecalibration
from focused.orderings import PolicyInputs, find_policy
from focused.reports.reliability import calibration_error, count_bins, mean_brier_score
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, run_seed, simulate_trial
from focused_lab.trials import OFF_TOPIC, ON_TOPIC, plan_trials

ANCHOR_PAGES = 100
"""The prior of the samples weighs as much as so many pages."""

TEMPERATURES = np.arange(1.2, 2.41, 0.1)
PIVOTS = np.arange(-2.5, 0.51, 0.25)
"""The grid on which temperature and pivot are fitted."""

MAX_LOG_ODDS = 12.0

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LoggedPages:
    """The pages of one run that the apprentice learned from, in order, shape (n,).

    ``prior`` is the classifier's. ``uncalibrated`` are the links' scores before the recalibration,
    ``untempered`` the relevances before tempering. ``truth`` by labels is NaN for pages without.
    """

    prior: float
    uncalibrated: FloatArray
    score: FloatArray
    untempered: FloatArray
    relevance: FloatArray
    truth: FloatArray

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which pages have a label."""
        return ~np.isnan(self.truth)


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
    runs = {}
    for part in PARTS:
        if part.web.name not in options.webs.split(","):
            continue
        build(part)
        settings = ExperimentSettings(options.budget, options.repeat)
        runs[part.web.name] = list(log_runs(part.web, part.topics[: options.topics], settings))
    table = pd.DataFrame([{"web": web, **errors_of(web, runs)} for web in runs])
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "calibration.csv", index=False)
    (options.out / "calibration.md").write_text(markdown(table.round(3)) + "\n", encoding="utf-8")
    print(table.round(3).to_string(index=False))
    if len(runs) > 1:
        print("of all webs: temperature {:.1f}, pivot {:.2f}".format(*fit_tempering(runs.values())))
    return 0


def log_runs(
    folder: Path, names: Sequence[str], settings: ExperimentSettings
) -> Iterator[LoggedPages]:
    """Yield the runs of all topics on one web."""
    files = [Path(f"topics/{name}.toml") for name in names]
    with plan_trials(folder, files, settings, seeds=(ON_TOPIC, OFF_TOPIC)) as planned:
        for trial in planned.trials:
            context = planned.contexts.for_trial(trial)
            model = load_model(context.prepared_topic.topic.training.model)
            pages = _log_pages(context, trial, settings)
            yield replace(pages, prior=model.classifier.calibration.prior)


def _log_pages(context: WebContext, trial: Trial, settings: ExperimentSettings) -> LoggedPages:
    rows: list[tuple[float, ...]] = []
    apprentice = context.apprentice()
    assert isinstance(apprentice, ScoreCalibrator), "the policy's scorer is the apprentice"
    calibrate = apprentice.calibrate_scores
    uncalibrated = 0.0

    def note_score(scores: FloatArray) -> FloatArray:
        nonlocal uncalibrated
        uncalibrated = scores[-1].item() if len(scores) else uncalibrated
        return calibrate(scores)

    def note(settled: SettledFetch) -> None:
        classification, link = settled.classification, settled.link
        counts = settled.outcome == "fetched" and settled.duplicate_of is None and link.features
        if classification is None or not classification.known or not counts:
            return
        truth = context.ground_truth.known_relevance(link.url)
        relevances = classification.guiding_relevance, classification.relevance
        label = math.nan if truth is None else float(truth)
        rows.append((uncalibrated, link.score, *relevances, label))

    # The crawl calibrates the score of a link when it settles it.
    apprentice.calibrate_scores = note_score  # type: ignore[method-assign]  # the point of it
    seed = run_seed(settings, trial)
    inputs = PolicyInputs(context.classifier, apprentice, seed)
    policy = find_policy(trial.policy)(inputs)
    simulate_trial(context, trial, policy=policy, seed=seed, watch=note)
    return LoggedPages(0.0, *np.array(rows, dtype=np.float64).reshape(-1, 5).T)


def corrected_by_prior(pages: LoggedPages, bound: float) -> FloatArray:
    """Return the relevances with a prior correction of at most ``bound`` nats, shape (n,).

    The prior is the mean of the corrected relevances so far, anchored at the classifier's.
    """
    total, count = ANCHOR_PAGES * pages.prior, float(ANCHOR_PAGES)
    corrected = np.empty_like(pages.untempered)
    for place, relevance in enumerate(pages.untempered.tolist()):
        shift = logit(total / count) - logit(pages.prior)
        log_odds = logit(relevance) + min(max(shift, -bound), bound)
        corrected[place] = float(expit(np.array(log_odds)))
        total, count = total + corrected[place], count + 1.0
    return corrected


def tempered(relevance: FloatArray, temperature: float, pivot: float) -> FloatArray:
    """Return relevances with their log-odds nearer to the pivot."""
    return expit(pivot + (log_odds_of(relevance) - pivot) / temperature)


def recalibrated(pages: LoggedPages, temperature: float, pivot: float) -> FloatArray:
    """Return the links' scores as the crawl would calibrate them with that tempering."""
    recalibration = ScoreRecalibration()
    scores = np.empty_like(pages.uncalibrated)
    targets = tempered(pages.untempered, temperature, pivot).tolist()
    forecasts = log_odds_of(pages.uncalibrated).tolist()
    for place, (forecast, target) in enumerate(zip(forecasts, targets, strict=True)):
        scores[place] = recalibration.apply(pages.uncalibrated[place : place + 1]).item()
        recalibration.learn(forecast, target)
    return scores


def log_odds_of(probability: FloatArray) -> FloatArray:
    """Return log-odds, bounded like those of links."""
    with np.errstate(divide="ignore"):
        log_odds: FloatArray = np.log(probability) - np.log1p(-probability)
    return np.minimum(np.maximum(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)


def fit_tempering(webs: Iterable[Sequence[LoggedPages]]) -> tuple[float, float]:
    """Return temperature and pivot of the least log loss, each web with the same weight."""
    webs = list(webs)
    losses = {
        (float(temperature), float(pivot)): sum(
            _log_loss(runs, temperature, pivot) for runs in webs
        )
        for temperature in TEMPERATURES
        for pivot in PIVOTS
    }
    return min(losses, key=lambda each: losses[each])


def _log_loss(runs: Sequence[LoggedPages], temperature: float, pivot: float) -> float:
    relevance = np.concatenate([run.untempered[run.labelled] for run in runs])
    truth = np.concatenate([run.truth[run.labelled] for run in runs])
    predicted = tempered(relevance, temperature, pivot)
    return -float(np.mean(np.where(truth == 1.0, np.log(predicted), np.log1p(-predicted))))


def errors_of(web: str, of_webs: Mapping[str, Sequence[LoggedPages]]) -> dict[str, float]:
    """Calibration errors and Brier scores over the labelled pages of all runs on one web."""
    runs = of_webs[web]
    predicted = {
        "untempered": [run.untempered for run in runs],
        "prior correction": [corrected_by_prior(run, math.inf) for run in runs],
        "within 1 nat": [corrected_by_prior(run, 1.0) for run in runs],
        "relevance": [run.relevance for run in runs],
        "uncalibrated links": [run.uncalibrated for run in runs],
        "links": [run.score for run in runs],
    }
    tempering = {}
    if len(of_webs) > 1:
        found = fit_tempering(other for name, other in of_webs.items() if name != web)
        tempering = dict(zip(("temperature, left out", "pivot, left out"), found, strict=True))
        predicted["relevance, left out"] = [tempered(run.untempered, *found) for run in runs]
        predicted["links, left out"] = [recalibrated(run, *found) for run in runs]
    truth = np.concatenate([run.truth[run.labelled] for run in runs]) == 1.0
    bins = {
        name: count_bins(
            np.concatenate([each[run.labelled] for run, each in zip(runs, values, strict=True)]),
            truth,
        )
        for name, values in predicted.items()
    }
    return (
        {"runs": len(runs), "pages": len(truth), "on topic": float(truth.mean())}
        | tempering
        | {name: calibration_error(counts) for name, counts in bins.items()}
        | {f"Brier, {name}": mean_brier_score(counts) for name, counts in bins.items()}
    )


if __name__ == "__main__":
    sys.exit(main())
