"""A classifier that takes all the time or memory there is over pages that ask for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from focused.topic import Topic
from focused.web.page import Classification, Page
from tests.support.whale_models import WhaleClassifier, WhaleScorer

if TYPE_CHECKING:
    from focused.scrapy_addon.crawl_models import CrawlModels

MARK = "PYTHON_TEST_MARK"  # parser processes inherit only variables with such a name
"""The variable that names a file which is made when such a page is classified."""


class ExhaustibleClassifier(WhaleClassifier):
    def classify(self, page: Page) -> Classification:
        if page.title in ("endless", "huge") and MARK in os.environ:
            Path(os.environ[MARK]).touch()
        while page.title == "endless":
            pass
        if page.title == "huge":
            bytearray(10**13)
        return super().classify(page)


def models(topic: Topic) -> CrawlModels:
    from focused.scrapy_addon.crawl_models import CrawlModels

    return CrawlModels(ExhaustibleClassifier(), WhaleScorer(), frozenset({"http://a.test/trained"}))
