"""The JSON Schema of topic files, by which editors complete and check them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

import msgspec

from focused.topic import (
    ESTIMATORS,
    FOCUS_MODES,
    JAVASCRIPT_ACTIONS,
    NOINDEX_ACTIONS,
    PARTITION_UNITS,
    SPAM_ACTIONS,
    WARC_MODES,
)
from focused.topic.login import LOGIN_METHODS
from focused.topic.toml_table import declared_sections
from focused.topic.topic_keys import (
    FLAG,
    NUMBER,
    PATH,
    POSITIVE,
    REQUIRED,
    TEXT,
    TOPIC_KEYS,
    TopicKey,
)

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that editors' TOML extensions understand."""

_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string"}
_PLAIN: Mapping[str, _Schema] = {
    FLAG: {"type": "boolean"},
    TEXT: _TEXT,
    PATH: _TEXT,
    NUMBER: {"type": "number", "minimum": 0},
    POSITIVE: {"type": "number", "exclusiveMinimum": 0},
    "number above 0, at most 1": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "texts by field name": {"type": "object", "additionalProperties": _TEXT},
    "text, or list of texts": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "text, `env:NAME` or `keyring:SERVICE/USER`": _TEXT,
    "`env:NAME` or `keyring:SERVICE/USER`": {"type": "string", "pattern": "^(env|keyring):"},
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "training.estimator": ESTIMATORS,
    "training.focus": FOCUS_MODES,
    "scope.spam": SPAM_ACTIONS,
    "scope.javascript": JAVASCRIPT_ACTIONS,
    "politeness.noindex": NOINDEX_ACTIONS,
    "cluster.unit": PARTITION_UNITS,
    "login.method": LOGIN_METHODS,
}
_REQUIRED_SECTIONS = ("seeds", "training", "politeness")
_WHOLE_NUMBER = re.compile(r"whole number, from (\d+)")


def topic_schema() -> _Schema:
    """Return the JSON Schema of topic files, with the sections of installed features."""
    head = _section("", TOPIC_KEYS[""])
    sections = {name: _section(name, keys) for name, keys in TOPIC_KEYS.items() if name}
    login = sections["login"]
    sections["login"] = {"anyOf": [login, {"type": "array", "items": login}]}
    for name, kind in declared_sections().items():
        sections[name] = _feature_section(kind)
    return {
        "$schema": DIALECT,
        "title": "Topic file of Focused",
        **head,
        "properties": {**head["properties"], **sections},
        "required": [*head["required"], *_REQUIRED_SECTIONS],
    }


def _section(name: str, keys: tuple[TopicKey, ...]) -> _Schema:
    required = {"required": [key.name for key in keys if key.default == REQUIRED]}
    is_optional = name not in ("", *_REQUIRED_SECTIONS)
    return {
        "type": "object",
        "properties": {key.name: _key(f"{name}.{key.name}", key) for key in keys},
        # Other sections may be empty, as in a file whose keys are comments.
        **({"if": {"minProperties": 1}, "then": required} if is_optional else required),
        "additionalProperties": False,
    }


def _key(name: str, key: TopicKey) -> _Schema:
    found: _Schema = {**_value(name, key.type), "description": key.meaning}
    # Words are no TOML: such a default depends on other keys.
    with suppress(tomllib.TOMLDecodeError):
        found["default"] = tomllib.loads(f"default = {key.default}")["default"]
    return found


def _value(name: str, kind: str) -> _Schema:
    """Return the schema of a value by the words of the reference for its type."""
    if name == "output.warc":
        return {"enum": [*WARC_MODES, True, False]}
    if name in _CHOICES:
        return {"enum": list(_CHOICES[name])}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if kind.startswith("list of `"):
        formats = re.findall(r"`([^`]+)`", kind)
        return {"type": "array", "items": {"enum": formats}}
    if kind.startswith("list of "):
        return {"type": "array", "items": _TEXT}
    if kind.startswith("numbers by "):
        return {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
    whole = _WHOLE_NUMBER.fullmatch(kind)
    if whole is None:
        raise ValueError(f"{name}: {kind!r} is no type of a topic file's key")
    return {"type": "integer", "minimum": int(whole[1])}


def _feature_section(kind: type[Any]) -> _Schema:
    """Return the schema of a feature's dataclass, without references to definitions."""
    assert is_dataclass(kind)
    (_,), definitions = msgspec.json.schema_components([kind])
    return {**definitions[kind.__name__], "additionalProperties": False}
