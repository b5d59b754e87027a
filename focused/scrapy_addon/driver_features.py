"""Features of the Scrapy driver: what a topic or settings switch on, and where it enters.

A feature is an entry point of the group ``focused.scrapy_features``, in any installed distribution.
The add-on names none: it asks each whether it is on, before a model is trained, and lets those that
are on connect. A feature imports what it needs in ``connect``: one that is off is not imported. The
crawl's own side of a capability is a feature of :mod:`focused.crawl.features`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings

from focused.durations import Clock
from focused.errors import ConfigurationError, missing_extra
from focused.installed_features import installed_features, installed_parts, load_feature
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.download_handlers import Authenticator
from focused.scrapy_addon.downloader import RequestGate
from focused.scrapy_addon.page_processing import PageStage
from focused.scrapy_addon.run_status import EngineControl, RunStatus
from focused.scrapy_addon.statistics import STATISTICS, CrawlStatistics
from focused.topic import Topic


class SettingType(Enum):
    """What a setting's value must be; a number has a check."""

    TEXT = "text"
    PATH = "path"
    FLAG = "True or False"
    NUMBER = "number"
    OTHER = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the add-on; ``meaning`` is Markdown for the reference.

    ``check(settings, name)`` raises ConfigurationError for a value that is unusable.
    """

    name: str
    type: SettingType
    default: Any
    meaning: str
    check: Callable[[BaseSettings, str], object] = lambda settings, name: None


def positive(settings: BaseSettings, name: str) -> float:
    """Return a number above 0. Raises ConfigurationError."""
    try:
        value = settings.getfloat(name)
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value < math.inf:
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a number above 0")
    return value


def whole_number(settings: BaseSettings, name: str) -> int | None:
    """Return a number from 1; None where the setting is not set. Raises ConfigurationError."""
    value = non_negative(settings, name)
    if value is None:
        return None
    if value < 1 or value != int(value):
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a whole number from 1")
    return int(value)


def non_negative(settings: BaseSettings, name: str) -> float | None:
    """Return a number from 0; None where the setting is not set. Raises ConfigurationError."""
    if settings[name] is None:
        return None
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name}: {settings[name]!r} is not a number") from None
    if not 0 <= value < math.inf:
        raise ConfigurationError(f"{name}: {value} must be 0 or more")
    return value


ENTRY_POINT_GROUP = "focused.scrapy_features"


@dataclass(frozen=True, slots=True)
class Driver:
    """What features may use: the parts of every crawl that Scrapy drives."""

    crawler: Crawler
    topic: Topic
    policy: str
    slot: CrawlSlot
    clock: Clock
    status: RunStatus
    engine: EngineControl
    statistics: CrawlStatistics


@dataclass(frozen=True, slots=True)
class Component:
    """A component of Scrapy: in which setting, its name and order, and how it is made."""

    setting: str
    name: str
    order: int
    make: Callable[[Driver], object]


@dataclass(frozen=True, slots=True)
class DriverParts:
    """What a feature adds to a driver.

    ``components`` are extensions, pipelines and other components of Scrapy. ``page_stages`` make
    what happens to a page between its arrival and its settling. ``gates`` make what holds requests
    back. ``authenticators`` add credentials when a request is sent. ``configure`` is called with
    settings and crawler when all settings are known. ``abandon`` releases what the feature holds
    when the crawl does not start.
    """

    components: Sequence[Component] = ()
    page_stages: Sequence[Callable[[Driver], PageStage]] = ()
    gates: Sequence[Callable[[Driver], RequestGate]] = ()
    authenticators: Sequence[Authenticator] = ()
    configure: Sequence[Callable[[Settings, Crawler], None]] = ()
    abandon: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class DriverFeature:
    """A capability of the driver that a topic or settings switch on.

    ``is_on`` tells whether a crawl uses it. ``connect`` returns its parts, and raises
    ConfigurationError or MissingExtraError if the crawl cannot use it. ``check`` raises
    ConfigurationError, which names the setting, for one of ``settings`` that is unusable.
    ``statistics`` are names of what it counts in Scrapy's statistics, with their meaning.
    """

    is_on: Callable[[Topic, BaseSettings], bool]
    connect: Callable[[Topic, BaseSettings], DriverParts]
    check: Callable[[BaseSettings], None] = lambda settings: None
    settings: Sequence[Setting] = ()
    statistics: Mapping[str, str] = field(default_factory=dict)


@cache
def installed_driver_features() -> Mapping[str, DriverFeature]:
    """Return the installed features by name, in the order of their names.

    Raises ConfigurationError for one that cannot be imported.
    """
    points = installed_parts(ENTRY_POINT_GROUP)
    return {name: load_feature(point, DriverFeature) for name, point in points.items()}


def statistics_meanings() -> Mapping[str, str]:
    """Return the meaning of each statistic, in Markdown, those of all features included.

    Words in capitals stand for any name. Raises ConfigurationError for a feature that cannot be
    imported.
    """
    found = dict(STATISTICS)
    for feature in installed_features().values():
        found |= {**feature.counts, **feature.tables}
    for driver_feature in installed_driver_features().values():
        found |= driver_feature.statistics
    return found


def connect_driver_features(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Connect all features that are on; return their parts as one.

    Raises ConfigurationError, after what was connected has been abandoned.
    """
    parts: list[DriverParts] = []
    try:
        for feature in installed_driver_features().values():
            if feature.is_on(topic, settings):
                parts.append(feature.connect(topic, settings))
    except BaseException:
        join_driver_parts(parts).abandon()
        raise
    return join_driver_parts(parts)


def join_driver_parts(parts: Sequence[DriverParts]) -> DriverParts:
    """Return the parts of several features as one."""

    def abandon() -> None:
        for each in parts:
            each.abandon()

    return DriverParts(
        components=[one for each in parts for one in each.components],
        page_stages=[one for each in parts for one in each.page_stages],
        gates=[one for each in parts for one in each.gates],
        authenticators=[one for each in parts for one in each.authenticators],
        configure=[one for each in parts for one in each.configure],
        abandon=abandon,
    )


def require_library(module: str, needed_by: str) -> None:
    """Import a library of an extra. Raises MissingExtraError, which names ``needed_by``."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra(error, needed_by) or error from None
