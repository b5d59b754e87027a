"""``focused topic new``: from keywords and a few pages to a topic file and a first classifier.

A short crawl from the seeds, steered by the keywords alone, brings their neighbourhood.
Its pages that speak most of the keywords, and those that speak of none, are the first
samples; they are written into a directory file, to be looked through.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from focused.archive import harvested_pages, page_rows
from focused.archive_warc import warc_files
from focused.cli.begun_topic import DIRECTORY_HEAD, Idea, begin_topic
from focused.cli.output import echo
from focused.errors import StateError, TrainingError
from focused.evaluation.wording import plain
from focused.frontier.store import StateStore
from focused.learning.keyword_judge import KeywordJudge
from focused.learning.model_making import make_model
from focused.learning.model_versions import alone_with, replace_model
from focused.learning.proposals import Proposals, propose
from focused.learning.report import TrainedModel
from focused.recorded.kept_pages import KeptPages, kept_pages_path
from focused.recorded.serve_process import ReplayProcess
from focused.recorded.warc_records import StoredRecord, read_responses
from focused.scrapy_addon.session import session_of
from focused.scrapy_addon.spiders.first import FirstSpider
from focused.scrapy_addon.spiders.running import project_settings, run
from focused.topic import Topic
from focused.topic_file import load_topic
from focused.web.page import Fetched, Page
from focused.web.url import normalise
from focused.whole_file import write_whole

_SHOWN = 5
_OK = 200
_BY_THE_USER = "shutdown"  # Scrapy's word for Ctrl-C


def new_topic(idea: Idea, *, pages: int, web: Path | None, delay_s: float | None) -> None:
    """Write the topic's files, crawl around its seeds, and train its first classifier."""
    begin_topic(idea)
    path, start = idea.topic_file, idea.start
    topic = load_topic(path)
    echo(f"topic file: {path}; fetching up to {pages} pages around the seeds into {start}")
    _crawl(path, start, pages=pages, web=web, delay_s=delay_s)
    found = _pages_of(start, {normalise(url) or url for url in topic.seeds.urls})
    lesson = teach(topic, found)
    _keep_pages(topic, start, lesson.listed)
    _tell(topic, start, web, lesson)


@dataclass(frozen=True, slots=True)
class FirstLesson:
    """What the first classifier was made from: the fetched pages by their own URL, and samples."""

    model: TrainedModel
    pages: Mapping[str, Page]
    proposals: Proposals
    unlisted_seeds: tuple[str, ...]

    @property
    def listed(self) -> frozenset[str]:
        """The URLs of all samples."""
        found = (page for page, _ in (*self.proposals.good, *self.proposals.other))
        return frozenset(page.url for page in (*self.proposals.seeds, *found))


def teach(topic: Topic, found: Mapping[str, Page]) -> FirstLesson:
    """Propose samples among the pages ``found`` by URL, list them, and train on them.

    Raises :class:`TrainingError` where no page has a keyword.
    """
    judge = KeywordJudge(topic.training.keywords)
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
    listed = {page.url for page in proposals.seeds}
    unlisted = tuple(url for url in asked if url not in found or found[url].url not in listed)
    return FirstLesson(made.model, own, proposals, unlisted)


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


def _pages_of(folder: Path, seeds: Collection[str]) -> dict[str, Page]:
    """Pages by URL, and by those that led to them; of duplicates, the first and seeds."""
    store = StateStore.reopen(folder / "state")
    try:
        found = harvested_pages(store.tables, folder)
        fetched = {
            row["url"]
            for row in page_rows(store.tables)
            if row["outcome"] == "fetched" and (not row["duplicate_of"] or row["url"] in seeds)
        }
    finally:
        store.close()
    return {url: page for url, page in found.items() if page.url in fetched}


def _keep_pages(topic: Topic, folder: Path, urls: Collection[str]) -> None:
    """Keep the samples' pages beside the labels, so that ``retrain`` need not fetch them again."""
    assert topic.training.labels is not None, "a topic that was read has a file of labels"
    with KeptPages(kept_pages_path(topic.training.labels)) as kept:
        for record in chain.from_iterable(map(read_responses, warc_files(folder))):
            if isinstance(record, StoredRecord) and record.url in urls and record.status == _OK:
                fetched = Fetched(record.url, record.status, record.headers, record.body)
                kept.append(fetched, time.time())


def _check(topic: Topic, proposals: Proposals, fetched: int) -> None:
    if not proposals.seeds and not proposals.good:
        raise TrainingError(
            f"of {fetched} pages around the seeds none seems to speak of the keywords "
            f"({', '.join(topic.training.keywords)}). Give the same command other "
            "keywords (a '*' at the end stands for any ending), a seed that is on topic itself, "
            f"or more --pages; or list a page of the topic in {topic.training.directory[0]} and "
            f"run: focused train {topic.path}"
        )


def _write_directory(topic: Topic, proposals: Proposals) -> None:
    good, other = topic.training.good[0], "Top/Other"
    blocks = [
        DIRECTORY_HEAD,
        "# Your seeds that have a keyword; delete those that are not on topic:\n",
        *(_line(good, page) for page in proposals.seeds),
        "# Found near them, with most of the keywords; delete what is not on topic:\n",
        *(_line(good, page) for page, _ in proposals.good),
        "# Found near them, with least of the keywords; delete what is on topic:\n",
        *(_line(other, page) for page, _ in proposals.other),
    ]
    write_whole(topic.training.directory[0], "".join(blocks).encode())


def _line(category: str, page: Page) -> str:
    title = " ".join(page.title.split())[:200]
    return f"{category}\t{page.url}\t{title}\n"


def _tell(topic: Topic, start: Path, web: Path | None, lesson: FirstLesson) -> None:
    judge, proposals = lesson.model.classifier, lesson.proposals
    relevance = {url: judge.judge(page).relevance for url, page in lesson.pages.items()}
    called = sum(value >= judge.threshold for value in relevance.values())
    good = len(proposals.seeds) + len(proposals.good)
    words = ", ".join(word for word, _ in lesson.model.report.top_words[:12])
    for seed in lesson.unlisted_seeds:
        echo(
            f"Seed without a keyword, or not fetched: {seed}\n  It is no sample. If it is on "
            f"topic, add it to {topic.training.directory[0]} under {topic.training.good[0]}."
        )
    echo(
        f"\n{len(lesson.pages)} pages fetched. Listed in {topic.training.directory[0]}: {good} as "
        f"on topic ({len(proposals.seeds)} seeds), {len(proposals.other)} as others. Look "
        "through the first: a line that is wrong is best deleted now."
    )
    for page, _ in proposals.good[:_SHOWN]:
        echo(f"  {plain(page.title) or '(no title)'}  {page.url}")
    echo(
        f"\nThe first classifier calls {called} of the {len(lesson.pages)} pages on topic "
        f"(relevance from {judge.threshold:.2f} on).\nWords that speak most for the topic: {words}"
        "\nPages it is least sure about:"
    )
    nearest = sorted(relevance, key=lambda url: abs(relevance[url] - judge.threshold))[:_SHOWN]
    for url in nearest:
        echo(f"  {relevance[url]:.2f}  {url}")
    for warning in lesson.model.report.warnings:
        echo(f"Warning: {warning}.")
    offline = f" --web {web}" if web else ""
    echo(
        f"\nThe model's card: {topic.training.model.with_suffix('.md')}\n"
        "Next, tell it about some twenty pages:\n"
        f"  focused label {start} --labels {topic.training.labels}\n"
        f"  focused retrain {topic.path}{offline}\n"
        f"  focused crawl {topic.path}{offline}\n"
        "and once more with the pages of that crawl: focused label, focused retrain."
    )
