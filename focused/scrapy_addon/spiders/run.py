"""Run a spider in this process, like ``scrapy crawl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.settings import Settings

from focused.scrapy_addon.addon_settings import set_defaults


def project_settings(given: Mapping[str, Any]) -> Settings:
    """Return the project's settings with ``given`` as on the command line; None is skipped."""
    settings = Settings()
    settings.setmodule("focused.scrapy_addon.spiders.settings", priority="project")
    set_defaults(settings)
    settings.set("FOCUSED_OWNS_PROCESS", True, priority="command")
    for name, value in given.items():
        if value is not None:
            settings.set(name, value, priority="cmdline")
    return settings


def run(spider: type[Spider], settings: Settings, **arguments: Any) -> tuple[Crawler, bool]:
    """Run the spider to its end; return its crawler, and whether it was started."""
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(spider)
    process.crawl(crawler, **arguments)
    process.start()
    return crawler, not process.bootstrap_failed
