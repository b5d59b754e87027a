"""Scrapy's settings that change the topic of a focused crawl, and those that it ignores.

The others are honoured: docs/reference/settings.md names each; a test compares that page with
Scrapy's settings.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from focused.errors import ConfigurationError
from focused.topic import Topic

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IgnoredSettings:
    """Settings that are ignored for one reason; a name that ends in ``*`` is a prefix."""

    names: tuple[str, ...]
    reason: str
    harmless: tuple[Any, ...] = ()
    """Values that agree with the crawl's behaviour: no warning."""

    def covers(self, name: str) -> bool:
        """Whether the setting is one of these."""
        return any(
            name == each or (each.endswith("*") and name.startswith(each[:-1]))
            for each in self.names
        )


def _ignored(names: str, reason: str, *harmless: Any) -> IgnoredSettings:
    return IgnoredSettings(tuple(names.split()), reason, harmless)


IGNORED = (
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
    _ignored("MEDIA_ALLOW_REDIRECTS", "redirects of media are not followed", False),
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
)


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
        row = next((row for row in IGNORED if row.covers(name)), None)
        if row is None or not is_set(settings, name):
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


def install_replay(settings: BaseSettings) -> None:
    """Send a Scrapy command to the replay server if ``FOCUSED_REPLAY`` is set.

    Replaces all handlers of http and https: it must not reach the live Web.
    """
    if settings.get(REPLAY_SETTING):
        check_replay_address(settings[REPLAY_SETTING])
        handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), "http": _HANDLER, "https": _HANDLER}
        settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")


def check_replay_address(address: str) -> None:
    """Raise ConfigurationError for anything but ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{REPLAY_SETTING} is {address!r}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
