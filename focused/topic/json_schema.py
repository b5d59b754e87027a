"""The JSON Schema of topic files, by which editors complete and check them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import msgspec

from focused.topic.toml_table import declared_sections
from focused.topic.topic_keys import REQUIRED, TOPIC_KEYS, TopicKey

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that editors' TOML extensions understand."""

_Schema = dict[str, Any]

_REQUIRED_SECTIONS = ("seeds", "training", "politeness")


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
    found: _Schema = {**key.kind.schema, "description": key.meaning}
    if name == "output.warc":
        found["enum"] = [*found["enum"], True, False]
    if key.value is not None:
        found["default"] = list(key.value) if isinstance(key.value, tuple) else key.value
    return found


def _feature_section(kind: type[Any]) -> _Schema:
    """Return the schema of a feature's dataclass, without references to definitions."""
    assert is_dataclass(kind)
    (_,), definitions = msgspec.json.schema_components([kind])
    return {**definitions[kind.__name__], "additionalProperties": False}
