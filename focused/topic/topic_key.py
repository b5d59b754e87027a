"""The description of one key of a topic file."""

from __future__ import annotations

from dataclasses import dataclass

REQUIRED = "required"
NO_LIMIT = "no limit"


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A key of a topic file.

    ``default`` is a TOML value, or words where the default depends on other
    keys. ``meaning`` is Markdown; paths under ``docs/`` become links.
    """

    name: str
    type: str
    default: str
    meaning: str


FLAG, TEXT, PATH = "true or false", "text", "path"
COUNT, COUNT_OR_ZERO = "whole number, from 1", "whole number, from 0"
NUMBER, POSITIVE = "number, from 0", "number above 0"
TEXTS, HOSTS, PATTERNS = "list of texts", "list of host names", "list of regular expressions"
