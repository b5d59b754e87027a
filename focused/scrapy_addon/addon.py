"""The add-on: reads the topic, loads or trains the model, installs scheduler and middlewares.

:mod:`focused.scrapy_addon.scrapy_settings` decides about the user's Scrapy settings.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.trackref import live_refs

from focused.durations import Clock
from focused.errors import FocusedError, exit_before_start, print_notice
from focused.files import make_private_folder
from focused.installed_features import installed_features
from focused.scrapy_addon.addon_settings import (
    check_settings,
    set_defaults,
    topic_from_settings,
)
from focused.scrapy_addon.assembly import Install, assemble
from focused.scrapy_addon.crawl_session import SessionHolder, single_crawl
from focused.scrapy_addon.driver_features import DriverParts, connect_driver_features
from focused.scrapy_addon.progress import install_quiet_formatter
from focused.scrapy_addon.scrapy_settings import install_replay, warn_of_ignored
from focused.scrapy_addon.state_folder import check_state
from focused.topic import Topic, adapt_to_recorded_web
from focused.web.scope_filter import check_seeds_in_scope

_COMPONENTS_BY_SWITCH = {
    "EXTENSIONS_BASE": {
        "REMOTE_CONTROL_ENABLED": "scrapy.extensions.remote_control.RemoteControl",
        "TELNETCONSOLE_ENABLED": "scrapy.extensions.telnet.TelnetConsole",
    },
    "DOWNLOADER_MIDDLEWARES_BASE": {
        "COOKIES_ENABLED": "scrapy.downloadermiddlewares.cookies.CookiesMiddleware",
    },
}


class FocusedAddon(SessionHolder):
    """Turns a Scrapy crawl into a focused one."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._spider_name = crawler.spidercls.name

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FocusedAddon:
        """Create the add-on of a crawler."""
        return cls(crawler)

    def update_settings(self, settings: Settings) -> None:
        """Check the settings and install all components; exit with a message on an error."""
        try:
            set_defaults(settings)  # raises for a feature that cannot be imported
            if not _is_crawl(self._crawler):
                install_replay(settings)  # no other change
                return
        except FocusedError as error:
            _exit_with_error(error, self._crawler)
        # The spider argument -a topic=FILE.
        topic_file = getattr(self._crawler.spider, "topic_file", None)
        if topic_file:
            settings.set("FOCUSED_TOPIC", topic_file, priority="spider")
        try:
            check_settings(settings)
            installed_features()  # raises for one that cannot be imported
            with _interruptible(settings):
                topic, parts, install = self._prepare(settings)
        except FocusedError as error:
            _exit_with_error(error, self._crawler)
        except KeyboardInterrupt:
            exit_before_start()
        warn_of_ignored(settings, topic)
        install(settings)
        _apply_topic_settings(settings, topic)
        _skip_disabled_components(settings)
        _log_to_folder(settings, topic)
        install_quiet_formatter(settings)
        for configure in parts.configure:
            configure(settings, self._crawler)

    def _prepare(self, settings: BaseSettings) -> tuple[Topic, DriverParts, Install]:
        """Check topic and folder, load or train the models, and build the session."""
        topic = topic_from_settings(settings)
        replayed = bool(settings["FOCUSED_REPLAY"])
        parts = connect_driver_features(topic, settings)
        try:
            check_seeds_in_scope(adapt_to_recorded_web(topic) if replayed else topic)
            place = settings["FOCUSED_PARTITION"]
            spider = self._spider_name if place is None else place.identity
            if place is not None:
                topic = place.share(topic)
            # Check now: Scrapy would print a traceback if the scheduler failed to open it.
            check_state(topic, settings["FOCUSED_POLICY"], replayed=replayed, spider=spider)
            from focused.scrapy_addon.crawl_models import load_models  # slow to import

            models = load_models(settings, topic)
            topic = adapt_to_recorded_web(topic) if replayed else topic
            if place is not None:
                open_crawl = place.opener(
                    topic,
                    settings["FOCUSED_POLICY"],
                    models,
                    replayed=replayed,
                    clock=self._clock,
                )
            else:
                open_crawl = single_crawl(
                    topic,
                    settings["FOCUSED_POLICY"],
                    models,
                    follow_links=settings.getbool("FOCUSED_FOLLOW_LINKS"),
                    replayed=replayed,
                    spider=spider,
                )
            self.session, install = assemble(
                self._crawler, settings, topic, models, open_crawl, parts
            )
        except BaseException:
            parts.abandon()
            raise
        return topic, parts, install

    def _clock(self) -> Clock:
        assert self.session is not None, "the crawl is opened by its session"
        return self.session.driver.clock


def _is_crawl(crawler: Crawler) -> bool:
    """Whether the spider itself runs, not a Scrapy command that borrows it.

    ``scrapy shell`` never starts the spider; ``fetch``, ``view``, ``parse`` and ``check`` replace
    its ``start``; ``bench`` brings its own spider.
    """
    spider = crawler.spider
    if spider is None:
        return False
    return not type(spider).start.__module__.startswith("scrapy.commands.")


def _apply_topic_settings(settings: Settings, topic: Topic) -> None:
    politeness = topic.politeness
    of_topic = {  # it includes the user's values: see scrapy_settings
        "USER_AGENT": politeness.user_agent,
        # The frontier applies delays; Scrapy's slots only limit connections.
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "CONCURRENT_REQUESTS": politeness.concurrency,
        "DOWNLOAD_TIMEOUT": politeness.timeout_s,
        "DOWNLOAD_MAXSIZE": topic.scope.max_page_bytes,
        "ROBOTSTXT_OBEY": False,  # the downloader obeys it by RFC 9309
        "AUTOTHROTTLE_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
    }
    defaults = {
        "DOWNLOAD_WARNSIZE": 0,
        # Do not listen on ports by default.
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "HTTPERROR_ALLOW_ALL": False,
        "CONCURRENT_ITEMS": 1,
        "COOKIES_ENABLED": False,
        "DNS_TIMEOUT": 31,  # five tries: 1, 2, 4, 8, 16 s
        "LOGSTATS_INTERVAL": 0,
    }
    settings.update(of_topic, priority="cmdline")
    settings.update(defaults, priority="addon")


def _skip_disabled_components(settings: Settings) -> None:
    """Remove what is switched off from Scrapy's components: importing some of it is slow."""
    for base, names in _COMPONENTS_BY_SWITCH.items():
        off = {name for switch, name in names.items() if not settings.getbool(switch)}
        kept = {name: order for name, order in settings[base].items() if name not in off}
        settings.set(base, kept, priority="cmdline")  # above that of spiders


def _log_to_folder(settings: Settings, topic: Topic) -> None:
    if settings.getbool("FOCUSED_LOG_TO_FOLDER") and not settings["LOG_FILE"]:
        make_private_folder(topic.output.folder)
        settings.set("LOG_FILE", str(topic.output.folder / "crawl.log"), priority="addon")
        settings.set("LOG_FILE_APPEND", True, priority="addon")
        # The level of the terminal is WARNING: see spiders/settings.py.
        settings.set("LOG_LEVEL", settings["FOCUSED_LOG_LEVEL"], priority="cmdline")
        if settings.getbool("FOCUSED_OWNS_PROCESS"):
            # On a full disk, each log line would print a traceback.
            logging.raiseExceptions = False


@contextmanager
def _interruptible(settings: BaseSettings) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM interrupt a training, which blocks the reactor.

    Signal handlers stay unchanged if the process is not the crawl's own.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and settings.getbool("FOCUSED_OWNS_PROCESS")):
        yield
        return
    before = {
        each: signal.signal(each, signal.default_int_handler)
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _exit_with_error(error: FocusedError, crawler: Crawler) -> NoReturn:
    """Exit with the message, without Scrapy's traceback.

    If another crawl runs in the process, raise the error instead.
    """
    print_notice(str(error))
    if _another_crawl_runs(crawler):
        raise error
    raise SystemExit(2) from None


def _another_crawl_runs(crawler: Crawler) -> bool:
    """Whether Scrapy runs another crawl in this process."""
    spiders = [
        spider for kind in live_refs if issubclass(kind, Spider) for spider in live_refs[kind]
    ]
    others = (getattr(spider, "crawler", None) for spider in spiders)
    return any(other is not None and other is not crawler and other.crawling for other in others)
