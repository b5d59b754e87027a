"""A web of two categories that a keyword judge tells apart, and how to examine on it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from focused.cli import main
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.measures import Row
from focused.evaluation.examination.plan import Plan, Wish, make_plan
from focused.evaluation.examination.starts import parse_seeds
from focused.evaluation.examination.terms import Terms
from focused.evaluation.examination.webs import ExaminedWeb
from focused.evaluation.examination.workers import examine
from focused.recorded.store import RecordedWebWriter
from focused.topic_file import load_topic
from focused.web.page import Judgement, Page
from tests.support.crawling import write_topic
from tests.support.keyword_guide import WhaleJudge, WhaleScorer
from tests.support.recorded_web import html

HTML = {"content-type": "text/html; charset=utf-8"}
WORDS = {
    "Top/Whales": ("whale", "blubber", "harpoon", "krill", "baleen", "spout", "fluke", "pod"),
    "Top/Trade": ("ledger", "price", "tariff", "market", "invoice", "freight", "bank", "bond"),
}


class DeadlyJudge(WhaleJudge):
    """Ends its process, as the system does when memory is used up."""

    def judge(self, page: Page) -> Judgement:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().judge(page)


def build_web(folder: Path, each: int = 40) -> Path:
    """Two categories on two hosts; the start links to both, each page to the next ones."""
    rng = random.Random(1)
    writer = RecordedWebWriter(folder, "two-sides", "test")
    labels = []
    start = []
    for category, words in WORDS.items():
        name = category.split("/")[1].lower()
        urls = [f"http://{name}.test/{name}-{n}" for n in range(each)]
        start += urls[:2]
        for n, url in enumerate(urls):
            links = urls[n + 1 : n + 4]
            text = " ".join(rng.choices(words, k=80))
            writer.add(url, 200, HTML, html(f"{name} {n}", *links, text=f"{text} {n}"))
            labels.append((url, category))
    writer.add("http://start.test/", 200, HTML, html("Start", *reversed(start)))
    writer.add("http://start.test/moved", 301, {"location": "http://whales.test/whales-9"}, b"")
    writer.finish(labels)
    return folder


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


def candidate(folder: Path, samples: Sequence[str] = (), scope: str = "") -> Candidate:
    topic = load_topic(write_compared(folder, scope))
    return Candidate(topic, WhaleJudge(), WhaleScorer(), frozenset(samples))


def planned(
    web: Path,
    ours: Candidate,
    *policies: str,
    seeds: Sequence[str] = ("topic",),
    host_caps: Sequence[int | None] = (),
    labels: Path | None = None,
    say: Any = lambda line: None,
    **terms: Any,
) -> Plan:
    wish = Wish(policies, list(map(parse_seeds, seeds)), host_caps, Terms(**terms))
    examined = ExaminedWeb("two-sides", web, labels)
    return make_plan([examined], [ours.topic], {ours.topic.name: ours}, wish, say)


def rows_of(plan: Plan, web: Path, ours: Candidate, jobs: int = 1) -> list[Row]:
    webs = {"two-sides": ExaminedWeb("two-sides", web)}
    runs = dict(examine(webs, {"whales": ours}, plan.trials, plan.terms, jobs=jobs))
    return [runs[trial] for trial in plan.trials]


def run_all(folder: Path, *policies: str, jobs: int = 1, **wished: Any) -> dict[str, Row]:
    """One run per policy on the two sides, by policy."""
    web, ours = build_web(folder / "web"), candidate(folder)
    plan = planned(web, ours, *policies, **{"budget": "20"} | wished)
    return {row["policy"]: row for row in rows_of(plan, web, ours, jobs)}


def steady(row: Row) -> Row:
    """A row without what no two runs have in common."""
    return {key: value for key, value in row.items() if key not in ("cpu_s", "peak_mb")}


def with_judge(ours: Candidate, judge: WhaleJudge) -> Candidate:
    return replace(ours, judge=judge)


def compare(folder: Path, *options: str | Path, web: Path | None = None) -> Result:
    """``focused compare`` on the two sides; what it says on standard error is in ``stderr``."""
    topic = folder / "whales.toml"
    if not topic.exists():
        write_compared(folder)
    told = ["compare", "--web", web or folder / "web", "--topic", topic]
    told += ["--out", folder / "comparison", *options]
    return CliRunner().invoke(main, [str(each) for each in told])
