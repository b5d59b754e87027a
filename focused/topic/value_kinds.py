"""The kinds of values in topic files: their names, their JSON Schemas, and how they are read.

The dataclasses of :mod:`focused.topic` are annotated with them, so a key is declared once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from focused.topic.toml_table import TomlTable

_Section = TypeVar("_Section")
_Schema = Mapping[str, Any]

_CONTENT_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_PARAMETER_NAME = re.compile(r"[^\s&=#*?]+\*?")
_LANGUAGE = re.compile(r"[a-z]{2}")
_TEXT: _Schema = {"type": "string"}


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """What values of a key are called and look like.

    ``read`` returns the value of a key of a table. If it is wrong ``read`` reports it, and returns
    None or what is right in it.
    """

    name: str
    schema: _Schema
    read: Callable[[TomlTable, str], Any]


def choice(*values: str) -> ValueKind:
    """One of some texts."""
    return ValueKind("text", {"enum": list(values)}, lambda table, key: table.choice(key, values))


def whole(at_least: int) -> ValueKind:
    """A whole number."""
    schema = {"type": "integer", "minimum": at_least}
    read = partial(TomlTable.whole, at_least=at_least)
    return ValueKind(f"integer from {at_least}", schema, read)


def text(name: str = "text", schema: _Schema = _TEXT) -> ValueKind:
    """A text; empty is as if it were missing."""
    return ValueKind(name, schema, lambda table, key: table.text(key) or None)


def texts(
    name: str = "list of texts",
    read: Callable[[TomlTable, str], tuple[str, ...]] = TomlTable.texts,
    items: _Schema = _TEXT,
) -> ValueKind:
    """A list of texts."""
    return ValueKind(name, {"type": "array", "items": items}, read)


def _numbers(name: str, read: Callable[[TomlTable, str], Mapping[str, float]]) -> ValueKind:
    number = {"type": "number", "minimum": 0}
    return ValueKind(name, {"type": "object", "additionalProperties": number}, read)


def _read_patterns(table: TomlTable, key: str) -> tuple[str, ...]:
    return tuple(each for each in table.texts(key) if table.check_pattern(key, each))


def _read_parameter_names(table: TomlTable, key: str) -> tuple[str, ...]:
    names = table.texts(key)
    for name in names:
        if not _PARAMETER_NAME.fullmatch(name):
            table.add_error(
                key, f'"{name}" must be a name as it stands in URLs, or its beginning and *'
            )
    return names


def _matching(form: re.Pattern[str], like: str) -> Callable[[TomlTable, str], tuple[str, ...]]:
    def read(table: TomlTable, key: str) -> tuple[str, ...]:
        entries = tuple(entry.lower() for entry in table.texts(key))
        for entry in entries:
            if not form.fullmatch(entry):
                table.add_error(key, f'"{entry}" must be {like}')
        return entries

    return read


def documents(formats: Sequence[str]) -> ValueKind:
    """A list of formats of documents, of those that are known."""

    def read(table: TomlTable, key: str) -> tuple[str, ...]:
        named = table.texts(key)
        if named:
            from focused.topic import missing_document_library
        for name in named:
            if name not in formats:
                table.add_error(key, f'there is no format "{name}"; known are {", ".join(formats)}')
            elif (library := missing_document_library(name)) is not None:
                table.add_error(
                    key,
                    f'"{name}" needs {library}, which is not installed: '
                    "pip install 'focused-crawler[documents]'",
                )
        return named

    name = f"list of {', '.join(f'`{each}`' for each in formats)}"
    return texts(name, read, {"enum": list(formats)})


Flag = Annotated[bool, ValueKind("boolean", {"type": "boolean"}, TomlTable.boolean)]
Text = Annotated[str, text()]
PathName = Annotated[Path, text("path")]
Count = Annotated[int, whole(1)]
CountOrZero = Annotated[int, whole(0)]
Number = Annotated[
    float,
    ValueKind(
        "number from 0", {"type": "number", "minimum": 0}, partial(TomlTable.number, zero=True)
    ),
]
Positive = Annotated[
    float,
    ValueKind(
        "number above 0",
        {"type": "number", "exclusiveMinimum": 0},
        partial(TomlTable.number, zero=False),
    ),
]
Share = Annotated[
    float,
    ValueKind(
        "number above 0, at most 1",
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        TomlTable.share,
    ),
]
Texts = Annotated[tuple[str, ...], texts()]
Hosts = Annotated[tuple[str, ...], texts("list of host names", TomlTable.hosts)]
Patterns = Annotated[tuple[str, ...], texts("list of regular expressions", _read_patterns)]
ParameterNames = Annotated[tuple[str, ...], texts("list of names", _read_parameter_names)]
MediaTypes = Annotated[
    tuple[str, ...], texts("list of media types", _matching(_CONTENT_TYPE, "like text/html"))
]
Languages = Annotated[
    tuple[str, ...],
    texts("list of ISO 639-1 codes", _matching(_LANGUAGE, "an ISO 639-1 code like en")),
]
NumbersByHost = Annotated[
    Mapping[str, float], _numbers("numbers by host name", TomlTable.numbers_by_host)
]
NumbersByPattern = Annotated[
    Mapping[str, float], _numbers("numbers by regular expression", TomlTable.numbers_by_pattern)
]


def kinds_of(section: type[Any]) -> Iterator[tuple[str, ValueKind]]:
    """Yield the keys that a section's dataclass declares, in their order."""
    hints = get_type_hints(section, localns=globals(), include_extras=True)
    for each in fields(section):
        hint = hints[each.name]
        annotated = [hint, *get_args(hint)]  # the hint may be optional
        metadata = (data for part in annotated for data in getattr(part, "__metadata__", ()))
        kind = next((data for data in metadata if isinstance(data, ValueKind)), None)
        if kind is not None:
            yield each.name, kind


def read_section(table: TomlTable, section: type[_Section], **given: Any) -> _Section:
    """Return a section as its dataclass; keys that are missing or wrong have their default.

    ``given`` are values of keys that the caller has read.
    """
    found = {
        key: kind.read(table, key)
        for key, kind in kinds_of(section)
        if key in table.values and key not in given
    }
    return section(**{key: value for key, value in found.items() if value is not None}, **given)
