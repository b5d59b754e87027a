"""The first crawl of a new topic: around its seeds, guided only by its keywords."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Spider
from scrapy.http import Response
from scrapy.settings import BaseSettings

from focused.classifier.keyword_classifier import KeywordClassifier
from focused.link_scoring.apprentice import Apprentice
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.topic import Topic


def keyword_models(topic: Topic) -> CrawlModels:
    """Return a keyword classifier, and an apprentice that uses it."""
    classifier = KeywordClassifier(topic.training.keywords)
    return CrawlModels(classifier, Apprentice(classifier), frozenset())


class KeywordSpider(Spider):
    """Receives pages; the crawl behind the scheduler chooses them."""

    name = "first"

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Follow links by the keywords; log to the crawl's folder."""
        super().update_settings(settings)
        settings.set("FOCUSED_MODELS", keyword_models, priority="spider")
        settings.set("FOCUSED_FOLLOW_LINKS", True, priority="spider")
        settings.set("FOCUSED_LOG_TO_FOLDER", True, priority="spider")

    async def start(self) -> AsyncIterator[Any]:
        """Yield nothing: the seeds are in the frontier."""
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    def parse(self, response: Response) -> None:
        """Do nothing: the page is in the archive."""
