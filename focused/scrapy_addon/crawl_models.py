"""Where a crawl's classifier and scorer come from: the topic's model, trained when it must be.

A model is made anew when it is missing or when directory or good categories
are no longer those it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from focused.classifier.model_file import stale_reason, training_urls_path
from focused.classifier.topic_classifier import SwappableClassifier
from focused.directory.directory_reader import load_training_samples
from focused.labels.label import training_labels
from focused.labels.label_file import load_topic_labels
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.link_prior import load_link_prior
from focused.scrapy_addon.crawl_session import CrawlModels
from focused.scrapy_addon.model_watcher import ModelWatcher, load_named_classifier
from focused.topic import Topic
from focused.web.urls import normalise

PrintLine = Callable[[str], None]


def load_crawl_models(
    topic: Topic, *, web: str | None, replay: str | None, say: PrintLine
) -> CrawlModels:
    """Load the topic's classifier, after training it when it is missing or out of date."""
    prior = load_link_prior(topic.training.link_prior)  # a wrong one is told before a long training
    stale = stale_reason(topic)
    if stale is not None:
        from focused.scrapy_addon.model_training import (
            train_topic_model,  # slow to import, and seldom needed
        )

        say(f"training {topic.training.model}: {stale}")
        train_topic_model(topic, Path(web) if web else None, replay=replay, say=say)
    watch = ModelWatcher(topic.training.model)
    found = load_named_classifier(topic.training.model)
    office = SwappableClassifier(found.classifier, found.name)
    return CrawlModels(office, Apprentice(office, prior), training_urls(topic), watch)


def training_urls(topic: Topic) -> frozenset[str]:
    """The normalised URLs of all samples: their pages never count as harvest.

    A sample that redirects counts under both addresses: the listed one, and
    the one whose page was learned from, as the training noted it.
    """
    listed = (normalise(entry.url) for entry in load_training_samples(topic.training).entries)
    noted = training_urls_path(topic.training.model)
    learned_from = noted.read_text(encoding="utf-8").splitlines() if noted.is_file() else []
    taught = (normalise(label.url) for label in training_labels(load_topic_labels(topic.training)))
    return frozenset(url for url in (*listed, *learned_from, *taught) if url)
