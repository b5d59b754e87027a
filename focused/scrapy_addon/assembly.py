"""Wire a crawl that Scrapy drives: the one place that connects its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings

from focused.crawl import ROBOTS
from focused.durations import CrawlClock
from focused.scrapy_addon.access_checks import AddressCheck, HostTurns, RobotsCheck
from focused.scrapy_addon.addon_settings import parser_processes, parsing_limits, replay_clock
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.crawl_session import CrawlSession, OpenCrawl, write_results
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.download_handlers import FocusedDownloadHandler, TransferOptions
from focused.scrapy_addon.downloader import Access, CrawlDownloader
from focused.scrapy_addon.driver_features import Component, Driver, DriverParts
from focused.scrapy_addon.middlewares import DecodingMiddleware, RelevanceMiddleware
from focused.scrapy_addon.name_resolver import NameResolver, make_lookup
from focused.scrapy_addon.page_processing import PageParsers, PageProcessor
from focused.scrapy_addon.progress import ProgressExtension
from focused.scrapy_addon.request_state import state_of
from focused.scrapy_addon.robots_request import limit_robots_downloads
from focused.scrapy_addon.run_status import EngineControl, RunStatus
from focused.scrapy_addon.scheduler import FocusedScheduler
from focused.scrapy_addon.statistics import CrawlStatistics
from focused.topic import Topic
from focused.web.decoding import media_type_of

Install = Callable[[Settings], None]
"""Installs the components of a crawl in its settings."""

_REPLACED_DOWNLOADER_MIDDLEWARES = (
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",
    "scrapy.downloadermiddlewares.retry.RetryMiddleware",
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
)


def assemble(
    crawler: Crawler,
    settings: BaseSettings,
    topic: Topic,
    models: CrawlModels,
    open_crawl: OpenCrawl,
    parts: DriverParts,
) -> tuple[CrawlSession, Install]:
    """Build the session of a crawler, and what installs its components.

    ``parts`` are those of the features. Raises ConfigurationError.
    """
    follow_links = settings.getbool("FOCUSED_FOLLOW_LINKS")
    replayed = bool(settings["FOCUSED_REPLAY"])
    slot, engine = CrawlSlot(), EngineControl(crawler)
    clock = replay_clock(settings) or CrawlClock()
    status = RunStatus(topic.output.folder, engine.close)
    parsers = PageParsers(
        slot, processes=parser_processes(settings), limits=lambda: parsing_limits(settings)
    )
    statistics = CrawlStatistics(crawler, slot, parsers, replayed=replayed)
    driver = Driver(
        crawler, topic, settings["FOCUSED_POLICY"], slot, clock, status, engine, statistics
    )
    pages = PageProcessor(
        slot,
        clock,
        status,
        parsers,
        topic.politeness.user_agent,
        [make(driver) for make in parts.page_stages],
    )
    session = CrawlSession(
        driver,
        models,
        pages,
        parsers,
        follow_links=follow_links,
        open_crawl=open_crawl,
        write_results=partial(write_results, settings, topic),
    )
    access = Access(
        RobotsCheck(slot, clock, engine.download, pages.parse_robots, engine.wake),
        HostTurns(slot, clock, engine.wake),
        AddressCheck(
            lambda: _resolver(settings, statistics),
            private=topic.scope.private_addresses,
            resolves=not replayed,
        ),
        [make(driver) for make in parts.gates],
    )

    def make_downloader(crawler: Crawler) -> CrawlDownloader:
        used = crawler.settings["DOWNLOAD_HANDLERS"]
        if any(used.get(scheme) is not handler for scheme in ("http", "https")):
            limit_robots_downloads(crawler)  # of a project's own handlers
        return CrawlDownloader(
            crawler, topic, slot, clock, access, pages, follow_links=follow_links
        )

    def refuses(request: Request, status: int, content_type: str) -> bool:
        state = state_of(request)
        if status != 200 or not state.is_plain or state.purpose == ROBOTS or state.lease is None:
            return False
        crawl = slot.of_lease(state.lease)
        return (
            crawl is not None
            and slot.has_leased(request)
            and crawl.parser.refuses_type(media_type_of({"content-type": content_type}))
        )

    handler_class = _replay_handler() if replayed else FocusedDownloadHandler
    options = TransferOptions(
        # All hosts of a replayed web have one address.
        one_per_address=topic.politeness.per_address and not replayed,
        keeps_exchanges=topic.output.warc != "off",
        refuses=refuses,
        authenticators=parts.authenticators,
    )
    # One for http and https: they share connections.
    handler = ComponentFactory("DownloadHandler", cache(lambda: handler_class(crawler, options)))

    def install(settings: Settings) -> None:
        # The highest priority: nothing works without these.
        settings.set("SCHEDULER", FocusedScheduler, priority="cmdline")
        settings.set("DOWNLOADER", make_downloader, priority="cmdline")
        _install_handler(settings, handler, replaces_all=replayed)
        _install_components(settings, driver, parts)

    return session, install


class ComponentFactory:
    """What Scrapy builds a component from, by :meth:`from_crawler`."""

    lazy = True  # as a download handler

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self._make = make
        self.__qualname__ = name  # by which Scrapy tells components apart

    def __repr__(self) -> str:
        return f"<{self.__qualname__} of the Focused add-on>"

    def __call__(self) -> object:
        """Scrapy takes only what it could call; it calls :meth:`from_crawler`."""
        raise NotImplementedError

    def from_crawler(self, crawler: Crawler) -> Any:
        """Make the component."""
        return self._make()


def _replay_handler() -> type[FocusedDownloadHandler]:
    from focused.scrapy_addon.replay_handler import ReplayDownloadHandler  # only for a replay

    return ReplayDownloadHandler


def _resolver(settings: BaseSettings, statistics: CrawlStatistics) -> NameResolver:
    cached = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
    return NameResolver(
        make_lookup(settings),
        cached,
        time.monotonic,
        lambda event: statistics.count(f"resolver/{event}"),
    )


def _install_handler(settings: Settings, handler: ComponentFactory, *, replaces_all: bool) -> None:
    """Replace Scrapy's own handlers of http and https; a project's own only in a replay."""
    chosen = settings.getdict("DOWNLOAD_HANDLERS")
    if replaces_all:  # a replayed crawl must not reach the live Web
        both = {**chosen, "http": handler, "https": handler}
        settings.set("DOWNLOAD_HANDLERS", both, priority="cmdline")
        return
    stock = settings["DOWNLOAD_HANDLERS_BASE"]
    ours = {scheme: handler for scheme in ("http", "https") if scheme in stock}
    settings.set("DOWNLOAD_HANDLERS", {**ours, **chosen}, priority="addon")


def _install_components(settings: Settings, driver: Driver, parts: DriverParts) -> None:
    add: Callable[..., None] = settings.set_in_component_priority_dict
    progress = Component("EXTENSIONS", "ProgressExtension", 500, ProgressExtension.of_driver)
    for middleware in _REPLACED_DOWNLOADER_MIDDLEWARES:
        add("DOWNLOADER_MIDDLEWARES", middleware, None)
    add("DOWNLOADER_MIDDLEWARES", DecodingMiddleware, 590)
    add("SPIDER_MIDDLEWARES", RelevanceMiddleware, 950)
    for each in (progress, *parts.components):
        factory = ComponentFactory(each.name, partial(each.make, driver))
        add(each.setting, factory, each.order)
