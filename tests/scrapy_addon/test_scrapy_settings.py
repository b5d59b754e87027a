"""Each of Scrapy's settings is documented, and has the effect that its row states."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings, default_settings

from focused.errors import ConfigurationError
from focused.scrapy_addon.addon import FocusedAddon
from focused.scrapy_addon.addon_settings import set_defaults, topic_from_settings
from focused.scrapy_addon.scrapy_settings import IGNORED, IgnoredSettings, ignored
from focused.topic import Topic
from tests.support.crawling import ROOT, USER_AGENT, write_topic

GUIDE = "tests.support.whale_models.fixed_models"
NAMES = [name for name in dir(default_settings) if name.isupper()]


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    return write_topic(tmp_path / "topics", "http://a.test/", delay_s=0.5)


def set_by(topic: Path, **values: Any) -> Settings:
    settings = Settings()
    set_defaults(settings)
    settings.setdict({"FOCUSED_TOPIC": str(topic), **values}, priority="project")
    return settings


def read(topic: Path, **values: Any) -> Topic:
    return topic_from_settings(set_by(topic, **values))


def warnings(topic: Path, **values: Any) -> list[str]:
    return list(ignored(set_by(topic, **values), read(topic)))


def updated(topic: Path, **values: Any) -> Settings:
    spider = Spider("own")
    crawler = cast(Crawler, SimpleNamespace(spider=spider, spidercls=spider))
    settings = set_by(topic, FOCUSED_MODELS=GUIDE, **values)
    FocusedAddon(crawler).update_settings(settings)
    return settings


@pytest.fixture(scope="module")
def documented() -> list[IgnoredSettings]:
    """The rows about Scrapy's settings in the documentation."""
    docs = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Scrapy's settings$(.*?)^## ", docs, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return [IgnoredSettings(tuple(re.findall("`([^`]+)`", each)), "") for each in cells]


@pytest.mark.parametrize("name", NAMES)
def test_each_of_scrapys_settings_has_one_row(name, documented):
    rows = [row for row in documented if name in row.names]
    assert len(rows or [row for row in documented if row.covers(name)]) == 1


# Settings that change the topic


def test_download_delay_makes_the_topics_delay_longer_never_shorter(topic):
    assert read(topic, DOWNLOAD_DELAY=2).politeness.delay_s == 2.0
    assert read(topic, DOWNLOAD_DELAY=0.1).politeness.delay_s == 0.5


def test_a_host_with_a_delay_of_its_own_keeps_download_delay_too(tmp_path):
    delays = 'delays = { "fast.test" = 0.1, "slow.test" = 9.0 }'
    topic = write_topic(tmp_path, "http://a.test/", politeness=delays)
    given = read(topic, DOWNLOAD_DELAY=2).politeness.delays
    assert given == {"fast.test": 2.0, "slow.test": 9.0}


def test_focused_delay_s_takes_precedence_over_download_delay(topic):
    assert read(topic, DOWNLOAD_DELAY=2, FOCUSED_DELAY_S=0).politeness.delay_s == 0.0


def test_scrapys_slots_add_no_delay_of_their_own(topic):
    assert updated(topic, DOWNLOAD_DELAY=2)["DOWNLOAD_DELAY"] == 0


def test_concurrent_requests_is_the_topics_concurrency(topic):
    assert read(topic, CONCURRENT_REQUESTS=3).politeness.concurrency == 3
    assert updated(topic, CONCURRENT_REQUESTS=3)["CONCURRENT_REQUESTS"] == 3
    given = {"CONCURRENT_REQUESTS": 3, "FOCUSED_CONCURRENCY": 5}
    assert updated(topic, **given)["CONCURRENT_REQUESTS"] == 5


def test_download_timeout_and_maxsize_are_the_topics(topic):
    given = {"DOWNLOAD_TIMEOUT": 7, "DOWNLOAD_MAXSIZE": 1234}
    found, settings = read(topic, **given), updated(topic, **given)
    assert (found.politeness.timeout_s, found.scope.max_page_bytes) == (7.0, 1234)
    assert (settings["DOWNLOAD_TIMEOUT"], settings["DOWNLOAD_MAXSIZE"]) == (7.0, 1234)


def test_depth_limit_bounds_the_links_that_the_crawl_follows(topic):
    assert read(topic, DEPTH_LIMIT=4, FOCUSED_FOLLOW_LINKS=True).scope.max_depth == 4
    assert read(topic, DEPTH_LIMIT=0, FOCUSED_FOLLOW_LINKS=True).scope.max_depth is None
    assert read(topic, DEPTH_LIMIT=4).scope.max_depth is None, "Scrapy applies it itself"


def test_the_smaller_of_depth_limit_and_max_depth_counts(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/", scope="max_depth = 2")
    assert read(topic, DEPTH_LIMIT=4, FOCUSED_FOLLOW_LINKS=True).scope.max_depth == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DOWNLOAD_DELAY", -1),
        ("DOWNLOAD_DELAY", "long"),
        ("CONCURRENT_REQUESTS", 0),
        ("DOWNLOAD_TIMEOUT", 0),
        ("DOWNLOAD_MAXSIZE", 0),
    ],
)
def test_a_value_that_no_crawl_can_have_is_refused_by_name(topic, name, value):
    with pytest.raises(ConfigurationError, match=name):
        read(topic, **{name: value})


# Settings that are ignored

TRIED = {
    "USER_AGENT": "Other/1.0",
    "ROBOTSTXT_USER_AGENT": "Other",
    "ROBOTSTXT_OBEY": False,
    "ROBOTSTXT_PARSER": "mine.Parser",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    "CONCURRENT_REQUESTS_PER_IP": 4,
    "RANDOMIZE_DOWNLOAD_DELAY": True,
    "DOWNLOAD_DELAY_JITTER": 0.2,
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_MAX_DELAY": 5,
    "RETRY_ENABLED": False,
    "RETRY_TIMES": 9,
    "RETRY_HTTP_CODES": [418],
    "REDIRECT_ENABLED": False,
    "REDIRECT_MAX_TIMES": 3,
    "METAREFRESH_ENABLED": False,
    "MEDIA_ALLOW_REDIRECTS": True,
    "DEPTH_PRIORITY": 1,
    "SCHEDULER": "mine.Scheduler",
    "SCHEDULER_DISK_QUEUE": "mine.Queue",
    "SCHEDULER_PRIORITY_QUEUE": "mine.Queue",
    "DUPEFILTER_CLASS": "mine.Filter",
    "JOBDIR": "job",
    "DOWNLOADER": "mine.Downloader",
    "DNS_RESOLVER": "mine.Resolver",
    "TWISTED_DNS_RESOLVER": "mine.Resolver",
    "DOWNLOADER_CLIENTCONTEXTFACTORY": "mine.Factory",
    "HTTPX_HTTP2_ENABLED": True,
}


@pytest.mark.parametrize(("name", "value"), TRIED.items())
def test_an_ignored_setting_is_one_line_that_names_it(topic, name, value):
    (line,) = warnings(topic, **{name: value})
    assert line.startswith(f"{name} = {value!r} is ignored: ")


def test_each_row_of_ignored_settings_is_tried_above():
    assert all(any(row.covers(name) for name in TRIED) for row in IGNORED)


def test_a_warning_is_in_the_log_at_the_start(topic, caplog):
    updated(topic, RETRY_TIMES=9)
    assert "RETRY_TIMES = 9 is ignored: the frontier retries: politeness.max_tries" in caplog.text


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 1},
        {"USER_AGENT": USER_AGENT},
        {"RANDOMIZE_DOWNLOAD_DELAY": False, "AUTOTHROTTLE_ENABLED": False, "RETRY_TIMES": 2},
    ],
    ids=["nothing", "the project template", "the topic's user agent", "values of the crawl"],
)
def test_settings_that_agree_with_the_crawl_are_not_reported(topic, given):
    assert warnings(topic, **given) == []


# Settings that are honoured

HONOURED = {
    "HTTPCACHE_ENABLED": True,
    "COOKIES_ENABLED": True,
    "CLOSESPIDER_PAGECOUNT": 5,
    "DNS_TIMEOUT": 5,
    "DNSCACHE_SIZE": 50,
    "HTTPPROXY_ENABLED": False,
    "LOG_LEVEL": "DEBUG",
    "MEMUSAGE_LIMIT_MB": 500,
    "FEEDS": {"items.json": {"format": "json"}},
    "ITEM_PIPELINES": {"mine.Pipeline": 300},
    "TELNETCONSOLE_ENABLED": True,
    "REMOTE_CONTROL_ENABLED": True,
    "CONCURRENT_ITEMS": 50,
    "LOGSTATS_INTERVAL": 60.0,
    "HTTPERROR_ALLOW_ALL": True,
    "DOWNLOAD_WARNSIZE": 100,
    "DOWNLOADER_STATS": False,
}


@pytest.mark.parametrize(("name", "value"), HONOURED.items())
def test_an_honoured_setting_keeps_its_value_without_a_warning(topic, name, value):
    assert warnings(topic, **{name: value}) == []
    found = updated(topic, **{name: value})[name]
    assert (dict(found) if isinstance(value, dict) else found) == value


def test_a_projects_middlewares_stay_beside_the_add_ons(topic):
    mine = {"scrapy.spidermiddlewares.depth.DepthMiddleware": 300}
    settings = updated(topic, DOWNLOADER_MIDDLEWARES=mine, SPIDER_MIDDLEWARES=mine)
    assert settings["DOWNLOADER_MIDDLEWARES"][next(iter(mine))] == 300
    assert settings["SPIDER_MIDDLEWARES"][next(iter(mine))] == 300
