"""The feature of steering: an operator's commands, and the live status for who watches.

It is on in every crawl, and costs two system calls a second; what executes commands is imported
when somebody watches or steers.
"""

from __future__ import annotations

from scrapy.settings import BaseSettings

from focused.scrapy_addon.driver_features import Component, DriverParts
from focused.scrapy_addon.setting import Setting
from focused.topic import Topic

SETTINGS: tuple[Setting, ...] = ()


def check(settings: BaseSettings) -> None:
    """Check nothing: the feature has no settings."""


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether a crawl can be steered: each can."""
    return True


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Watch the crawl's control folder."""
    from focused.scrapy_addon.control_watch import ControlWatch

    watch = Component("EXTENSIONS", "ControlWatch", 500, ControlWatch.of_driver)
    return DriverParts(components=[watch])
