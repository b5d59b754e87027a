"""``focused topic new``: from keywords and a few pages to a topic file and a first classifier.

A short crawl from the seeds, steered by the keywords alone, brings their neighbourhood.
Its pages that speak most of the keywords, and those that speak of none, are the first
samples; they are written into a directory file, to be looked through.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from focused.archive import harvested_pages
from focused.cli.begun_topic import DIRECTORY_HEAD, Idea, begin_topic
from focused.errors import StateError, TrainingError
from focused.frontier.store import StateStore
from focused.learning.keyword_judge import KeywordJudge
from focused.learning.model_making import make_model
from focused.learning.model_versions import alone_with, replace_model
from focused.learning.proposals import Proposals, propose
from focused.learning.report import TrainedModel
from focused.recorded.serve_process import ReplayProcess
from focused.scrapy_addon.session import session_of
from focused.topic import Topic
from focused.topic_file import load_topic
from focused.web.page import Page
from focused.web.url import normalise
from focused.whole_file import write_whole
from spiders.first import FirstSpider
from spiders.running import project_settings, run

_FEWEST = 5
_SHOWN = 5
_BY_THE_USER = "shutdown"  # Scrapy's word for Ctrl-C


def new_topic(idea: Idea, *, pages: int, web: Path | None, delay_s: float | None) -> None:
    """Write the topic's files, crawl around its seeds, and train its first classifier."""
    begin_topic(idea)
    path, start = idea.topic_file, idea.start
    topic = load_topic(path)
    judge = KeywordJudge(topic.training.keywords)
    click.echo(f"topic file: {path}; fetching up to {pages} pages around the seeds into {start}")
    _crawl(path, start, pages=pages, web=web, delay_s=delay_s)
    found = _pages_of(start)
    asked = [normalise(url) or url for url in topic.seeds.urls]
    seeds = {found[url].url for url in asked if url in found}
    own = {page.url: page for page in found.values()}
    judged = [(page, judge.judge(page).relevance) for page in own.values()]
    proposals = propose(judged, seeds, judge.threshold)
    _check(topic, proposals, len(own))
    _write_directory(topic, proposals)
    model = topic.training.model
    with alone_with(model):
        made = make_model(topic, lambda url: found.get(url) or own.get(url), now=time.time())
        replace_model(made, model)
    _tell(topic, start, made.model, own, proposals, model.with_suffix(".md"))


def _crawl(
    path: Path, folder: Path, *, pages: int, web: Path | None, delay_s: float | None
) -> None:
    given: dict[str, Any] = {
        "FOCUSED_TOPIC": str(path),
        "FOCUSED_FOLDER": str(folder),
        "FOCUSED_PAGES": pages,
        "FOCUSED_DELAY_S": delay_s,
    }
    with ExitStack() as stack:
        if web is not None:
            given["FOCUSED_REPLAY"] = stack.enter_context(ReplayProcess(web)).address
        crawler, began = run(FirstSpider, project_settings(given))
    if not began:
        raise StateError(f"{folder}: the crawl around the seeds could not begin")
    if session_of(crawler).done_because == _BY_THE_USER:
        raise StateError("stopped before all pages were fetched; the same command goes on")


def _pages_of(folder: Path) -> dict[str, Page]:
    """Pages by URL, and by those that led to them."""
    store = StateStore.reopen(folder / "state")
    try:
        return harvested_pages(store.tables, folder)
    finally:
        store.close()


def _check(topic: Topic, proposals: Proposals, fetched: int) -> None:
    good = len(proposals.seeds) + len(proposals.good)
    if good < _FEWEST:
        raise TrainingError(
            f"of {fetched} pages around the seeds {good} speak of the keywords "
            f"({', '.join(topic.training.keywords)}): {_FEWEST} are needed to begin with. Give "
            "the same command more seeds or other keywords, or list pages of the topic in "
            f"{topic.training.directory[0]}, as many of other things under Top/Other, "
            f"and run: focused train {topic.path}"
        )


def _write_directory(topic: Topic, proposals: Proposals) -> None:
    good, other = topic.training.good[0], "Top/Other"
    blocks = [
        DIRECTORY_HEAD,
        "# Your seeds that speak of a keyword:\n",
        *(_line(good, page) for page in proposals.seeds),
        "# Found near them, by the keywords; take out what is not on topic:\n",
        *(_line(good, page) for page, _ in proposals.good),
        "# Found near them, without a keyword; take out what is on topic:\n",
        *(_line(other, page) for page, _ in proposals.other),
    ]
    write_whole(topic.training.directory[0], "".join(blocks).encode())


def _line(category: str, page: Page) -> str:
    title = " ".join(page.title.split())[:200]
    return f"{category}\t{page.url}\t{title}\n"


def _tell(
    topic: Topic,
    start: Path,
    model: TrainedModel,
    own: dict[str, Page],
    proposals: Proposals,
    card: Path,
) -> None:
    judge = model.classifier
    relevance = {url: judge.judge(page).relevance for url, page in own.items()}
    called = sum(value >= judge.threshold for value in relevance.values())
    words = ", ".join(word for word, _ in model.report.top_words[:12])
    click.echo(
        f"{len(own)} pages fetched; {len(proposals.good)} more pages of the topic and "
        f"{len(proposals.other)} others proposed in {topic.training.directory[0]}\n"
        f"The first classifier calls {called} of the {len(own)} on topic; its words: {words}\n"
        f"Nearest to its threshold, where it errs if it errs:"
    )
    nearest = sorted(relevance, key=lambda url: abs(relevance[url] - judge.threshold))[:_SHOWN]
    for url in nearest:
        click.echo(f"  {relevance[url]:.2f}  {url}")
    for warning in model.report.warnings:
        click.echo(f"Warning: {warning}")
    click.echo(
        f"Its card: {card}\n"
        f"Next: focused label {start} --labels {topic.training.labels}\n"
        f"then: focused retrain {topic.path}\n"
        f"then: focused crawl {topic.path}"
    )
