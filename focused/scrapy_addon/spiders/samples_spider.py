"""Fetch a directory's pages for training, in a child process.

``python -m focused.scrapy_addon.spiders.samples_spider TOPIC FOLDER [REPLAY]``.

As polite and resumable as any crawl; the pages are in its WARC file.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import BaseSettings

from focused.child_processes import end_with_parent
from focused.classifier.topic_classifier import ConstantClassifier
from focused.link_scoring.protocols import ConstantLinkScorer
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.crawl_session import session_of
from focused.topic import Topic


def untrained_models(topic: Topic) -> CrawlModels:
    """Return models that classify and score nothing."""
    return CrawlModels(ConstantClassifier(), ConstantLinkScorer(), frozenset())


class SamplesSpider(Spider):
    """Fetches the pages that the directory lists."""

    name = "samples"

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Crawl breadth first, without a model."""
        super().update_settings(settings)
        settings.set("FOCUSED_MODELS", untrained_models, priority="spider")
        settings.set("FOCUSED_POLICY", "bfs", priority="spider")
        settings.set("FOCUSED_FETCH_SAMPLES", True, priority="spider")
        settings.set("FOCUSED_LOG_TO_FOLDER", True, priority="spider")

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each listed page."""
        # Scrapy imports all spiders of a project.
        from focused.directory.directory_reader import load_training_samples

        topic = session_of(self.crawler).driver.topic
        for entry in load_training_samples(topic.training).entries:
            if entry.needs_fetch:
                yield Request(entry.url)

    def parse(self, response: Response) -> None:
        """Do nothing: the page is in the archive."""


def main(arguments: list[str]) -> int:
    """Fetch the samples of a topic; return the exit status."""
    from focused.scrapy_addon.spiders.run import project_settings, run  # as above

    end_with_parent(signal.SIGTERM)
    topic, folder, replay = arguments
    given = {"FOCUSED_TOPIC": topic, "FOCUSED_FOLDER": folder, "FOCUSED_REPLAY": replay or None}
    crawler, began = run(SamplesSpider, project_settings(given))
    # Fail if stopped early: the samples are incomplete.
    ended = began and crawler.stats.get_value("finish_reason") == "finished"
    return int(not ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
