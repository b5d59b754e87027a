"""Features of the Scrapy driver: found by entry points, on by topic or settings, off at no cost."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import imported_modules
import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings

from focused.crawl import SettledFetch
from focused.errors import ConfigurationError, MissingExtraError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.rendering.subrequests import RenderLimits
from focused.scrapy_addon import driver_features
from focused.scrapy_addon import features as shipped
from focused.scrapy_addon.addon_settings import all_settings, set_defaults
from focused.scrapy_addon.driver_features import (
    DriverFeature,
    DriverParts,
    connect_driver_features,
    installed_driver_features,
    join_driver_parts,
    require_library,
)
from focused.scrapy_addon.middlewares import RelevanceMiddleware
from focused.scrapy_addon.request_state import update_state
from focused.topic import Scope
from focused.topic.login import Login
from focused.web.page import Classification
from tests.scrapy_addon.own_project import crawl_web, write_project
from tests.support.packages import install
from tests.support.recorded_web import MemoryWeb, html, page
from tests.support.simulated import topic

PAGE = "http://a.test/"
ALWAYS_ON = {"steering"}


def settings(**values: Any) -> Settings:
    given = Settings()
    set_defaults(given)
    given.setdict(values, priority="project")
    return given


def on(folder: Path, given: Settings, **parts: Any) -> set[str]:
    mine = topic(folder, PAGE, **parts)
    found = installed_driver_features().items()
    return {name for name, feature in found if feature.is_on(mine, given)} - ALWAYS_ON


def test_all_that_come_with_the_driver_are_installed():
    own = [each for each in vars(shipped).values() if isinstance(each, DriverFeature)]
    assert own
    assert all(each in installed_driver_features().values() for each in own)


def test_a_plain_topic_and_its_settings_switch_none_on(tmp_path):
    assert on(tmp_path, settings()) == set()


@pytest.mark.parametrize(
    ("values", "name"),
    [({"FOCUSED_METRICS_PORT": 0}, "metrics"), ({"FOCUSED_LOG_FORMAT": "json"}, "json-log")],
)
def test_settings_switch_on_what_they_name(tmp_path, values, name):
    assert on(tmp_path, settings(**values)) == {name}


def test_the_topic_switches_on_rendering(tmp_path):
    assert on(tmp_path, settings(), scope=Scope(javascript="render")) == {"javascript"}


def test_the_settings_of_rendering_have_the_renderers_own_defaults():
    limits = RenderLimits()
    known = all_settings()
    names = {"TIMEOUT_S": "time_s", "REQUESTS": "requests", "MEMORY_MB": "memory_mb"}
    for name, attribute in {**names, "PAGES": "pages"}.items():
        assert known[f"FOCUSED_JAVASCRIPT_{name}"].default == getattr(limits, attribute)


@pytest.fixture
def two_features(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first holds something, and the second cannot be used."""
    released: list[str] = []

    def refuse(*_: object) -> DriverParts:
        raise ConfigurationError("the second cannot be used")

    def feature(connect: Any) -> SimpleNamespace:
        return SimpleNamespace(is_on=lambda *_: True, connect=connect)

    first = DriverParts(abandon=lambda: released.append("first"))
    found = {"1": feature(lambda *_: first), "2": feature(refuse)}
    monkeypatch.setattr(driver_features, "installed_driver_features", lambda: found)
    return released


def test_what_was_connected_is_released_when_another_cannot_be_used(tmp_path, two_features):
    with pytest.raises(ConfigurationError, match="the second"):
        connect_driver_features(topic(tmp_path, PAGE), Settings())
    assert two_features == ["first"]


def test_parts_of_several_features_are_joined_in_their_order():
    made: list[Any] = [SimpleNamespace(), SimpleNamespace()]
    parts = [DriverParts(authenticators=[made[0]]), DriverParts(authenticators=[made[1]])]
    joined = join_driver_parts(parts)
    assert list(joined.authenticators) == made


def test_a_missing_library_is_reported_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"FOCUSED_METRICS_PORT needs .*\[operations\]"):
        require_library("prometheus_client", "FOCUSED_METRICS_PORT")


def test_logins_are_off_in_a_replay(tmp_path):
    login = Login(("a.test",), "bearer", token="env:T")
    mine = SimpleNamespace(login=(login,), scope=topic(tmp_path, PAGE).scope)
    logins = installed_driver_features()["logins"]
    assert logins.is_on(mine, settings())  # type: ignore[arg-type]
    assert not logins.is_on(mine, settings(FOCUSED_REPLAY="127.0.0.1:1"))  # type: ignore[arg-type]


OFF = {
    "focused.scrapy_addon.item_documents",
    "focused.scrapy_addon.json_log",
    "focused.scrapy_addon.login_session",
    "focused.scrapy_addon.metrics_server",
    "focused.scrapy_addon.model_training",
    "focused.scrapy_addon.page_rendering",
    "focused.scrapy_addon.replay_handler",
    "focused.scrapy_addon.spider_requests",
    "focused.crawl.steering",
    "focused.local_server",
    "focused.archive.page_history",
    "focused.classifier.model_file",
    "focused.classifier.taxonomy",
    "focused.classifier.training_report",
    "focused.directory.directory_reader",
    "focused.parser_process",
    "focused.scrapy_addon.parser_pool",
    "focused.topic.login",
    "focused.topic.topic_keys",
    "focused.web.feeds",
    "focused.web.html.json_ld",
}
OFF_PACKAGES = {"corpus", "rendering", "reports"}
OFF_PACKAGES |= {"documents", "labels", "revisit", "rounds", "search", "spam"}
MOST_MODULES, MOST_LINES = 137, 25_400
"""Of a plain crawl: raise them only for what every crawl needs."""


def test_a_plain_crawl_imports_nothing_of_what_is_off():
    found = imported_modules.imported_modules()
    assert found.pages == 2
    assert OFF.isdisjoint(found.lines)
    assert len(found.lines) <= MOST_MODULES
    assert sum(found.lines.values()) <= MOST_LINES
    assert OFF_PACKAGES.isdisjoint(name.split(".")[1] for name in found.lines if "." in name)
    # ``scrapy`` itself imports all its commands, one of them pydantic.
    assert set(found.heavy) <= {"aiohttp", "lxml", "numpy", "pydantic"}
    assert all(_exists(name) for name in OFF)


def test_the_command_needs_no_other_library_to_start():
    code = "import sys, focused.cli.crawl; print(*sys.modules)"
    child = [sys.executable, "-P", "-c", code]
    loaded = subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()
    assert imported_modules.HEAVY.intersection(loaded) == {"aiohttp", "lxml", "numpy"}


def test_an_item_that_is_a_dict_gets_its_relevance_without_another_library(monkeypatch):
    """``itemadapter`` imports pydantic."""
    monkeypatch.setitem(sys.modules, "itemadapter", None)
    request = Request(PAGE)
    link = QueuedLink(link_key(PAGE), PAGE, "a.test", 0.5, 0.5)
    classification = Classification(0.9, on_topic=True)
    update_state(request, settled=SettledFetch(link, "fetched", classification=classification))

    async def result() -> AsyncIterator[Any]:
        yield {"url": PAGE}

    async def annotated() -> list[Any]:
        middleware = RelevanceMiddleware(cast("Crawler", None))
        response = Response(PAGE, request=request)
        return [each async for each in middleware.process_spider_output(response, result())]

    assert asyncio.run(annotated()) == [{"url": PAGE, "relevance": 0.9}]


def _exists(name: str) -> bool:
    return imported_modules.path_of(name) is not None


PRINTED = """
from scrapy import signals

from focused.scrapy_addon.driver_features import Component, DriverFeature, DriverParts
from focused.scrapy_addon.driver_features import Setting, SettingType


class Printer:
    def __init__(self, driver):
        self.driver = driver
        driver.crawler.signals.connect(self.closed, signals.spider_closed)

    def closed(self):
        print("printed", self.driver.topic.name, self.driver.slot.was_opened)


class Judge:
    async def process(self, lease, fetched, parsed, parse):
        print("judged", fetched.url)
        return fetched, parsed


def connect(topic, settings):
    return DriverParts(
        components=[Component("EXTENSIONS", "Printer", 500, Printer)],
        page_stages=[lambda driver: Judge()],
    )


printed = DriverFeature(
    is_on=lambda topic, settings: settings.getbool("FOCUSED_PRINTED"),
    connect=connect,
    settings=(Setting("FOCUSED_PRINTED", SettingType.FLAG, False, "Print the pages."),),
)
"""


@pytest.mark.parametrize("is_on", [True, False])
def test_a_package_adds_a_feature_that_a_setting_switches_on(tmp_path, is_on):
    project = write_project(tmp_path, SPIDER, PAGE, settings={"FOCUSED_PRINTED": is_on})
    entry_points = "[focused.scrapy_features]\nprinted = printed_driver:printed\n"
    install(project, "printed_driver", PRINTED, entry_points)
    done = crawl_web(project, MemoryWeb(page(PAGE, html("Start"))))
    assert ("printed whales True" in done.output) is is_on
    assert (f"judged {PAGE}" in done.output) is is_on


SPIDER = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        pass
"""
