"""The features that come with the Scrapy driver: when they are on, and their parts.

The objects are entry points of the group ``focused.scrapy_features``. This module is imported for
every crawl; what a feature connects is imported when it is on.
:mod:`focused.scrapy_addon.driver_features` describes the seams.
"""

from __future__ import annotations

import ipaddress

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.scrapy_addon.driver_features import (
    Component,
    DriverFeature,
    DriverParts,
    Setting,
    SettingType,
    non_negative,
    positive,
    require_library,
    whole_number,
)
from focused.topic import Topic

_LOG_FORMATS = ("text", "json")
_MAX_PORT = 65_535


def _connect_javascript(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Render pages between their arrival and their settling."""
    from focused.scrapy_addon.page_rendering import BrowserRendering

    return DriverParts(page_stages=[lambda driver: BrowserRendering.of_driver(settings, driver)])


javascript = DriverFeature(
    is_on=lambda topic, settings: topic.scope.javascript == "render",
    connect=_connect_javascript,
    settings=(
        Setting(
            "FOCUSED_JAVASCRIPT_BROWSER",
            SettingType.PATH,
            None,
            "Path of the browser. `None`: `chromium`, `chromium-browser`, `google-chrome` or "
            "`chrome` on the PATH. See docs/how-to/javascript.md.",
        ),
        Setting(
            "FOCUSED_JAVASCRIPT_SANDBOX",
            SettingType.FLAG,
            True,
            "Run the browser in its sandbox, which does not work as root.",
        ),
        Setting(
            "FOCUSED_JAVASCRIPT_TIMEOUT_S",
            SettingType.NUMBER,
            15.0,
            "Seconds that the scripts of a page may run, without waiting for requests.",
            positive,
        ),
        Setting(
            "FOCUSED_JAVASCRIPT_REQUESTS",
            SettingType.NUMBER,
            50,
            "Requests that a page may make, without those from the cache.",
            whole_number,
        ),
        Setting(
            "FOCUSED_JAVASCRIPT_MEMORY_MB",
            SettingType.NUMBER,
            1_500.0,
            "Memory (10^6 bytes) of the browser, above which the largest page is killed; Linux "
            "only.",
            positive,
        ),
        Setting(
            "FOCUSED_JAVASCRIPT_PAGES",
            SettingType.NUMBER,
            2,
            "Pages that the browser renders at once.",
            whole_number,
        ),
    ),
)
"""Rendering: a browser runs the scripts of pages that need it."""


def _check_json_log(settings: BaseSettings) -> None:
    """Raise ConfigurationError for an unknown format."""
    value = settings["FOCUSED_LOG_FORMAT"]
    if value not in _LOG_FORMATS:
        raise ConfigurationError(
            f"FOCUSED_LOG_FORMAT: {value!r} is not one of {', '.join(_LOG_FORMATS)}"
        )


def _connect_json_log(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Install the log's handler when the log's file is known."""
    require_library("pythonjsonlogger", "FOCUSED_LOG_FORMAT")
    from focused.scrapy_addon.json_log import install_json_log

    return DriverParts(configure=[install_json_log])


json_log = DriverFeature(
    is_on=lambda topic, settings: bool(settings["FOCUSED_LOG_FORMAT"] == "json"),
    connect=_connect_json_log,
    check=_check_json_log,
    settings=(
        Setting(
            "FOCUSED_LOG_FORMAT",
            SettingType.TEXT,
            "text",
            "`text`, or `json`: one JSON object per line of the log, with `time`, `level`, "
            "`logger`, `message` and `exc_info`. Needs the extra `operations`.",
        ),
    ),
)
"""A JSON log, for log collectors."""


def _connect_logins(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Log in before the first request to a host, and add credentials to each."""
    from focused.scrapy_addon.login_gate import LoginGate
    from focused.scrapy_addon.login_session import check_login_support, open_sessions

    check_login_support(settings, topic)
    sessions = open_sessions(topic.login)
    return DriverParts(
        gates=[lambda driver: LoginGate.of_driver(sessions, driver)], authenticators=[sessions]
    )


logins = DriverFeature(
    is_on=lambda topic, settings: bool(topic.login) and not settings["FOCUSED_REPLAY"],
    connect=_connect_logins,
    statistics={
        "logins/succeeded": "Logins by a form, renewals included; not in `stats.json`.",
        "logins/failed": "Logins that were given up; not in `stats.json`.",
    },
)
"""Sessions at the hosts of the topic's ``[login]``; a replayed web needs none."""


def _check_metrics(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a port or address that is unusable."""
    port = non_negative(settings, "FOCUSED_METRICS_PORT")
    if port is not None and not (port == int(port) and port <= _MAX_PORT):
        raise ConfigurationError(f"FOCUSED_METRICS_PORT: {port} is not a port, 0 to {_MAX_PORT}")
    host = settings["FOCUSED_METRICS_HOST"]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ConfigurationError(
            f"FOCUSED_METRICS_HOST: {host!r} is not an IP address, such as 127.0.0.1 or ::1"
        ) from None


def _connect_metrics(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Listen at once, so that health checks can connect while a model is trained."""
    require_library("prometheus_client", "FOCUSED_METRICS_PORT")
    from focused.scrapy_addon.metrics_server import MetricsServer, open_metrics_listener

    listener = open_metrics_listener(
        settings["FOCUSED_METRICS_HOST"], settings.getint("FOCUSED_METRICS_PORT")
    )
    server = Component(
        "EXTENSIONS", "MetricsServer", 500, lambda driver: MetricsServer.of_driver(listener, driver)
    )
    return DriverParts(components=[server], abandon=listener.close)


metrics = DriverFeature(
    is_on=lambda topic, settings: settings["FOCUSED_METRICS_PORT"] is not None,
    connect=_connect_metrics,
    check=_check_metrics,
    settings=(
        Setting(
            "FOCUSED_METRICS_PORT",
            SettingType.NUMBER,
            None,
            "Port for Prometheus (`/metrics`) and health checks (`/health`); `0`: any free one, "
            "`None`: none. Needs the extra `operations`. See docs/how-to/monitoring.md.",
        ),
        Setting(
            "FOCUSED_METRICS_HOST",
            SettingType.TEXT,
            "127.0.0.1",
            "Its address. Any other exposes the statistics to other machines.",
        ),
    ),
)
"""A port for Prometheus and health checks."""


def _connect_steering(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Watch the crawl's control folder."""
    from focused.scrapy_addon.command_executor import CommandExecutor

    executor = Component("EXTENSIONS", "CommandExecutor", 500, CommandExecutor.of_driver)
    return DriverParts(components=[executor])


steering = DriverFeature(
    is_on=lambda topic, settings: True,
    connect=_connect_steering,
)
"""An operator's commands, and the live status for who watches.

It is on in every crawl, and costs two system calls a second; what executes commands is imported
when somebody watches or steers.
"""
