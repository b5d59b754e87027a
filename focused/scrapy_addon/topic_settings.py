"""The topic as a crawler's settings have it: which one, and what differs this time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
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
    if settings.get("FOCUSED_PAGES") is not None:
        topic = replace(
            topic, budget=replace(topic.budget, pages=_positive(settings, "FOCUSED_PAGES"))
        )
    if settings.get("FOCUSED_DELAY_S") is not None:
        delay_s = _number(settings, "FOCUSED_DELAY_S")
        topic = replace(topic, politeness=replace(topic.politeness, delay_s=delay_s))
    if settings.get("FOCUSED_CONCURRENCY") is not None:
        concurrency = _positive(settings, "FOCUSED_CONCURRENCY")
        topic = replace(topic, politeness=replace(topic.politeness, concurrency=concurrency))
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


def _positive(settings: BaseSettings, name: str) -> int:
    value = _number(settings, name)
    if value < 1 or value != int(value):
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a whole number from 1 on")
    return int(value)


def _number(settings: BaseSettings, name: str) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise ConfigurationError(f"{name}: {value} must be 0 or more")
    return value
