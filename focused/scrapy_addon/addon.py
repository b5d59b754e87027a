"""The add-on: reads the topic, loads or trains the model, installs scheduler and middlewares.

:mod:`focused.scrapy_addon.scrapy_settings` decides about the user's Scrapy settings.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.trackref import live_refs

from focused.errors import (
    ConfigurationError,
    FocusedError,
    escape_control_characters,
    missing_extra,
)
from focused.file_access import make_private_folder
from focused.installed_features import installed_features
from focused.scrapy_addon.addon_settings import (
    DEFAULTS,
    check_settings,
    index_address,
    load_models_factory,
    parser_processes,
    parsing_limits,
    replay_clock,
    topic_from_settings,
)
from focused.scrapy_addon.crawl_models import CrawlModels, load_crawl_models
from focused.scrapy_addon.crawl_session import CrawlSession, SessionHolder, check_state
from focused.scrapy_addon.download_handlers import (
    FocusedDownloadHandler,
    install_replay,
)
from focused.scrapy_addon.downloader import SettlingDownloader
from focused.scrapy_addon.login_session import check_login_support
from focused.scrapy_addon.middlewares.access_middlewares import (
    AddressMiddleware,
    PolitenessMiddleware,
    RobotsMiddleware,
)
from focused.scrapy_addon.middlewares.login_middleware import LoginMiddleware
from focused.scrapy_addon.middlewares.relevance_middleware import RelevanceMiddleware
from focused.scrapy_addon.middlewares.response_middlewares import (
    DecodingMiddleware,
    SettlingMiddleware,
)
from focused.scrapy_addon.progress import ProgressExtension, install_quiet_formatter
from focused.scrapy_addon.scheduler import FocusedScheduler
from focused.scrapy_addon.scrapy_settings import warn_of_ignored
from focused.scrapy_addon.steering_extension import SteeringExtension
from focused.search.server_address import CLIENT_LIBRARIES
from focused.topic import Topic, adapt_to_recorded_web
from focused.web.scope_filter import check_seeds_in_scope

_REPLACED_DOWNLOADER_MIDDLEWARES = (
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",
    "scrapy.downloadermiddlewares.retry.RetryMiddleware",
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
)

_EXTENSIONS_BY_SWITCH = {
    "REMOTE_CONTROL_ENABLED": "scrapy.extensions.remote_control.RemoteControl",
    "TELNETCONSOLE_ENABLED": "scrapy.extensions.telnet.TelnetConsole",
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
        for name, default in DEFAULTS.items():
            settings.setdefault(name, default, priority="default")
        if not _is_crawl(self._crawler):
            self._install_replay_only(settings)
            return
        # The spider argument -a topic=FILE.
        topic_file = getattr(self._crawler.spider, "topic_file", None)
        if topic_file:
            settings.set("FOCUSED_TOPIC", topic_file, priority="spider")
        listener: socket.socket | None = None
        try:
            check_settings(settings)
            installed_features()  # raises for one that cannot be imported
            _require_libraries(settings)
            install_replay(settings)
            listener = _open_metrics_listener(settings)
            with _interruptible(settings):
                topic = self._attach_session(settings)
        except FocusedError as error:
            if listener is not None:
                listener.close()
            _exit_with_error(error, self._crawler)
        except KeyboardInterrupt:
            _print_line("stopped before the crawl started; the same command resumes")
            raise SystemExit(130) from None
        if self.session is not None:
            self.session.metrics_listener = listener
        warn_of_ignored(settings, topic)
        _install_components(settings)
        if self.session is not None and self.session.logins is not None:
            # Before PolitenessMiddleware: a request that waits for a login reserves no host.
            _set_component(settings, "DOWNLOADER_MIDDLEWARES", LoginMiddleware, 105)
        _apply_topic_settings(settings, topic)
        _skip_disabled_extensions(settings)
        _install_rendering(settings, self._crawler, self.session)
        _log_to_folder(settings, topic)
        install_quiet_formatter(settings)
        _install_operations(settings, self._crawler)

    def _install_replay_only(self, settings: Settings) -> None:
        """Change nothing but send all requests to the replay server, if one is set."""
        try:
            install_replay(settings)
        except FocusedError as error:
            _exit_with_error(error, self._crawler)

    def _attach_session(self, settings: BaseSettings) -> Topic:
        topic = topic_from_settings(settings)
        replayed = bool(settings["FOCUSED_REPLAY"])
        if topic.login and not replayed:
            check_login_support(settings, topic)
        if topic.scope.javascript == "render" and settings["FOCUSED_CLUSTER"]:
            raise ConfigurationError(
                f"{topic.path}: scope.javascript: crawls by many workers cannot render pages; set "
                'it to "report", or crawl without [cluster]'
            )
        check_seeds_in_scope(adapt_to_recorded_web(topic) if replayed else topic)
        policy = settings["FOCUSED_POLICY"]
        is_worker = bool(settings["FOCUSED_CLUSTER"])
        if not is_worker:
            # Check now: Scrapy would print a traceback if the scheduler failed to open the folder.
            check_state(topic, policy, replayed=replayed, spider=self._spider_name)
        if settings["FOCUSED_MODELS"]:
            models = load_models_factory(settings["FOCUSED_MODELS"])(topic)
        else:
            web, replay = settings["FOCUSED_RECORDED_WEB"], settings["FOCUSED_REPLAY"]
            models = load_crawl_models(
                topic, web=web, replay=replay, say=_print_line, waits=is_worker
            )
        follow_links = settings.getbool("FOCUSED_FOLLOW_LINKS")
        if is_worker:
            return self._attach_worker(settings, topic, models)
        self.session = CrawlSession(
            topic,
            policy,
            models,
            follow_links=follow_links,
            replayed=replayed,
            spider=self._spider_name,
            parser_processes=parser_processes(settings),
            parsing_limits=parsing_limits(settings),
            clock=replay_clock(settings),
        )
        return topic

    def _attach_worker(self, settings: BaseSettings, topic: Topic, models: CrawlModels) -> Topic:
        try:
            from focused.scrapy_addon.cluster_worker import cluster_of, worker_session
        except ModuleNotFoundError as error:
            missing = missing_extra(error, "FOCUSED_CLUSTER")
            if missing is None:
                raise
            raise missing from None
        cluster = cluster_of(topic, settings)
        self.session = worker_session(settings, topic, cluster, models)
        return self.session.topic


def _is_crawl(crawler: Crawler) -> bool:
    """Whether the spider itself runs, not a Scrapy command that borrows it.

    ``scrapy shell`` never starts the spider; ``fetch``, ``view``, ``parse`` and ``check`` replace
    its ``start``; ``bench`` brings its own spider.
    """
    spider = crawler.spider
    if spider is None:
        return False
    return not type(spider).start.__module__.startswith("scrapy.commands.")


def _install_components(settings: Settings) -> None:
    # The highest priority: nothing works without this scheduler.
    settings.set("SCHEDULER", FocusedScheduler, priority="cmdline")
    settings.set("DOWNLOADER", SettlingDownloader, priority="cmdline")
    _install_download_handlers(settings)
    for middleware in _REPLACED_DOWNLOADER_MIDDLEWARES:
        _set_component(settings, "DOWNLOADER_MIDDLEWARES", middleware, None)
    _set_component(settings, "DOWNLOADER_MIDDLEWARES", SettlingMiddleware, 10)
    _set_component(settings, "DOWNLOADER_MIDDLEWARES", RobotsMiddleware, 100)
    _set_component(settings, "DOWNLOADER_MIDDLEWARES", PolitenessMiddleware, 110)
    # After Scrapy's HttpProxyMiddleware (750): a proxy resolves names itself.
    _set_component(settings, "DOWNLOADER_MIDDLEWARES", AddressMiddleware, 800)
    _set_component(settings, "DOWNLOADER_MIDDLEWARES", DecodingMiddleware, 590)
    _set_component(settings, "SPIDER_MIDDLEWARES", RelevanceMiddleware, 950)
    _set_component(settings, "EXTENSIONS", ProgressExtension, 500)
    _set_component(settings, "EXTENSIONS", SteeringExtension, 500)


def _install_download_handlers(settings: Settings) -> None:
    """Replace Scrapy's own handlers of http and https, but no others."""
    stock = settings["DOWNLOAD_HANDLERS_BASE"]
    chosen = settings.getdict("DOWNLOAD_HANDLERS")
    ours = {scheme: FocusedDownloadHandler for scheme in ("http", "https") if scheme in stock}
    settings.set("DOWNLOAD_HANDLERS", {**ours, **chosen}, priority="addon")


def _set_component(settings: Settings, name: str, component: Any, order: int | None) -> None:
    settings.set_in_component_priority_dict(name, component, order)


def _apply_topic_settings(settings: Settings, topic: Topic) -> None:
    politeness = topic.politeness
    values = {
        "USER_AGENT": politeness.user_agent,
        # The frontier applies delays; Scrapy's slots only limit connections.
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "CONCURRENT_REQUESTS": politeness.concurrency,
        "DOWNLOAD_TIMEOUT": politeness.timeout_s,
        "DOWNLOAD_MAXSIZE": topic.scope.max_page_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "ROBOTSTXT_OBEY": False,  # RobotsMiddleware obeys it by RFC 9309
        "AUTOTHROTTLE_ENABLED": False,
        # Do not listen on ports by default.
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "HTTPERROR_ALLOW_ALL": False,
        "CONCURRENT_ITEMS": 1,
        "COOKIES_ENABLED": False,
        "DNS_TIMEOUT": 31,  # five tries: 1, 2, 4, 8, 16 s
        "LOGSTATS_INTERVAL": 0,
    }
    # The topic includes the user's values of these: see scrapy_settings.
    of_topic = {
        "CONCURRENT_REQUESTS",
        "DOWNLOAD_TIMEOUT",
        "DOWNLOAD_MAXSIZE",
        "USER_AGENT",
        "DOWNLOAD_DELAY",
        "CONCURRENT_REQUESTS_PER_DOMAIN",
        "ROBOTSTXT_OBEY",
        "AUTOTHROTTLE_ENABLED",
        "RETRY_ENABLED",
        "REDIRECT_ENABLED",
    }
    for name, value in values.items():
        settings.set(name, value, priority="cmdline" if name in of_topic else "addon")


def _skip_disabled_extensions(settings: Settings) -> None:
    """Remove disabled extensions from EXTENSIONS_BASE, because importing some of them is slow."""
    off = {name for switch, name in _EXTENSIONS_BY_SWITCH.items() if not settings.getbool(switch)}
    kept = {name: order for name, order in settings["EXTENSIONS_BASE"].items() if name not in off}
    settings.set("EXTENSIONS_BASE", kept, priority="addon")


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


def _require_libraries(settings: BaseSettings) -> None:
    """Raise MissingExtraError, before a model is trained, for libraries that settings need."""
    needed = []
    if settings["FOCUSED_METRICS_PORT"] is not None:
        needed.append(("prometheus_client", "FOCUSED_METRICS_PORT"))
    if settings["FOCUSED_LOG_FORMAT"] == "json":
        needed.append(("pythonjsonlogger", "FOCUSED_LOG_FORMAT"))
    address = index_address(settings)
    if address is not None:
        needed.append((CLIENT_LIBRARIES[address.kind], "FOCUSED_INDEX_URL"))
    for module, setting in needed:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise missing_extra(error, setting) or error from None


def _install_rendering(settings: Settings, crawler: Crawler, session: CrawlSession | None) -> None:
    """Let the session render pages if the topic asks for it."""
    if session is None or session.topic.scope.javascript != "render":
        return
    from focused.scrapy_addon.page_rendering import BrowserRendering

    session.rendering = BrowserRendering.from_settings(settings, crawler, session)


def _open_metrics_listener(settings: BaseSettings) -> socket.socket | None:
    """Listen on the port of the metrics, if it is set, before anything takes time."""
    if settings["FOCUSED_METRICS_PORT"] is None:
        return None
    from focused.scrapy_addon.metrics_server import open_metrics_listener

    return open_metrics_listener(settings)


def _install_operations(settings: Settings, crawler: Crawler) -> None:
    """Install the metrics server, the index pipeline and the JSON log, if they are on."""
    if settings["FOCUSED_METRICS_PORT"] is not None:
        from focused.scrapy_addon.metrics_server import MetricsServer

        _set_component(settings, "EXTENSIONS", MetricsServer, 500)
    if settings["FOCUSED_INDEX_URL"]:
        from focused.scrapy_addon.index_pipeline import INDEXED_FIELDS, IndexPipeline

        _set_component(settings, "ITEM_PIPELINES", IndexPipeline, 900)
        if settings["FOCUSED_ITEM_FIELDS"] is None:
            settings.set("FOCUSED_ITEM_FIELDS", INDEXED_FIELDS, priority="addon")
    if settings["FOCUSED_LOG_FORMAT"] == "json":
        from focused.scrapy_addon.json_log import install_json_log

        install_json_log(settings, crawler)


def _print_line(line: str) -> None:
    print(f"focused: {escape_control_characters(line)}", file=sys.stderr, flush=True)


@contextmanager
def _interruptible(settings: BaseSettings) -> Iterator[None]:
    """Let Ctrl-C interrupt a training, which blocks the reactor.

    Signal handlers stay unchanged if the process is not the crawl's own.
    """
    if not settings.getbool("FOCUSED_OWNS_PROCESS"):
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _exit_with_error(error: FocusedError, crawler: Crawler) -> NoReturn:
    """Exit with the message, without Scrapy's traceback.

    If another crawl runs in the process, raise the error instead.
    """
    _print_line(str(error))
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
