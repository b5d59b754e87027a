"""The models of a crawl: topic classifier and link scorer, trained if necessary.

The classifier is trained if it is missing or its directory or good categories have changed, on
samples from a recorded web, or fetched by a polite crawl.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from focused.archive.archive import load_crawled_pages
from focused.classifier.model_file import load_named_model, stale_reason, training_urls_path
from focused.classifier.model_versions import (
    lock_model,
    replace_model,
    train_model,
    versions_folder,
)
from focused.classifier.sample_texts import FetchPage
from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.directory.directory_reader import load_training_samples
from focused.errors import ModelError, TrainingError
from focused.labels.label_file import labelled_page_reader, load_topic_labels, training_labels
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.protocols import LinkScorer
from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.scrapy_addon.addon_settings import samples_folder
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.web.page import Page
from focused.web.urls import normalize_url

logger = logging.getLogger(__name__)

PrintLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CrawlModels:
    """The models that guide a crawl, and the normalised URLs of the classifier's samples.

    ``watcher`` detects a retrained classifier during the crawl.
    """

    classifier: TopicClassifier
    scorer: LinkScorer
    training_urls: frozenset[str]
    watcher: ModelWatcher | None = None


def load_crawl_models(
    topic: Topic, *, web: str | None, replay: str | None, say: PrintLine
) -> CrawlModels:
    """Load the topic's models; train the classifier if it is missing or out of date."""
    prior = load_link_prior(topic.training.link_prior)  # before a long training
    reason = stale_reason(topic)
    if reason is not None:
        from focused.scrapy_addon.crawl_models import (
            train_topic_model,  # slow to import, rarely needed
        )

        say(f"training {topic.training.model}: {reason}")
        train_topic_model(topic, Path(web) if web else None, replay=replay, say=say)
    watcher = ModelWatcher(topic.training.model)
    loaded = load_named_classifier(topic.training.model)
    classifier = SwappableClassifier(loaded.classifier, loaded.name)
    return CrawlModels(classifier, Apprentice(classifier, prior), training_urls(topic), watcher)


def training_urls(topic: Topic) -> frozenset[str]:
    """Return the normalised URLs of all samples; their pages never count as harvest.

    For a sample that redirects, these are the listed URL and the URL of its page.
    """
    listed = (normalize_url(entry.url) for entry in load_training_samples(topic.training).entries)
    noted_path = training_urls_path(topic.training.model)
    noted = noted_path.read_text(encoding="utf-8").splitlines() if noted_path.is_file() else []
    labelled = (
        normalize_url(label.url) for label in training_labels(load_topic_labels(topic.training))
    )
    return frozenset(url for url in (*listed, *noted, *labelled) if url)


@dataclass(frozen=True, slots=True)
class NamedClassifier:
    """A classifier and its model file's name."""

    classifier: TopicClassifier
    name: str


def load_named_classifier(path: Path) -> NamedClassifier:
    """Load a model file. Raises ModelError."""
    model, name = load_named_model(path)
    return NamedClassifier(model.classifier, name)


class ModelWatcher:
    """Detects that a model file was replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _file_stamp(path)

    def poll(self) -> NamedClassifier | None:
        """Return the new classifier if the file was replaced since the last call.

        A file that cannot be loaded is logged and ignored.
        """
        stamp = _file_stamp(self._path)
        if stamp == self._seen or stamp is None:
            return None
        self._seen = stamp
        try:
            return load_named_classifier(self._path)
        except (ModelError, OSError) as error:
            logger.warning("the new model was ignored: %s", error)
            return None


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        loaded = path.stat()
    except OSError:
        return None
    return loaded.st_ino, loaded.st_size, loaded.st_mtime_ns


def train_topic_model(
    topic: Topic, web: Path | None, *, replay: str | None, say: PrintLine
) -> None:
    """Train the topic's model; write it, its card, and the URLs of its samples.

    The previous model is kept as a version. Raises ModelError while another process trains it.
    """
    path = topic.training.model
    with lock_model(path):
        with open_sample_pages(topic, web, replay=replay, say=say) as fetch:
            made = train_model(
                topic,
                fetch,
                now=time.time(),
                labels=load_topic_labels(topic.training),
                on_message=lambda line: say(f"training.directory: {line}"),
            )
        number = replace_model(made, path)
    say(f"wrote {path} and its card beside it")
    if number is not None:
        say(
            f"the old model is version {number} in {versions_folder(path)} "
            f"(focused retrain {topic.path} --restore {number})"
        )
    for warning in made.model.report.warnings:
        say(f"warning: {warning}")


@contextmanager
def open_sample_pages(
    topic: Topic, web: Path | None, *, replay: str | None, say: PrintLine
) -> Iterator[FetchPage]:
    """Return a function that gives a sample's page: from the labels' WARC file, or fetched.

    Samples of the directory come from a recorded web, else from a crawl that starts with the first
    of them.
    """
    path = topic.training.labels
    kept = labelled_page_reader(path) if path else lambda url: None
    if web is not None:
        with RecordedWeb.open(web) as recorded:
            recorded_page = page_reader(recorded)
            yield lambda url: kept(url) or recorded_page(url)
    else:
        # Fetched lazily: errors of the directory are reported first.
        pages = cache(lambda: _fetch_samples(topic, replay, say))
        yield lambda url: kept(url) or pages().get(url)


def _fetch_samples(topic: Topic, replay: str | None, say: PrintLine) -> dict[str, Page]:
    folder = samples_folder(topic)
    say(f"fetching the directory's pages into {folder} (an interrupted download is resumed)")
    command = [
        sys.executable,
        "-m",
        "focused.scrapy_addon.spiders.samples_spider",
        str(topic.path),
        str(folder),
    ]
    # A child process: Scrapy runs one reactor per process.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if _run_child([*command, replay or ""], environment):
        raise TrainingError(
            f"the directory's pages could not be fetched; see {folder / 'crawl.log'}"
        )
    store = StateStore.reopen(folder / "state")
    try:
        return load_crawled_pages(store.tables, folder)
    finally:
        store.close()


def _run_child(command: list[str], environment: dict[str, str]) -> int:
    """Run a child process; Ctrl-C is passed on once and stops it cleanly."""
    with subprocess.Popen(command, env=environment, process_group=0) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
