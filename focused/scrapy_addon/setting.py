"""A setting of the add-on, and checks of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError


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
