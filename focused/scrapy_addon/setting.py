"""A setting of the add-on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class SettingType(Enum):
    """What a setting's value must be. Numbers are checked where they are read."""

    TEXT = "text"
    PATH = "path"
    FLAG = "True or False"
    NUMBER = "number"
    OTHER = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the add-on; ``meaning`` is Markdown for the reference."""

    name: str
    type: SettingType
    default: Any
    meaning: str
