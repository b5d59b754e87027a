"""Compare the harvest with each estimator of the topic classifier, same policy and same starts.

``python benchmarks/estimator_harvest.py`` builds the doc web's medium tier and FOLDOC if missing,
trains each topic of the main benchmark with every estimator, crawls with ``focused``, and writes
tables into ``benchmarks/results/estimators/``. Labels measure the harvest. An interrupted benchmark
resumes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from harvest import PARTS, ROOT, Part, build, run_focused

from focused.classifier.model_file import load_model
from focused.classifier.sample_texts import FetchPage
from focused.classifier.topic_training import train_topic
from focused.directory.directory_reader import load_directory
from focused.files import write_atomically
from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.topic import ESTIMATORS, Topic
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_analysis import ComparisonAnalysis, analyse_runs
from focused_lab.analysis.comparison_runs import Run, runs_of
from focused_lab.analysis.inference import Estimate
from focused_lab.analysis.policy_summary import GroupSummary

SEEDS = ("on-topic:5", "off-topic:5")
_TIMED_TOPICS = 3
"""Topics per web whose training is timed; each is trained once more for that."""


def main() -> int:
    """Train, crawl, write and print; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    began_s = time.monotonic()
    runs: list[Run] = []
    trainings = []
    for part in PARTS:
        if part.web.name not in options.webs.split(","):
            continue
        build(part)
        for estimator in ESTIMATORS:
            folder = options.work / estimator / part.web.name
            topics = [_topic_file(topic, estimator, folder) for topic in part.topics]
            if status := _crawl(part, topics, folder, options):
                return status
            runs += _runs(folder, estimator)
        trainings += list(_trainings(part, options.work))
    tables = {
        "harvest": harvest_table(analyse_runs(runs)),
        "training": training_table(pd.DataFrame(trainings)),
    }
    _write(options.out, tables, runs)
    minutes = (time.monotonic() - began_s) / 60
    print(f"{len(runs):,} runs; this session took {minutes:.1f} minutes")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default="docweb-medium,foldoc", help="names of webs, commas")
    parser.add_argument("--budget", default="300", help="pages per run (default: 300)")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/estimators"))
    parser.add_argument("--work", type=Path, default=Path("crawls/benchmark-estimators"))
    return parser.parse_args()


def _topic_file(name: str, estimator: str, folder: Path) -> Path:
    """Write a topic file with this estimator and its own model file; the name stays the same."""
    shipped = Path(f"topics/{name}.toml")
    document = tomllib.loads(shipped.read_text(encoding="utf-8"))
    training = document["training"]
    training["directory"] = [str((shipped.parent / one).resolve()) for one in training["directory"]]
    training |= {"estimator": estimator, "model": f"{shipped.stem}.joblib"}
    document["output"] = {"folder": f"crawl-{shipped.stem}"}
    folder.mkdir(parents=True, exist_ok=True)
    return write_atomically(folder / shipped.name, "\n".join(_toml(document)).encode())


def _toml(document: dict[str, Any]) -> Iterator[str]:
    """Serialise a topic file; JSON's strings, lists, numbers and booleans are valid TOML."""
    for key, value in document.items():
        if not isinstance(value, dict):
            yield f"{key} = {json.dumps(value)}"
    for name, section in document.items():
        if isinstance(section, dict):
            yield f"[{name}]"
            yield from (f"{key} = {json.dumps(value)}" for key, value in section.items())


def _crawl(part: Part, topics: Sequence[Path], folder: Path, options: argparse.Namespace) -> int:
    words = ["--web", str(part.web), "--policies", "focused", "--budget", options.budget]
    for topic in topics:
        words += ["--topic", str(topic)]
    for seeds in SEEDS:
        words += ["--seeds", seeds]
    words += ["--host-cap", "none", "--repeat", str(options.repeat), "--jobs", str(options.jobs)]
    # Its tables are of one classifier only; ours come later.
    with (folder / "output.txt").open("w") as said, contextlib.redirect_stdout(said):
        return run_focused("compare", *words, "--out", str(folder))


def _runs(folder: Path, estimator: str) -> list[Run]:
    document = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    return list(runs_of([{**run, "policy": estimator} for run in document["runs"]]))


def _trainings(part: Part, work: Path) -> Iterator[dict[str, Any]]:
    """The size of each model, and for the first topics the training time with parsed pages."""
    with RecordedWeb.open(part.web) as web:
        read = cache(page_reader(web))
        for place, name in enumerate(part.topics):
            for estimator in ESTIMATORS:
                topic = load_topic(work / estimator / part.web.name / f"{Path(name).name}.toml")
                trial = load_model(topic.training.model).report.trial
                yield {
                    "web": part.web.name,
                    "topic": topic.name,
                    "estimator": estimator,
                    "auc": trial.calibrated.auc,
                    "average_precision": trial.calibrated.average_precision,
                    "ece": trial.calibrated.ece,
                    "training_cpu_s": _cpu_s(topic, read) if place < _TIMED_TOPICS else None,
                    "model_mb": topic.training.model.stat().st_size / 1e6,
                }


def _cpu_s(topic: Topic, read: FetchPage) -> float:
    for entry in load_directory(topic.training.directory):
        read(entry.url)
    began_s = time.process_time()
    train_topic(topic, read, now=0.0)
    return time.process_time() - began_s


def harvest_table(analysis: ComparisonAnalysis) -> pd.DataFrame:
    """A row per estimator and kind of seeds, with its difference to the default.

    Shares in per cent, differences in percentage points, 95% bootstrap intervals over topics and
    starts; None in the default's own row.
    """
    rows = []
    for each in analysis.summary:
        for seeds in (None, *SEEDS):
            share = each if seeds is None else _group(each.by_group, seeds)
            pairs = [p for p in analysis.paired if (p.policy, p.seeds) == (each.policy, seeds)]
            pair = pairs[0] if pairs else None
            rows.append(
                {
                    "classifier": each.policy,
                    "seeds": seeds or "all",
                    "runs": share.runs,
                    **_spread("harvest", share.harvest),
                    **_spread("area", share.area),
                    **_spread("difference", pair.difference if pair else None),
                    "wins": pair.wins if pair else None,
                    "ties": pair.ties if pair else None,
                    "losses": pair.losses if pair else None,
                    "classifier_precision": each.classifier_precision if seeds is None else None,
                    "classifier_recall": each.classifier_recall if seeds is None else None,
                }
            )
    return pd.DataFrame(rows)


def _group(shares: Sequence[GroupSummary], seeds: str) -> GroupSummary:
    return next(share for share in shares if share.seeds == seeds)


def _spread(name: str, value: Estimate | None) -> dict[str, float | None]:
    parts = (None, None, None) if value is None else (value.mean, value.low, value.high)
    return {
        f"{name}{end}": None if part is None else round(100 * part, 2)
        for end, part in zip(("", "_low", "_high"), parts, strict=True)
    }


def training_table(trainings: pd.DataFrame) -> pd.DataFrame:
    """Means over the topics of each web."""
    figures = ["auc", "average_precision", "ece", "training_cpu_s", "model_mb"]
    return trainings.groupby(["web", "estimator"], sort=False)[figures].mean().reset_index()


def _write(folder: Path, tables: dict[str, pd.DataFrame], runs: Sequence[Run]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    texts = []
    for name, table in tables.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False).encode())
        texts.append(f"## {name.title()}\n\n{markdown(table)}")
    by_run = pd.DataFrame(
        [
            {
                "classifier": run.policy,
                **run.start._asdict(),
                "harvest": run.harvest,
                "area": run.area,
            }
            for run in runs
        ]
    )
    write_atomically(folder / "runs.csv", by_run.to_csv(index=False).encode())
    print("\n\n".join(texts))


def markdown(table: pd.DataFrame) -> str:
    """Render a table as Markdown, with short figures and empty cells for missing ones."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    for row in table.itertuples(index=False):
        lines.append(["" if pd.isna(cell) else _cell(cell) for cell in row])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
