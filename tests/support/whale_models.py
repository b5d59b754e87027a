"""A classifier and a scorer that anyone can check by eye: how much a text speaks of whales.

Each parser process imports this module for the classifier. Functions that only the crawl calls
import Scrapy: without it a process starts in half the CPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.topic import Topic
from focused.web.page import Classification, Link, Page

if TYPE_CHECKING:
    from focused.scrapy_addon.crawl_models import CrawlModels


class WhaleClassifier:
    threshold = 0.5

    def classify(self, page: Page) -> Classification:
        relevance = 0.9 if "whale" in f"{page.title} {page.text}".lower() else 0.1
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([2.0 if "whale" in text.lower() else 0.0 for text in texts])


class StrictWhaleClassifier(WhaleClassifier):
    """Pages without whales are far off topic."""

    def classify(self, page: Page) -> Classification:
        found = super().classify(page)
        return found if found.on_topic else replace(found, relevance=0.01)


class TemperedWhaleClassifier(WhaleClassifier):
    """What is stored and shown is less sure; what guides the crawl is as before."""

    def classify(self, page: Page) -> Classification:
        found = super().classify(page)
        return replace(found, relevance=0.6 if found.on_topic else 0.3, untempered=found.relevance)


class WhaleScorer:
    feature_names = ("anchor", "parent")

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        anchor = np.array(["whale" in f"{link.anchor} {link.url}" for link in links], dtype=float)
        parent = np.full(len(links), visit.classification.guiding_relevance)
        return ScoredLinks(0.6 * anchor + 0.3 * parent, np.column_stack([anchor, parent]))


def fixed_models(topic: Topic) -> CrawlModels:
    from focused.scrapy_addon.crawl_models import CrawlModels

    return CrawlModels(WhaleClassifier(), WhaleScorer(), frozenset({"http://a.test/trained"}))


def learning_models(topic: Topic) -> CrawlModels:
    from focused.scrapy_addon.crawl_models import CrawlModels

    return CrawlModels(
        WhaleClassifier(), Apprentice(WhaleClassifier()), frozenset({"http://a.test/trained"})
    )
