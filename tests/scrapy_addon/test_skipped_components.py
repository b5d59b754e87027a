"""Scrapy components that the add-on removes for speed, and where they stay."""

import pytest
from scrapy.settings import Settings

from focused.scrapy_addon.progress import QuietLogFormatter, install_quiet_formatter
from focused.scrapy_addon.spiders.topic_spider import TopicSpider

PROXY = "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware"
OFFSITE = "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware"
BASES = ("SPIDER_MIDDLEWARES_BASE", "DOWNLOADER_MIDDLEWARES_BASE")


class OwnSpider(TopicSpider):
    name = "own"


def updated(spider: type[TopicSpider]) -> Settings:
    settings = Settings({"SPIDER_MIDDLEWARES": {"mine.Own": 500}})
    spider.update_settings(settings)
    return settings


def test_the_topic_spider_goes_without_what_scrapy_does_to_a_spiders_requests():
    settings = updated(TopicSpider)
    assert dict(settings["SPIDER_MIDDLEWARES_BASE"]) == {}
    assert OFFSITE not in settings["DOWNLOADER_MIDDLEWARES_BASE"]
    assert not settings.getbool("DOWNLOADER_STATS")


def test_proxies_and_a_projects_own_middlewares_stay():
    settings = updated(TopicSpider)
    assert PROXY in settings["DOWNLOADER_MIDDLEWARES_BASE"]
    assert dict(settings["SPIDER_MIDDLEWARES"]) == {"mine.Own": 500}


@pytest.mark.parametrize("name", BASES)
def test_a_spider_made_from_it_has_all_of_scrapys_middlewares(name):
    assert dict(updated(OwnSpider)[name]) == dict(Settings()[name])


@pytest.mark.parametrize(
    ("level", "quiet"), [("INFO", True), ("WARNING", True), (20, True), ("DEBUG", False)]
)
def test_pages_are_reported_in_the_log_where_it_has_lines_of_that_level(level, quiet):
    settings = Settings({"LOG_LEVEL": level})
    install_quiet_formatter(settings)
    assert (settings["LOG_FORMATTER"] is QuietLogFormatter) == quiet


def test_a_formatter_of_its_own_stays():
    settings = Settings({"LOG_FORMATTER": "mine.Formatter"})
    install_quiet_formatter(settings)
    assert settings["LOG_FORMATTER"] == "mine.Formatter"


def test_what_is_reported_of_pages_and_items_is_nothing():
    formatter = QuietLogFormatter()
    assert formatter.crawled(None, None, None) is None
    assert formatter.scraped(None, None, None) is None
