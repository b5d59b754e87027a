"""The topic as a crawler's settings have it: which one, and what differs this time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.scrapy_addon.checked_settings import non_negative, whole_number
from focused.scrapy_addon.scrapy_settings import apply_to_topic
from focused.topic import Budget, Scope, Topic
from focused.topic_file import load_topic


def topic_of(settings: BaseSettings) -> Topic:
    """Load the topic that ``FOCUSED_TOPIC`` names, with what other settings override.

    ``FOCUSED_PAGES``, ``FOCUSED_DELAY_S``, ``FOCUSED_CONCURRENCY`` and ``FOCUSED_FOLDER``
    override ``budget.pages``, ``politeness.delay_s``, ``politeness.concurrency`` and
    ``output.folder``. A policy
    other than ``focused`` gets a folder of its own, so that it can be
    compared.
    """
    path = settings.get("FOCUSED_TOPIC")
    if not path:
        raise ConfigurationError(
            "FOCUSED_TOPIC is not set: which topic? Give -a topic=topics/NAME.toml to the "
            'topic spider, or FOCUSED_TOPIC = "NAME.toml" in the settings'
        )
    topic = load_topic(Path(path))
    folder = topic.crawl_folder(settings.get("FOCUSED_POLICY"))
    if settings.getbool("FOCUSED_SAMPLES"):
        folder = samples_folder(topic)
    if settings.get("FOCUSED_FOLDER"):
        folder = Path(settings["FOCUSED_FOLDER"])
    topic = replace(topic, output=replace(topic.output, folder=folder))
    budget, politeness = topic.budget, topic.politeness
    if (pages := whole_number(settings, "FOCUSED_PAGES")) is not None:
        budget = replace(budget, pages=pages)
    if (delay_s := non_negative(settings, "FOCUSED_DELAY_S")) is not None:
        politeness = replace(politeness, delay_s=delay_s)
    if (concurrency := whole_number(settings, "FOCUSED_CONCURRENCY")) is not None:
        politeness = replace(politeness, concurrency=concurrency)
    topic = apply_to_topic(settings, replace(topic, budget=budget, politeness=politeness))
    return samples_of(topic) if settings.getbool("FOCUSED_SAMPLES") else topic


def samples_folder(topic: Topic) -> Path:
    """Where the pages of a live training lie, beside the model."""
    return topic.training.model.with_suffix(".samples")


def samples_of(topic: Topic) -> Topic:
    """The topic as the crawl for its training samples sees it: no scope, no budget.

    A model that could be trained waits no hours for a host that is down, and
    learns from pages without putting them into an index.
    """
    return replace(
        topic,
        politeness=replace(topic.politeness, set_aside_s=0.0, noindex="keep"),
        scope=Scope(
            max_page_bytes=topic.scope.max_page_bytes,
            private_addresses=topic.scope.private_addresses,
        ),
        budget=Budget(),
        output=replace(topic.output, warc="responses", parquet=False),
    )
