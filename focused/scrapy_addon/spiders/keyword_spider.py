"""The first crawl of a new topic: around its seeds, steered by its keywords alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Spider
from scrapy.http import Response
from scrapy.settings import BaseSettings

from focused.classifier.keyword_classifier import KeywordClassifier
from focused.link_scoring.apprentice import Apprentice
from focused.scrapy_addon.crawl_session import CrawlModels
from focused.topic import Topic


def keyword_guide(topic: Topic) -> CrawlModels:
    """Judge and apprentice that know the topic's keywords."""
    classifier = KeywordClassifier(topic.training.keywords)
    return CrawlModels(classifier, Apprentice(classifier), frozenset())


class KeywordSpider(Spider):
    """Follows nothing itself: the crawl behind the scheduler chooses every page."""

    name = "first"

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Links are followed by the keywords; the log goes to the crawl's folder."""
        super().update_settings(settings)
        settings.set("FOCUSED_MODELS", keyword_guide, priority="spider")
        settings.set("FOCUSED_FOLLOW_LINKS", True, priority="spider")
        settings.set("FOCUSED_LOG_TO_FOLDER", True, priority="spider")

    async def start(self) -> AsyncIterator[Any]:
        """The seeds are in the frontier already."""
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    def parse(self, response: Response) -> None:
        """The archive has it."""
