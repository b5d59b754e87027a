"""The add-on's settings: their defaults, their checks, and their values with types.

Scrapy's own settings are the subject of :mod:`focused.scrapy_addon.scrapy_settings`.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from focused.errors import ConfigurationError
from focused.orderings import find_policy
from focused.recorded_web import find_recorded_webs
from focused.scrapy_addon.driver_features import (
    Setting,
    SettingType,
    installed_driver_features,
    non_negative,
    positive,
    whole_number,
)
from focused.scrapy_addon.name_resolver import parse_servers
from focused.scrapy_addon.scrapy_settings import (
    REPLAY_SETTING,
    apply_to_topic,
    check_replay_address,
)
from focused.topic import Budget, Revisit, Scope, Topic
from focused.topic.topic_file import load_topic

if TYPE_CHECKING:
    from focused.durations import Clock
    from focused.parser_process import ParsingLimits

MAX_PARSER_PROCESSES = 64
"""Largest value of FOCUSED_PARSER_PROCESSES."""

_ELAPSED_PER_CPU = 6
"""A page may take so many times its CPU time by the clock: the machine may be busy."""

_PREFIX = "FOCUSED_"


_TEXT_TYPES: dict[SettingType, Any] = {
    SettingType.TEXT: str,
    SettingType.PATH: (str, os.PathLike),
}

SETTINGS = (
    Setting(
        "FOCUSED_TOPIC",
        SettingType.PATH,
        None,
        "The topic file. Required. `scrapy crawl topic -a topic=FILE` sets it.",
    ),
    Setting(
        "FOCUSED_POLICY",
        SettingType.TEXT,
        "focused",
        "The ordering: `focused`, `bfs` or another one of docs/how-to/compare.md#policies, except "
        "`two-phase`; or your own as `package.module.function`. Any other than `focused` adds "
        "`-POLICY` to the name of the crawl's folder.",
    ),
    Setting(
        "FOCUSED_FOLLOW_LINKS",
        SettingType.FLAG,
        False,
        "Queue the topic's seeds and follow links; callbacks receive the pages. The topic spider "
        "sets it.",
    ),
    Setting(
        "FOCUSED_MODELS",
        SettingType.OTHER,
        None,
        "Your own topic classifier and link scorer: a callable, or its dotted path, that takes the "
        "topic and returns `CrawlModels`. See docs/how-to/library.md#estimators-of-your-own.",
    ),
    Setting(
        "FOCUSED_REPLAY",
        SettingType.TEXT,
        None,
        "`HOST:PORT` of a replay server (`focused web serve`), which gets all requests instead of "
        "the live Web.",
    ),
    Setting(
        "FOCUSED_CLOCK",
        SettingType.TEXT,
        None,
        "`START,REAL_START,SPEED`: the clock of a replay server whose pages change, as it prints "
        "it. Only with `FOCUSED_REPLAY` and the extra `experiments`. See "
        "docs/how-to/recorded-webs.md#pages-that-change.",
    ),
    Setting(
        "FOCUSED_DNS_SERVERS",
        SettingType.TEXT,
        None,
        "Name servers instead of those in `/etc/resolv.conf`: addresses with or without a port, "
        'such as `"9.9.9.9, [::1]:5353"`.',
    ),
    Setting(
        "FOCUSED_RECORDED_WEB",
        SettingType.PATH,
        None,
        "Folder of a recorded web, for samples and for labels that score the topic spider's "
        "report. It does not redirect requests; `FOCUSED_REPLAY` does. Needs the extra "
        "`experiments`.",
    ),
    Setting("FOCUSED_PAGES", SettingType.NUMBER, None, "Overrides `budget.pages`.", whole_number),
    Setting(
        "FOCUSED_DELAY_S", SettingType.NUMBER, None, "Overrides `politeness.delay_s`.", non_negative
    ),
    Setting(
        "FOCUSED_CONCURRENCY",
        SettingType.NUMBER,
        None,
        "Overrides `politeness.concurrency`.",
        whole_number,
    ),
    Setting(
        "FOCUSED_CONTINUOUS",
        SettingType.FLAG,
        None,
        "Overrides `revisit.continuous`.",
    ),
    Setting(
        "FOCUSED_FOLDER",
        SettingType.PATH,
        None,
        "Overrides `output.folder`. Relative to the current directory.",
    ),
    Setting("FOCUSED_CLUSTER_STORAGE", SettingType.TEXT, None, "Overrides `cluster.storage`."),
    Setting(
        "FOCUSED_PARTITION",
        SettingType.OTHER,
        None,
        "The part of a crawl that this process runs; only `focused crawl --processes` sets it.",
    ),
    Setting(
        "FOCUSED_FETCH_SAMPLES",
        SettingType.FLAG,
        False,
        "Fetch training samples: without scope, budget and Parquet files. The samples spider sets "
        "it.",
    ),
    Setting(
        "FOCUSED_PARSER_PROCESSES",
        SettingType.NUMBER,
        None,
        "Number of parser processes. `None`: one fewer than cores, at most four. `0`: one, for "
        "pages that may take long. See docs/explanation/performance.md#both-cores.",
    ),
    Setting(
        "FOCUSED_PARSE_TIMEOUT_S",
        SettingType.NUMBER,
        10.0,
        "CPU time in seconds to parse and classify one page; six times as much wall-clock time. "
        "Else it fails with `parse-timeout`. See "
        "docs/explanation/hostile-input.md#limits-of-one-page.",
        positive,
    ),
    Setting(
        "FOCUSED_PARSE_MEMORY_MB",
        SettingType.NUMBER,
        1_000.0,
        "Memory (10^6 bytes) to parse and classify one page; Linux only. Else it fails with "
        "`parse-memory`.",
        positive,
    ),
    Setting(
        "FOCUSED_ITEM_FIELDS",
        SettingType.OTHER,
        None,
        "Fields that the topic spider adds to its items: `text`, `markdown`, `published`, "
        "`modified`, `authors`, `licences`, `robots`; a list, or a text with commas. Needs the "
        "extra `corpus`. See docs/reference/corpus.md.",
    ),
    Setting(
        "FOCUSED_PROGRESS_INTERVAL_S",
        SettingType.NUMBER,
        5.0,
        "Seconds between progress lines if standard error is not a terminal, which is updated "
        "every second. `0`: no progress lines.",
        non_negative,
    ),
    Setting("FOCUSED_LOG_LEVEL", SettingType.OTHER, "INFO", "Level of `crawl.log`."),
    Setting(
        "FOCUSED_LOG_TO_FOLDER",
        SettingType.FLAG,
        False,
        "Write Scrapy's log to `crawl.log` in the crawl's folder, unless `LOG_FILE` is set. Both "
        "spiders set it.",
    ),
    Setting(
        "FOCUSED_REPORT",
        SettingType.FLAG,
        False,
        "Print the crawl's report at its end, and write it into `report.json`. The topic spider "
        "sets it.",
    ),
    Setting(
        "FOCUSED_OWNS_PROCESS",
        SettingType.FLAG,
        False,
        "Allow the add-on to change [state of the whole process](#the-process).",
    ),
)
"""The settings of every crawl; features have others."""


@cache
def all_settings() -> Mapping[str, Setting]:
    """Return every setting by name, those of installed features included.

    Raises ConfigurationError for a feature that cannot be imported.
    """
    features = installed_driver_features().values()
    return {
        each.name: each for each in (*SETTINGS, *chain.from_iterable(f.settings for f in features))
    }


def set_defaults(settings: BaseSettings) -> None:
    """Set the defaults of all settings that have no value."""
    for name, each in all_settings().items():
        settings.setdefault(name, each.default, priority="default")


def check_settings(settings: BaseSettings) -> None:
    """Raise ConfigurationError, which names the setting, for one that is unknown or unusable."""
    known = all_settings()
    for name in settings:
        if str(name).startswith(_PREFIX) and name not in known:
            close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigurationError(f"{name}: there is no such setting{hint}")
    _check_reactor(settings)
    for setting in known.values():
        _check_type(setting, settings)
        setting.check(settings, setting.name)
    _check_level(settings["FOCUSED_LOG_LEVEL"])
    web = settings["FOCUSED_RECORDED_WEB"]
    if web:
        find_recorded_webs()  # now: the report reads it when the crawl is over
        if not Path(web).is_dir():
            raise ConfigurationError(f"FOCUSED_RECORDED_WEB: there is no recorded web at {web}")
    parse_servers(settings["FOCUSED_DNS_SERVERS"] or "")
    if settings[REPLAY_SETTING]:
        check_replay_address(settings[REPLAY_SETTING])
    replay_clock(settings)
    try:
        find_policy(settings["FOCUSED_POLICY"])
    except ConfigurationError as error:
        raise ConfigurationError(f"FOCUSED_POLICY: {error}") from error
    parser_processes(settings)
    if settings["FOCUSED_ITEM_FIELDS"]:
        from focused.scrapy_addon.item_documents import parse_item_fields  # only for fields

        parse_item_fields(settings["FOCUSED_ITEM_FIELDS"])
    if isinstance(settings["FOCUSED_PARTITION"], str | int):
        raise ConfigurationError(
            "FOCUSED_PARTITION: only `focused crawl --processes` sets it, in the processes that it "
            "starts"
        )
    for feature in installed_driver_features().values():
        feature.check(settings)


def _check_type(setting: Setting, settings: BaseSettings) -> None:
    name, value = setting.name, settings[setting.name]
    if setting.type is SettingType.FLAG:
        try:
            settings.getbool(name)
        except ValueError:
            raise ConfigurationError(f"{name}: {value!r} must be True or False") from None
        return
    types = _TEXT_TYPES.get(setting.type)
    if types is not None and value is not None and not isinstance(value, types):
        raise ConfigurationError(f"{name}: {value!r} must be a text in quotes")


def _check_reactor(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a reactor without asyncio, which the HTTP client runs on."""
    reactor = settings["TWISTED_REACTOR"]
    if reactor and not str(reactor).endswith("asyncioreactor.AsyncioSelectorReactor"):
        raise ConfigurationError(
            f"TWISTED_REACTOR: the add-on needs the asyncio reactor, not {reactor}; remove the "
            "setting, because it is Scrapy's default"
        )
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        raise ConfigurationError(
            "TWISTED_REACTOR_ENABLED: False is not supported; leave the setting out"
        )


def replay_clock(settings: BaseSettings) -> Clock | None:
    """Return FOCUSED_CLOCK; None without the setting. Raises ConfigurationError."""
    text = settings["FOCUSED_CLOCK"]
    if not text:
        return None
    if not settings["FOCUSED_REPLAY"]:
        raise ConfigurationError(
            "FOCUSED_CLOCK: set FOCUSED_REPLAY too; a crawl of the live Web runs in real time"
        )
    try:
        return find_recorded_webs().parse_clock(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"FOCUSED_CLOCK: {error}") from None


def load_models_factory(setting: Any) -> Callable[..., Any]:
    """Import what FOCUSED_MODELS names. Raises ConfigurationError."""
    try:
        factory: Callable[..., Any] = load_object(setting)
    except (ImportError, NameError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"FOCUSED_MODELS: {setting!r} cannot be loaded: {error}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(f"FOCUSED_MODELS: {setting!r} cannot be called with a topic")
    return factory


def _check_level(value: Any) -> None:
    names = logging.getLevelNamesMapping()
    if value not in names and not (isinstance(value, int) and not isinstance(value, bool)):
        raise ConfigurationError(
            f"FOCUSED_LOG_LEVEL: {value!r} is not a log level; levels are {', '.join(names)}"
        )


def parser_processes(settings: BaseSettings) -> int | None:
    """Return FOCUSED_PARSER_PROCESSES; None lets the crawl decide. Raises ConfigurationError."""
    value = settings["FOCUSED_PARSER_PROCESSES"]
    if value is None:
        return None
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = -1
    if not 0 <= count <= MAX_PARSER_PROCESSES:
        raise ConfigurationError(
            f"FOCUSED_PARSER_PROCESSES: {value!r} is not a whole number from 0 to "
            f"{MAX_PARSER_PROCESSES}; without it the crawl decides"
        )
    return count


def parsing_limits(settings: BaseSettings) -> ParsingLimits:
    """Return the limits of parsing one page. Raises ConfigurationError."""
    from focused.parser_process import ParsingLimits  # only for pages that take long

    cpu_s = positive(settings, "FOCUSED_PARSE_TIMEOUT_S")
    memory_mb = positive(settings, "FOCUSED_PARSE_MEMORY_MB")
    return ParsingLimits(cpu_s, _ELAPSED_PER_CPU * cpu_s, memory_mb)


def topic_from_settings(settings: BaseSettings) -> Topic:
    """Load the topic that ``FOCUSED_TOPIC`` names, and apply the other settings.

    ``FOCUSED_PAGES``, ``FOCUSED_DELAY_S``, ``FOCUSED_CONCURRENCY``, ``FOCUSED_CONTINUOUS`` and
    ``FOCUSED_FOLDER`` override ``budget.pages``, ``politeness.delay_s``,
    ``politeness.concurrency``, ``revisit.continuous`` and ``output.folder``. Each policy other than
    ``focused`` has its own folder.
    """
    path = settings.get("FOCUSED_TOPIC")
    if not path:
        raise ConfigurationError(
            "FOCUSED_TOPIC is not set: which topic? Give -a topic=topics/NAME.toml to the "
            'topic spider, or FOCUSED_TOPIC = "NAME.toml" in the settings'
        )
    topic = load_topic(Path(path))
    if topic.revisit.policy != Revisit().policy:
        _check_revisit_policy(topic.revisit.policy, path)
    folder = topic.crawl_folder(settings.get("FOCUSED_POLICY"))
    if settings.getbool("FOCUSED_FETCH_SAMPLES"):
        folder = samples_folder(topic)
    if settings.get("FOCUSED_FOLDER"):
        folder = Path(settings["FOCUSED_FOLDER"])
    topic = replace(topic, output=replace(topic.output, folder=folder))
    budget, politeness = topic.budget, topic.politeness
    if (pages := whole_number(settings, "FOCUSED_PAGES")) is not None:
        budget = replace(budget, pages=pages)
    if (delay_s := non_negative(settings, "FOCUSED_DELAY_S")) is not None:
        politeness = replace(politeness, delay_s=delay_s)
    if (concurrency := whole_number(settings, "FOCUSED_CONCURRENCY")) is not None:
        politeness = replace(politeness, concurrency=concurrency)
    if settings["FOCUSED_CONTINUOUS"] is not None:
        continuous = settings.getbool("FOCUSED_CONTINUOUS")
        topic = replace(topic, revisit=replace(topic.revisit, continuous=continuous))
    topic = apply_to_topic(settings, replace(topic, budget=budget, politeness=politeness))
    return sample_crawl_topic(topic) if settings.getbool("FOCUSED_FETCH_SAMPLES") else topic


def _check_revisit_policy(name: str, path: str) -> None:
    from focused.revisit.policies import find_revisit_policy  # only for other policies

    try:
        find_revisit_policy(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: revisit.policy: {error}") from None


def samples_folder(topic: Topic) -> Path:
    """Return the folder of a training's crawl, beside the model."""
    return topic.training.model.with_suffix(".samples")


def sample_crawl_topic(topic: Topic) -> Topic:
    """Return the topic for the crawl of its training samples: without scope and budget.

    Hosts are not suspended, so that training does not wait for hours, and noindex pages are kept,
    because the samples are not published.
    """
    return replace(
        topic,
        politeness=replace(topic.politeness, suspend_s=0.0, noindex="keep"),
        scope=Scope(
            max_page_bytes=topic.scope.max_page_bytes,
            private_addresses=topic.scope.private_addresses,
        ),
        budget=Budget(),
        revisit=Revisit(),
        output=replace(topic.output, warc="pages", parquet=False),
    )
