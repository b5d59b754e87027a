"""The feature of a JSON log, for log collectors."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.scrapy_addon.driver_features import DriverParts, require_library
from focused.scrapy_addon.setting import Setting, SettingType
from focused.topic import Topic

_FORMATS = ("text", "json")

SETTINGS = (
    Setting(
        "FOCUSED_LOG_FORMAT",
        SettingType.TEXT,
        "text",
        "`text`, or `json`: one JSON object per line of the log, with `time`, `level`, `logger`, "
        "`message` and `exc_info`. Lines that Scrapy logs before it loads add-ons stay text; "
        "`crawl.log` has none of them. Needs the extra `operations`.",
    ),
)


def check(settings: BaseSettings) -> None:
    """Raise ConfigurationError for an unknown format."""
    value = settings["FOCUSED_LOG_FORMAT"]
    if value not in _FORMATS:
        raise ConfigurationError(
            f"FOCUSED_LOG_FORMAT: {value!r} is not one of {', '.join(_FORMATS)}"
        )


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether ``FOCUSED_LOG_FORMAT`` is ``json``."""
    return bool(settings["FOCUSED_LOG_FORMAT"] == "json")


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Install the log's handler when the log's file is known."""
    require_library("pythonjsonlogger", "FOCUSED_LOG_FORMAT")
    from focused.scrapy_addon.json_log import install_json_log

    return DriverParts(configure=[install_json_log])
