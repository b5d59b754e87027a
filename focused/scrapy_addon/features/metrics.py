"""The feature of metrics: a port for Prometheus and health checks."""

from __future__ import annotations

import ipaddress

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.scrapy_addon.driver_features import Component, DriverParts, require_library
from focused.scrapy_addon.setting import Setting, SettingType, non_negative
from focused.topic import Topic

_MAX_PORT = 65_535

SETTINGS = (
    Setting(
        "FOCUSED_METRICS_PORT",
        SettingType.NUMBER,
        None,
        "Port for Prometheus (`/metrics`) and for health checks (`/health`); `0`: any free one. "
        "`None`: the crawl listens on no port. Needs the extra `operations`. See "
        "docs/how-to/monitoring.md.",
    ),
    Setting(
        "FOCUSED_METRICS_HOST",
        SettingType.TEXT,
        "127.0.0.1",
        "Address that `FOCUSED_METRICS_PORT` listens on. Any other exposes the statistics to other "
        "machines.",
    ),
)


def check(settings: BaseSettings) -> None:
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


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether ``FOCUSED_METRICS_PORT`` names a port."""
    return settings["FOCUSED_METRICS_PORT"] is not None


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
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
