"""A web of two categories that a keyword classifier tells apart, and how to examine on it."""

import os
import random
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from click.testing import Result

from focused.topic.topic_file import load_topic
from focused.web.page import Classification, Page
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import (
    ExperimentPlan,
    PreparedTopic,
    RequestedRuns,
    parse_seed_set,
    plan_experiment,
)
from focused_lab.parallel_runs import run_trials
from focused_lab.run_measures import RunRecord
from focused_lab.web_sources import ExperimentWeb
from tests.support.command import focused
from tests.support.crawling import write_topic
from tests.support.recorded_web import html, page, record_web, redirect
from tests.support.whale_models import WhaleClassifier, WhaleScorer

WORDS = {
    "Top/Whales": ("whale", "blubber", "harpoon", "krill", "baleen", "spout", "fluke", "pod"),
    "Top/Trade": ("ledger", "price", "tariff", "market", "invoice", "freight", "bank", "bond"),
}


class DeadlyClassifier(WhaleClassifier):
    """Ends its process, as the system does when memory is used up."""

    def classify(self, page: Page) -> Classification:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().classify(page)


def build_web(folder: Path, each: int = 40) -> Path:
    """Two categories on two hosts; the start links to both, each page to the next ones."""
    rng = random.Random(1)
    pages, labels, start = [], [], []
    for category, words in WORDS.items():
        name = category.split("/")[1].lower()
        urls = [f"http://{name}.test/{name}-{n}" for n in range(each)]
        start += urls[:2]
        for n, url in enumerate(urls):
            links = urls[n + 1 : n + 4]
            text = " ".join(rng.choices(words, k=80))
            pages.append(page(url, html(f"{name} {n}", *links, text=f"{text} {n}")))
            labels.append((url, category))
    pages.append(page("http://start.test/", html("Start", *reversed(start))))
    pages.append(redirect("http://start.test/moved", "http://whales.test/whales-9"))
    return record_web(folder, *pages, labels=labels, name="two-sides")


def write_compared(folder: Path, scope: str = "") -> Path:
    # One connection and patience: what a policy chooses, not which host is free, decides.
    politeness = "concurrency = 1\npatience = 10"
    path = write_topic(
        folder, "http://start.test/", delay_s=1.0, politeness=politeness, scope=scope
    )
    lines = [
        f"{category}\thttp://{(low := category.split('/')[1].lower())}.test/{low}-{n}\t\t\n"
        for category in WORDS
        for n in range(1, 40, 4)
    ]
    (folder / "directory.tsv").write_text("".join(lines))
    return path


def prepared_topic(folder: Path, samples: Sequence[str] = (), scope: str = "") -> PreparedTopic:
    topic = load_topic(write_compared(folder, scope))
    return PreparedTopic(topic, WhaleClassifier(), WhaleScorer(), frozenset(samples))


def planned(
    web: Path,
    ours: PreparedTopic,
    *policies: str,
    seeds: Sequence[str] = ("topic",),
    host_caps: Sequence[int | None] = (),
    labels: Path | None = None,
    warn: Any = lambda line: None,
    **settings: Any,
) -> ExperimentPlan:
    requested = RequestedRuns(
        policies, list(map(parse_seed_set, seeds)), host_caps, ExperimentSettings(**settings)
    )
    examined = ExperimentWeb("two-sides", web, labels)
    return plan_experiment([examined], [ours.topic], {ours.topic.name: ours}, requested, warn)


def rows_of(plan: ExperimentPlan, web: Path, ours: PreparedTopic, jobs: int = 1) -> list[RunRecord]:
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    runs = dict(run_trials(webs, {"whales": ours}, plan.trials, plan.settings, jobs=jobs))
    return [runs[trial] for trial in plan.trials]


def run_all(folder: Path, *policies: str, jobs: int = 1, **wished: Any) -> dict[str, RunRecord]:
    """One run per policy on the two sides, by policy."""
    web, ours = build_web(folder / "web"), prepared_topic(folder)
    plan = planned(web, ours, *policies, **{"budget": "20"} | wished)
    return {row["policy"]: row for row in rows_of(plan, web, ours, jobs)}


def steady(row: RunRecord) -> RunRecord:
    """A row without what no two runs have in common."""
    return {key: value for key, value in row.items() if key not in ("cpu_s", "peak_mb")}


def with_classifier(ours: PreparedTopic, classifier: WhaleClassifier) -> PreparedTopic:
    return replace(ours, classifier=classifier)


def compare(folder: Path, *options: str | Path, web: Path | None = None, status: int = 0) -> Result:
    """``focused compare`` on the two sides; what it says on standard error is in ``stderr``."""
    topic = folder / "whales.toml"
    if not topic.exists():
        write_compared(folder)
    arguments = ["compare", "--web", web or folder / "web", "--topic", topic]
    arguments += ["--out", folder / "comparison", *options]
    return focused(*arguments, status=status)
