"""Calibration of relevances and link scores on crawls of recorded webs, by labels.

``python benchmarks/calibration.py`` crawls the topics of the main benchmark with ``focused`` from
seeds on and off topic, and compares what the pages' labels say with their relevance, as the
classifier gives it (``raw relevance``) and tempered, as the crawl stores it, and with the scores of
links. Pages without a label, samples, seeds and duplicates are left out. Missing webs are built.
Prints expected calibration errors and Brier scores, and writes them into
``benchmarks/results/calibration/``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from harvest import PARTS, ROOT, Part, build, parts_of

from focused.crawl import SettledFetch
from focused.reports.reliability import count_bins, score_errors
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial
from focused_lab.trials import OFF_TOPIC, ON_TOPIC, plan_trials

PREDICTIONS = ("raw relevance", "relevance", "links")


def main() -> int:
    """Crawl, write and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default=",".join(part.web.name for part in PARTS))
    parser.add_argument("--budget", default="500", help="pages per run (default: 500)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/calibration"))
    options = parser.parse_args()
    os.chdir(ROOT)
    table = pd.DataFrame(errors_of(part, options.budget) for part in parts_of(options.webs))
    options.out.mkdir(parents=True, exist_ok=True)
    table.round(4).to_csv(options.out / "calibration.csv", index=False)
    print(table.round(3).to_string(index=False))
    return 0


def errors_of(part: Part, budget: str) -> dict[str, object]:
    """Return calibration errors and Brier scores over the labelled pages of all runs on a web."""
    build(part)
    files = [Path(f"topics/{name}.toml") for name in part.topics]
    settings = ExperimentSettings(budget, repeat=1)
    rows: list[tuple[float, ...]] = []
    with plan_trials(part.web, files, settings, seeds=(ON_TOPIC, OFF_TOPIC)) as planned:
        for trial in planned.trials:
            rows += _labelled_pages(planned.contexts.for_trial(trial), trial)
    *predictions, labels = np.array(rows, dtype=np.float64).T
    row: dict[str, object] = {"web": part.web.name, "pages": len(labels), "on topic": labels.mean()}
    for name, predicted in zip(PREDICTIONS, predictions, strict=True):
        bins = count_bins(predicted, labels == 1.0)
        errors = score_errors(bins)
        row |= {name: errors.calibration_error, f"Brier, {name}": errors.brier}
    return row


def _labelled_pages(context: WebContext, trial: Trial) -> Iterator[tuple[float, ...]]:
    """Yield :data:`PREDICTIONS` and the label of each page that the apprentice learned from."""
    settled: list[SettledFetch] = []
    simulate_trial(context, trial, watch=settled.append)
    for each in settled:
        link, classification = each.link, each.classification
        if classification is None or not classification.known or not link.features:
            continue
        label = context.ground_truth.known_relevance(link.url)
        if each.outcome == "fetched" and each.duplicate_of is None and label is not None:
            yield (
                classification.guiding_relevance,
                classification.relevance,
                link.score,
                float(label),
            )


if __name__ == "__main__":
    sys.exit(main())
