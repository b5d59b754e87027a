"""``focused compare``: policies side by side on a recorded web, judged by its labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from focused.errors import ConfigurationError
from focused.evaluation.examination.examiner import Candidate, Result, Terms, Trial, examine, plan
from focused.evaluation.examination_report import (
    draw_results,
    run_row,
    summary,
    summary_table,
    topics_table,
)
from focused.scrapy_addon.guide import guide_for
from focused.topic import Topic
from focused.topic_file import load_topic


def compare_policies(
    web: Path,
    topics: Sequence[Path],
    policies: Sequence[str],
    seeds: Sequence[str],
    repeats: int,
    terms: Terms,
    *,
    jobs: int,
    json_path: Path | None,
    folder: Path | None,
) -> None:
    """Run all, print the tables, write what was asked for."""
    loaded = _by_name([load_topic(path) for path in topics])
    trials = plan(list(loaded), policies, seeds, repeats)
    candidates = {name: _candidate(topic, web) for name, topic in loaded.items()}
    for path in (json_path.parent if json_path else None, folder):
        _make(path)
    results = _run(web, candidates, trials, terms, jobs)
    rows = summary(results, terms)
    console = Console()
    console.print(topics_table(results))
    console.print(summary_table(rows, terms))
    if json_path is not None:
        whole = {
            "terms": asdict(terms),
            "runs": [run_row(each, terms) for each in results],
            "summary": rows,
        }
        _write(json_path, whole)
    if folder is not None:
        for picture in draw_results(results, folder):
            click.echo(f"Curves: {picture}")


def _run(
    web: Path, candidates: dict[str, Candidate], trials: Sequence[Trial], terms: Terms, jobs: int
) -> list[Result]:
    results: dict[Trial, Result] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("comparing", total=len(trials))
        for result in examine(web, candidates, trials, terms, jobs=jobs):
            results[result.trial] = result
            progress.advance(task)
    return [results[trial] for trial in trials]


def _by_name(topics: Sequence[Topic]) -> dict[str, Topic]:
    named = {topic.name: topic for topic in topics}
    if len(named) < len(topics):
        raise ConfigurationError("--topic: two of the topics have the same name")
    return named


def _candidate(topic: Topic, web: Path) -> Candidate:
    guide = guide_for(topic, web=str(web), replay=None, say=click.echo)
    return Candidate(topic, guide.judge, guide.scorer, guide.training_urls)


def _make(folder: Path | None) -> None:
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from error


def _write(path: Path, value: object) -> None:
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
