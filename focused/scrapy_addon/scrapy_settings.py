"""Effects of Scrapy's settings on a focused crawl.

Each setting is honoured, changes the topic, or is ignored with a warning. The settings page of the
documentation has the same tables; a test compares both with Scrapy's settings.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from focused.errors import ConfigurationError
from focused.topic import Topic

logger = logging.getLogger(__name__)


class Effect(Enum):
    """What a focused crawl does with a setting."""

    HONOURED = "honoured"
    IN_TOPIC = "changes the topic"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Row:
    """Settings with one effect; a name that ends in ``*`` is a prefix."""

    names: tuple[str, ...]
    effect: Effect
    reason: str = ""
    harmless: tuple[Any, ...] = ()
    """Values that agree with the crawl's behaviour: no warning."""

    def covers(self, name: str) -> bool:
        """Whether the row is about the setting."""
        return any(
            name == each or (each.endswith("*") and name.startswith(each[:-1]))
            for each in self.names
        )


def _honoured(names: str, reason: str = "") -> Row:
    return Row(tuple(names.split()), Effect.HONOURED, reason)


def _in_topic(names: str, reason: str) -> Row:
    return Row(tuple(names.split()), Effect.IN_TOPIC, reason)


def _ignored(names: str, reason: str, *harmless: Any) -> Row:
    return Row(tuple(names.split()), Effect.IGNORED, reason, harmless)


TABLE = (
    _in_topic("DOWNLOAD_DELAY", "`politeness.delay_s` is at least this long"),
    _in_topic("CONCURRENT_REQUESTS", "replaces `politeness.concurrency`"),
    _in_topic("DOWNLOAD_TIMEOUT", "replaces `politeness.timeout_s`"),
    _in_topic("DOWNLOAD_MAXSIZE", "replaces `scope.max_page_bytes`"),
    _in_topic(
        "DEPTH_LIMIT",
        "limits `scope.max_depth` for links that the crawl follows; Scrapy applies it to a "
        "spider's own requests",
    ),
    _ignored(
        "USER_AGENT ROBOTSTXT_USER_AGENT",
        "`politeness.user_agent` replaces it",
    ),
    _ignored("ROBOTSTXT_OBEY", "`politeness.robots` decides, by RFC 9309", True),
    _ignored("ROBOTSTXT_PARSER", "the crawl has its own"),
    _ignored("CONCURRENT_REQUESTS_PER_DOMAIN", "a host gets one request at a time", 1),
    _ignored(
        "CONCURRENT_REQUESTS_PER_IP",
        "an address gets one request at a time: `politeness.per_address`",
        0,
        1,
    ),
    _ignored(
        "RANDOMIZE_DOWNLOAD_DELAY DOWNLOAD_DELAY_JITTER",
        "delays are not randomised",
        False,
        0,
    ),
    _ignored(
        "AUTOTHROTTLE_*",
        "slow hosts get longer delays by `politeness.fetch_time_factor`",
        False,
    ),
    _ignored(
        "RETRY_*",
        "the frontier retries: `politeness.max_tries`",
    ),
    _ignored(
        "REDIRECT_* METAREFRESH_*",
        "redirects go through the frontier, ten at most",
    ),
    _ignored("DEPTH_PRIORITY", "`FOCUSED_POLICY` orders the frontier", 0),
    _ignored(
        "SCHEDULER SCHEDULER_*",
        "the frontier schedules requests",
    ),
    _ignored("DUPEFILTER_*", "the frontier drops URLs that it has seen"),
    _ignored(
        "JOBDIR",
        "the queue in `output.folder` always resumes; `JOBDIR` keeps only `spider.state`",
    ),
    _ignored("DOWNLOADER", "the add-on's downloader settles leases"),
    _ignored(
        "DNS_RESOLVER TWISTED_DNS_RESOLVER",
        "the add-on resolves hosts: `FOCUSED_DNS_SERVERS`",
    ),
    _ignored(
        "DOWNLOADER_CLIENTCONTEXTFACTORY HTTP2_* HTTPX_*",
        "the add-on downloads by aiohttp, over HTTP/1.1",
    ),
    _honoured("TWISTED_REACTOR TWISTED_REACTOR_ENABLED", "any reactor but asyncio's is refused"),
    _honoured("ASYNCIO_EVENT_LOOP REACTOR_THREADPOOL_MAXSIZE FORCE_CRAWLER_PROCESS"),
    _honoured(
        "DNSCACHE_ENABLED DNSCACHE_SIZE DNS_TIMEOUT", "by the add-on's resolver; default timeout 31"
    ),
    _honoured("HTTPPROXY_*", "the proxy resolves hosts"),
    _honoured(
        "HTTPCACHE_*", "a cached response is settled like any other; robots.txt is not cached"
    ),
    _honoured("HTTPAUTH_* COOKIES_*", "default for `COOKIES_ENABLED`: False"),
    _honoured("HTTPERROR_*", "for responses of a spider's own requests"),
    _honoured("COMPRESSION_ENABLED DEFAULT_REQUEST_HEADERS", "but for the User-Agent header"),
    _honoured(
        "DOWNLOAD_HANDLERS DOWNLOAD_HANDLERS_BASE",
        "but `FOCUSED_REPLAY` replaces those of http and https",
    ),
    _honoured("DOWNLOAD_SLOTS", "a slot's delay is added to the host's"),
    _honoured(
        "DOWNLOAD_BIND_ADDRESS DOWNLOAD_FAIL_ON_DATALOSS DOWNLOAD_TLS_* "
        "DOWNLOAD_VERIFY_CERTIFICATES DOWNLOADER_CLIENT_TLS_*"
    ),
    _honoured("DOWNLOAD_WARNSIZE", "default 0: large pages are counted, not reported"),
    _honoured("DOWNLOADER_STATS", "default False in the topic spider"),
    _honoured(
        "DOWNLOADER_MIDDLEWARES DOWNLOADER_MIDDLEWARES_BASE SPIDER_MIDDLEWARES "
        "SPIDER_MIDDLEWARES_BASE EXTENSIONS EXTENSIONS_BASE",
        "the add-on adds its own and removes the middlewares named below",
    ),
    _honoured(
        "DEPTH_STATS_VERBOSE REFERER_ENABLED REFERRER_* URLLENGTH_LIMIT",
        "for a spider's own requests",
    ),
    _honoured("CONCURRENT_ITEMS", "default 1"),
    _honoured("CLOSESPIDER_*", "the same command resumes the crawl"),
    _honoured(
        "ITEM_* FEED* FILES_* IMAGES_* DEFAULT_DROPITEM_LOG_LEVEL DEFAULT_ITEM_CLASS",
        "media requests wait for their host's turn and obey robots.txt",
    ),
    _honoured("AWS_* FTP_* GCS_PROJECT_ID MAIL_*"),
    _honoured("LOG_*", "`FOCUSED_LOG_TO_FOLDER` sets file and level where `LOG_FILE` is not set"),
    _honoured("LOGSTATS_INTERVAL", "default 0: the progress line reports more"),
    _honoured("MEMUSAGE_* MEMDEBUG_ENABLED STATS* PERIODIC_LOG_*"),
    _honoured("TELNETCONSOLE_* REMOTE_CONTROL_*", "default False: nothing listens"),
    _honoured("REQUEST_FINGERPRINTER_CLASS", "for requests with a body or another method than GET"),
    _honoured("SCRAPER_SLOT_MAX_ACTIVE_SIZE WARN_ON_GENERATOR_RETURN_VALUE"),
    _honoured(
        "ADDONS BOT_NAME COMMANDS_MODULE CRAWLSPIDER_FOLLOW_LINKS EDITOR NEWSPIDER_MODULE "
        "SPIDER_CONTRACTS* SPIDER_LOADER_* SPIDER_MODULES TEMPLATES_DIR"
    ),
)
"""Each of Scrapy's settings is in one row."""


def is_set(settings: BaseSettings, name: str) -> bool:
    """Whether the setting differs from Scrapy's own defaults in its priority."""
    priority = settings.getpriority(name)
    return priority is not None and priority > SETTINGS_PRIORITIES["command"]


def apply_to_topic(settings: BaseSettings, topic: Topic) -> Topic:
    """Return the topic with Scrapy's settings applied; FOCUSED_ settings take precedence.

    Raises ConfigurationError for invalid values.
    """
    politeness, scope = topic.politeness, topic.scope
    if is_set(settings, "DOWNLOAD_DELAY") and settings["FOCUSED_DELAY_S"] is None:
        delay_s = _number(settings, "DOWNLOAD_DELAY", least=0.0)
        delays = {host: max(each, delay_s) for host, each in politeness.delays.items()}
        politeness = replace(politeness, delay_s=max(politeness.delay_s, delay_s), delays=delays)
    if is_set(settings, "CONCURRENT_REQUESTS") and settings["FOCUSED_CONCURRENCY"] is None:
        concurrency = int(_number(settings, "CONCURRENT_REQUESTS", least=1))
        politeness = replace(politeness, concurrency=concurrency)
    if is_set(settings, "DOWNLOAD_TIMEOUT"):
        timeout_s = _number(settings, "DOWNLOAD_TIMEOUT", least=math.ulp(0.0))
        politeness = replace(politeness, timeout_s=timeout_s)
    if is_set(settings, "DOWNLOAD_MAXSIZE"):
        max_page_bytes = int(_number(settings, "DOWNLOAD_MAXSIZE", least=1))
        scope = replace(scope, max_page_bytes=max_page_bytes)
    if is_set(settings, "DEPTH_LIMIT") and settings.getbool("FOCUSED_FOLLOW_LINKS"):
        limit = int(_number(settings, "DEPTH_LIMIT", least=0))
        depths = [depth for depth in (limit or None, scope.max_depth) if depth is not None]
        scope = replace(scope, max_depth=min(depths, default=None))
    return replace(topic, politeness=politeness, scope=scope)


def _number(settings: BaseSettings, name: str, *, least: float) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = math.nan
    if not least <= value < math.inf:
        above = "above 0" if 0 < least < 1 else f"from {least:g}"
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a number {above}")
    return value


def warn_of_ignored(settings: BaseSettings, topic: Topic) -> None:
    """Log a warning for each setting of the user that is ignored."""
    for line in ignored(settings, topic):
        logger.warning(line)


def ignored(settings: BaseSettings, topic: Topic) -> Iterator[str]:
    """Yield a warning for each setting of the user that is ignored."""
    for name in sorted(map(str, settings)):
        row = next((row for row in TABLE if row.covers(name)), None)
        if row is None or row.effect is not Effect.IGNORED or not is_set(settings, name):
            continue
        value = settings[name]
        harmless = (*row.harmless, vars(default_settings).get(name))
        if name == "USER_AGENT":
            harmless = (topic.politeness.user_agent,)
        if name in _MATTERS_WHEN_DEFAULT:
            harmless = row.harmless
        if str(value) not in {str(each) for each in harmless}:
            yield f"{name} = {value!r} is ignored: {row.reason.replace('`', '')}"


_MATTERS_WHEN_DEFAULT = frozenset({"ROBOTSTXT_OBEY", "RANDOMIZE_DOWNLOAD_DELAY"})
"""Settings whose default the crawl does not implement either: warn even if set to it."""


REPLAY_SETTING = "FOCUSED_REPLAY"
_HANDLER = "focused.scrapy_addon.replay_handler.ReplayDownloadHandler"


def replay_settings(address: str) -> dict[str, Any]:
    """Return the settings that send a crawl to the replay server at ``HOST:PORT``.

    Raises ConfigurationError for an invalid address.
    """
    check_replay_address(address)
    return {
        REPLAY_SETTING: address,
        "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    }


def install_replay(settings: BaseSettings) -> bool:
    """Enable the replay if ``FOCUSED_REPLAY`` is set; return whether it is.

    Replaces all handlers of http and https: a replayed crawl must not reach the live Web.
    """
    address = settings.get(REPLAY_SETTING)
    if not address:
        return False
    ours = replay_settings(address)["DOWNLOAD_HANDLERS"]
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **ours}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")
    return True


def check_replay_address(address: str) -> None:
    """Raise ConfigurationError for anything but ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{REPLAY_SETTING} is {address!r}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
