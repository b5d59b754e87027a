"""The first crawl of a topic, and the classifier trained from it.

A short crawl from the seeds, guided by the keywords, fetches pages around them. Pages with most of
the keywords and pages with none become the first samples, in a directory file that the user
reviews.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from focused.archive.archive import page_rows
from focused.archive.crawled_pages import load_crawled_pages
from focused.archive.warc_files import warc_files
from focused.classifier.keyword_classifier import (
    KeywordClassifier,
    ProposedSamples,
    RatedPage,
    propose_samples,
)
from focused.classifier.model_file import lock_model, replace_model
from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.cli.common import echo
from focused.cli.topic_files import DIRECTORY_HEAD, NewTopicOptions, write_topic_files
from focused.errors import StateError, TrainingError
from focused.files import write_atomically
from focused.labels.label_file import LabelledPageStore, labelled_pages_path
from focused.link_scoring.apprentice import Apprentice
from focused.recorded_web import find_recorded_webs
from focused.reports.formatting import single_line
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.crawl_session import session_of
from focused.scrapy_addon.spiders.run import project_settings, run
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Fetched, Page
from focused.web.urls import normalize_url
from focused.web.warc_reader import WarcResponse, read_responses

_MAX_SHOWN = 5
_OK = 200
_INTERRUPTED = "shutdown"  # Scrapy's reason after Ctrl-C


def new_topic(
    options: NewTopicOptions, *, pages: int, web: Path | None, delay_s: float | None
) -> None:
    """Write the topic's files, crawl around its seeds, and train its first classifier."""
    write_topic_files(options)
    path, start = options.topic_file, options.start
    topic = load_topic(path)
    echo(f"topic file: {path}; fetching up to {pages} pages around the seeds into {start}")
    _crawl_around_seeds(path, start, pages=pages, web=web, delay_s=delay_s)
    seeds = {normalize_url(url) or url for url in topic.seeds.urls}
    found, failed = _crawled_pages(start, seeds)
    for seed, reason in failed.items():
        echo(f"Seed {seed}: {reason}. It is left out; correct or delete it in {path}.")
    training = train_first_classifier(topic, found)
    _store_sample_pages(topic, start, training.listed)
    _print_summary(topic, start, web, training, failed)


@dataclass(frozen=True, slots=True)
class FirstTraining:
    """Result of the first training: the model, the fetched pages by URL, the proposed samples."""

    model: TrainedModel
    pages: Mapping[str, Page]
    proposals: ProposedSamples
    unlisted_seeds: tuple[str, ...]

    @property
    def listed(self) -> frozenset[str]:
        """URLs of all samples."""
        proposals = self.proposals
        listed = (*proposals.seeds, *proposals.good, *proposals.other)
        return frozenset(page.url for page in listed)


def train_first_classifier(topic: Topic, found: Mapping[str, Page]) -> FirstTraining:
    """Propose samples among the pages ``found``, list them, and train on them.

    Raises :class:`TrainingError` if no page contains a keyword.
    """
    classifier = KeywordClassifier(topic.training.keywords)
    seed_urls = [normalize_url(url) or url for url in topic.seeds.urls]
    seeds = {found[url].url for url in seed_urls if url in found}
    pages_by_url = {page.url: page for page in found.values()}
    rated = [
        RatedPage(
            page, classifier.classify(page).relevance, classifier.relevance_without_links(page)
        )
        for page in pages_by_url.values()
    ]
    proposals = propose_samples(rated, seeds, classifier.threshold)
    _require_samples(topic, proposals, len(pages_by_url))
    _write_directory(topic, proposals)
    model = topic.training.model
    with lock_model(model):
        made = train_topic(
            topic, lambda url: found.get(url) or pages_by_url.get(url), now=time.time()
        )
        replace_model(made, model)
    listed = {page.url for page in proposals.seeds}
    unlisted = tuple(url for url in seed_urls if url not in found or found[url].url not in listed)
    return FirstTraining(made, pages_by_url, proposals, unlisted)


def _keyword_models(topic: Topic) -> CrawlModels:
    """Return a keyword classifier, and an apprentice that uses it."""
    classifier = KeywordClassifier(topic.training.keywords)
    return CrawlModels(classifier, Apprentice(classifier), frozenset())


def _crawl_around_seeds(
    path: Path, folder: Path, *, pages: int, web: Path | None, delay_s: float | None
) -> None:
    given: dict[str, Any] = {
        "FOCUSED_TOPIC": str(path),
        "FOCUSED_FOLDER": str(folder),
        "FOCUSED_PAGES": pages,
        "FOCUSED_DELAY_S": delay_s,
        "FOCUSED_MODELS": _keyword_models,
        "FOCUSED_REPORT": False,
    }
    with ExitStack() as stack:
        if web is not None:
            given["FOCUSED_REPLAY"] = stack.enter_context(find_recorded_webs().replay(web))
        crawler, started = run(TopicSpider, project_settings(given))
    if not started:
        raise StateError(f"{folder}: the crawl around the seeds could not start")
    if session_of(crawler).driver.status.end_reason == _INTERRUPTED:
        raise StateError("stopped before all pages were fetched; the same command resumes")


def _crawled_pages(folder: Path, seeds: Collection[str]) -> tuple[dict[str, Page], dict[str, str]]:
    """Return pages by URL and by redirecting URLs, and why seeds failed.

    Of duplicates, the first and seeds are returned.
    """
    store = StateStore.reopen(folder / "state")
    try:
        found = load_crawled_pages(store.tables, folder)
        rows = list(page_rows(store.tables))
    finally:
        store.close()
    fetched = {
        row["url"]
        for row in rows
        if row["outcome"] == "fetched" and (not row["duplicate_of"] or row["url"] in seeds)
    }
    failed = {
        row["url"]: f"HTTP status {row['status']}" if row["status"] else str(row["failure"])
        for row in rows
        if row["outcome"] == "failed" and row["url"] in seeds
    }
    return {url: page for url, page in found.items() if page.url in fetched}, failed


def _store_sample_pages(topic: Topic, folder: Path, urls: Collection[str]) -> None:
    """Store the samples' pages beside the labels, for ``retrain``."""
    assert topic.training.labels is not None, "a topic that was read has a file of labels"
    with LabelledPageStore(labelled_pages_path(topic.training.labels)) as store:
        for record in chain.from_iterable(map(read_responses, warc_files(folder))):
            if isinstance(record, WarcResponse) and record.url in urls and record.status == _OK:
                fetched = Fetched(record.url, record.status, record.headers, record.body)
                store.append(fetched, time.time())


def _require_samples(topic: Topic, proposals: ProposedSamples, fetched: int) -> None:
    if not proposals.seeds and not proposals.good:
        raise TrainingError(
            f"of {fetched} pages around the seeds none contains the keywords "
            f"({', '.join(topic.training.keywords)}). Give the same command other "
            "keywords (a '*' at the end stands for any ending), a seed that is on topic itself, "
            f"or more --pages; or list a page of the topic in {topic.training.directory[0]} and "
            f"run: focused train {topic.path}"
        )


def _write_directory(topic: Topic, proposals: ProposedSamples) -> None:
    good, other = topic.training.good[0], "Top/Other"
    blocks = [
        DIRECTORY_HEAD,
        "# Your seeds that have a keyword; delete those that are not on topic:\n",
        *(_directory_line(good, page) for page in proposals.seeds),
        "# Near them, with most of the keywords; delete those that are not on topic:\n",
        *(_directory_line(good, page) for page in proposals.good),
        "# Near them, with the fewest keywords; delete those that are on topic:\n",
        *(_directory_line(other, page) for page in proposals.other),
    ]
    write_atomically(topic.training.directory[0], "".join(blocks).encode())


def _directory_line(category: str, page: Page) -> str:
    title = " ".join(page.title.split())[:200]
    return f"{category}\t{page.url}\t{title}\n"


def _print_summary(
    topic: Topic,
    start: Path,
    web: Path | None,
    training: FirstTraining,
    failed_seeds: Collection[str],
) -> None:
    classifier, proposals = training.model.classifier, training.proposals
    relevance = {url: classifier.classify(page).relevance for url, page in training.pages.items()}
    on_topic_count = sum(value >= classifier.threshold for value in relevance.values())
    good = len(proposals.seeds) + len(proposals.good)
    words = ", ".join(word for word, _ in training.model.report.top_words[:12])
    for seed in training.unlisted_seeds:
        if seed not in failed_seeds:
            echo(
                f"Seed without a keyword, or not fetched: {seed}\n  It is no sample. If it is on "
                f"topic, add it to {topic.training.directory[0]} under {topic.training.good[0]}."
            )
    echo(
        f"\n{len(training.pages)} pages fetched. Listed in {topic.training.directory[0]}: "
        f"{good} as "
        f"on topic ({len(proposals.seeds)} seeds), {len(proposals.other)} as others. Look "
        "through the first: a line that is wrong is best deleted now."
    )
    for page in proposals.good[:_MAX_SHOWN]:
        echo(f"  {single_line(page.title) or '(no title)'}  {page.url}")
    echo(
        f"\nThe first classifier calls {on_topic_count} of {len(training.pages)} pages "
        f"on topic (relevance from {classifier.threshold:.2f}).\n"
        f"Words with the largest weights: {words}"
        "\nPages it is least sure about:"
    )
    nearest = sorted(relevance, key=lambda url: abs(relevance[url] - classifier.threshold))[
        :_MAX_SHOWN
    ]
    for url in nearest:
        echo(f"  {relevance[url]:.2f}  {url}")
    for warning in training.model.report.warnings:
        echo(f"Warning: {warning}.")
    web_option = f" --web {web}" if web else ""
    echo(
        f"\nThe model's card: {topic.training.model.with_suffix('.md')}\n"
        "Next, tell it about some twenty pages:\n"
        f"  focused label {start} --labels {topic.training.labels}\n"
        f"  focused retrain {topic.path}{web_option}\n"
        f"  focused crawl {topic.path}{web_option}\n"
        "and once more with the pages of that crawl: focused label, focused retrain."
    )
