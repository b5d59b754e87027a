"""Mistakes in the add-on's settings, found before anything is made of them."""

from __future__ import annotations

import difflib
import logging
import math
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from focused.errors import ConfigurationError

_PREFIX = "FOCUSED_"
_FLAGS = ("FOCUSED_FOLLOW_LINKS", "FOCUSED_SAMPLES", "FOCUSED_LOG_TO_FOLDER")
_TEXTS = ("FOCUSED_TOPIC", "FOCUSED_POLICY", "FOCUSED_REPLAY", "FOCUSED_DNS_SERVERS")
_PATHS = ("FOCUSED_TOPIC", "FOCUSED_FOLDER", "FOCUSED_WEB")


def check_settings(settings: BaseSettings, known: Collection[str]) -> None:
    """Raise ConfigurationError, which names the setting, for one that is unknown or unusable.

    ``known`` are the names of the add-on's settings. Numbers are checked where they are read.
    """
    for name in settings:
        if str(name).startswith(_PREFIX) and name not in known:
            close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigurationError(f"{name}: there is no such setting{hint}")
    _check_reactor(settings)
    for name in _FLAGS:
        try:
            settings.getbool(name)
        except ValueError:
            raise ConfigurationError(f"{name}: {settings[name]!r} must be True or False") from None
    for name in dict.fromkeys((*_TEXTS, *_PATHS)):
        value = settings[name]
        kinds = (str, os.PathLike) if name in _PATHS else (str,)
        if value is not None and not isinstance(value, kinds):
            raise ConfigurationError(f"{name}: {value!r} must be a text in quotes")
    _check_progress(settings["FOCUSED_PROGRESS_S"])
    _check_level(settings["FOCUSED_LOG_LEVEL"])
    web = settings["FOCUSED_WEB"]
    if web and not Path(web).is_dir():
        raise ConfigurationError(f"FOCUSED_WEB: there is no recorded web at {web}")


def _check_reactor(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a reactor without asyncio, which the HTTP client runs on."""
    reactor = settings["TWISTED_REACTOR"]
    if reactor and not str(reactor).endswith("asyncioreactor.AsyncioSelectorReactor"):
        raise ConfigurationError(
            f"TWISTED_REACTOR: focus needs the asyncio reactor, not {reactor}; leave the setting "
            "out: it is Scrapy's default"
        )


def guide_maker(setting: Any) -> Callable[..., Any]:
    """What FOCUSED_GUIDE names, imported; ConfigurationError when it cannot be."""
    try:
        maker: Callable[..., Any] = load_object(setting)
    except (ImportError, NameError, TypeError, ValueError) as error:
        raise ConfigurationError(f"FOCUSED_GUIDE: {setting!r} cannot be loaded: {error}") from error
    if not callable(maker):
        raise ConfigurationError(f"FOCUSED_GUIDE: {setting!r} cannot be called with a topic")
    return maker


def _check_progress(value: Any) -> None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ConfigurationError(
            f"FOCUSED_PROGRESS_S: {value!r} is no number of seconds from 0 on; 0 shows no progress"
        )


def _check_level(value: Any) -> None:
    names = logging.getLevelNamesMapping()
    if value not in names and not (isinstance(value, int) and not isinstance(value, bool)):
        raise ConfigurationError(
            f"FOCUSED_LOG_LEVEL: {value!r} is no level; there are {', '.join(names)}"
        )
