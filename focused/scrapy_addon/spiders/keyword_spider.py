"""The first crawl of a new topic: around its seeds, guided only by its keywords."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from focused.classifier.keyword_classifier import KeywordClassifier
from focused.link_scoring.apprentice import Apprentice
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from focused.topic import Topic


def keyword_models(topic: Topic) -> CrawlModels:
    """Return a keyword classifier, and an apprentice that uses it."""
    classifier = KeywordClassifier(topic.training.keywords)
    return CrawlModels(classifier, Apprentice(classifier), frozenset())


class KeywordSpider(TopicSpider):
    """Crawls a topic without a model."""

    name = "first"

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Classify by the keywords; print no report."""
        super().update_settings(settings)
        settings.set("FOCUSED_MODELS", keyword_models, priority="spider")
        settings.set("FOCUSED_REPORT", False, priority="spider")
