"""The models of a crawl: topic classifier and link scorer, trained if necessary.

The classifier is trained if it is missing or its directory or good categories have changed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scrapy.settings import BaseSettings

from focused.child_processes import python_command, python_environment, run_child
from focused.classifier.classifier_file import (
    load_classifier,
    load_current_classifier,
    training_urls_head,
    training_urls_path,
)
from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.directory import samples_digest
from focused.errors import ModelError, TrainingError, print_notice
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.protocols import LinkScorer
from focused.scrapy_addon.addon_settings import load_models_factory
from focused.topic import Topic
from focused.web.urls import normalize_url

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlModels:
    """The models that guide a crawl, and the normalised URLs of the classifier's samples.

    ``watcher`` detects a retrained classifier during the crawl.
    """

    classifier: TopicClassifier
    scorer: LinkScorer
    training_urls: frozenset[str]
    watcher: ModelWatcher | None = None


def load_models(settings: BaseSettings, topic: Topic) -> CrawlModels:
    """Return the models of FOCUSED_MODELS, or else the topic's, trained if necessary."""
    if settings["FOCUSED_MODELS"]:
        models: CrawlModels = load_models_factory(settings["FOCUSED_MODELS"])(topic)
        return models
    web, replay = settings["FOCUSED_RECORDED_WEB"], settings["FOCUSED_REPLAY"]
    return load_crawl_models(topic, lambda: _train_in_child(topic, web, replay), print_notice)


def _train_in_child(topic: Topic, web: str | None, replay: str | None) -> None:
    """Train the topic's model in a process that ends with its 100 MB of libraries and samples."""
    command = python_command(
        "focused.scrapy_addon.model_training", str(topic.path), web or "", replay or ""
    )
    status, written = run_child(command, python_environment(has_secrets=True))
    if status:
        try:
            message = json.loads(written.splitlines()[-1])
        except (IndexError, ValueError):
            message = f"the training of {topic.training.model} ended with status {status}"
        raise TrainingError(message)


def load_crawl_models(
    topic: Topic, train: Callable[[], object], say: Callable[[str], object]
) -> CrawlModels:
    """Load the topic's models; ``train`` the classifier if it is missing or out of date.

    Raises what ``train`` raises.
    """
    prior = load_link_prior(topic.training.link_prior)  # before a long training
    watcher = ModelWatcher(topic.training.model)
    try:
        loaded = load_current_classifier(topic)
    except ModelError as stale:
        say(f"training {topic.training.model}: {stale}")
        train()
        watcher = ModelWatcher(topic.training.model)
        loaded = load_classifier(topic.training.model)
    classifier = SwappableClassifier(*loaded)
    return CrawlModels(classifier, Apprentice(classifier, prior), training_urls(topic), watcher)


def training_urls(topic: Topic) -> frozenset[str]:
    """Return the normalised URLs of all samples; their pages never count as harvest.

    For a sample that redirects, these are the listed URL and the URL of its page.
    """
    path = training_urls_path(topic.training.model)
    noted = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    urls: list[str | None] = [url for url in noted if not url.startswith("#")]
    if noted[:1] != [training_urls_head(samples_digest(topic.training))]:
        # The directory has changed, or the file is of an earlier version.
        from focused.directory.directory_reader import load_training_samples

        entries = load_training_samples(topic.training).entries
        urls += (normalize_url(entry.url) for entry in entries)
    return frozenset(url for url in (*urls, *_labelled_urls(topic)) if url)


def _labelled_urls(topic: Topic) -> list[str | None]:
    path = topic.training.labels
    if path is None or not path.exists():
        return []
    from focused.labels.label_file import load_topic_labels, training_labels  # only with labels

    labels = training_labels(load_topic_labels(topic.training))
    return [normalize_url(label.url) for label in labels]


class ModelWatcher:
    """Detects that a model file was replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _file_stamp(path)

    def poll(self) -> tuple[TopicClassifier, str] | None:
        """Return the new classifier and its name if the file was replaced since the last call.

        A file that cannot be loaded is logged and ignored.
        """
        stamp = _file_stamp(self._path)
        if stamp == self._seen or stamp is None:
            return None
        self._seen = stamp
        try:
            return load_classifier(self._path)
        except (ModelError, OSError) as error:
            logger.warning("the new model was ignored: %s", error)
            return None


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        loaded = path.stat()
    except OSError:
        return None
    return loaded.st_ino, loaded.st_size, loaded.st_mtime_ns
