"""Kinds of values of topic files: how each is read and checked; all errors are collected.

A kind of values has a name, a JSON Schema and a reader. The dataclasses of :mod:`focused.topic` are
annotated with kinds, so a key is declared once. Those of features are annotated as for msgspec.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import ada_url
import msgspec

from focused.installed_features import installed_features

_Section = TypeVar("_Section")
_Value = TypeVar("_Value")
_Schema = Mapping[str, Any]

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    list: "a list",
    dict: "a section",
}
_CONTENT_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_PARAMETER_NAME = re.compile(r"[^\s&=#*?]+\*?")
_LANGUAGE = re.compile(r"[a-z]{2}")
_TEXT: _Schema = {"type": "string"}


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One section.

    ``errors`` has the keys (dotted, as in ``scope.max_depth``) and messages of one file, in the
    order found.
    """

    name: str
    values: Mapping[str, object]
    errors: list[tuple[str, str]]

    def key(self, key: str) -> str:
        """Return the dotted name of ``key`` for messages."""
        return f"{self.name}.{key}" if self.name else key

    def add_error(self, key: str, message: str) -> None:
        """Add an error about ``key``."""
        self.errors.append((self.key(key), message))

    def report_unknown_keys(
        self, known: Sequence[str], sections: Mapping[str, Sequence[str]]
    ) -> None:
        """Add an error for each key not in ``known``.

        ``sections`` maps each section to its keys, to suggest the section of a misplaced key.
        """
        for key in self.values:
            if key in known:
                continue
            homes = [section for section, keys in sections.items() if key in keys]
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            if homes:
                hint = (
                    f"it belongs in [{homes[0]}]" if homes[0] else "it belongs above all sections"
                )
            elif close:
                hint = f"did you mean {close[0]}?"
            else:
                hint = f"known here: {', '.join(known)}"
            self.add_error(key, f"unknown key; {hint}")

    def value(self, key: str, kind: type[_Value]) -> _Value | None:
        """Return the value of a key if it has a type, else None; an integer is also a number."""
        if key not in self.values:
            return None
        value = self.values[key]
        if kind is float and type(value) is int:
            with suppress(OverflowError):
                value = float(value)
        if type(value) is kind:
            return value
        self.add_error(key, f"must be {_TYPE_NAMES[kind]}, not {_format_value(value)}")
        return None

    def text(self, key: str) -> str:
        """Return a text, stripped; empty if it is missing or wrong."""
        return (self.value(key, str) or "").strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of non-empty texts without duplicates; empty if it is missing or wrong."""
        value = self.values.get(key)
        if isinstance(value, str):
            shown = json.dumps(value, ensure_ascii=not value.isprintable())
            self.add_error(key, f"must be a list, also for one entry: {key} = [{shown}]")
            return ()
        kept: dict[str, None] = {}
        for place, entry in enumerate(self.value(key, list) or (), start=1):
            if not isinstance(entry, str):
                self.add_error(key, f"entry {place} must be a text in quotes, not {entry!r}")
            elif not entry.strip():
                self.add_error(key, f"entry {place} is empty")
            else:
                kept[entry.strip()] = None
        return tuple(kept)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return _TYPE_NAMES[type(value)] if isinstance(value, list | dict) else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """What values of a key are called and look like.

    ``read`` returns the value of a key that a table has. If it is wrong ``read`` reports it, and
    returns None or what is right in it.
    """

    name: str
    schema: _Schema
    read: Callable[[TomlTable, str], Any]


def choice(*values: str) -> ValueKind:
    """One of some texts."""

    def read(table: TomlTable, key: str) -> str | None:
        value = table.value(key, str)
        if value is None or value.strip() in values:
            return value and value.strip()
        close = difflib.get_close_matches(value.strip(), values, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(values)}"
        table.add_error(key, f'"{value.strip()}" is unknown; {hint}')
        return None

    return ValueKind("text", {"enum": list(values)}, read)


def whole(at_least: int) -> ValueKind:
    """A whole number."""

    def read(table: TomlTable, key: str) -> int | None:
        value = table.value(key, int)
        if value is None or value >= at_least:
            return value
        table.add_error(key, f"must be {at_least} or more, not {value}")
        return None

    return ValueKind(f"integer from {at_least}", {"type": "integer", "minimum": at_least}, read)


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


def _read_number(table: TomlTable, key: str, *, zero: bool = True) -> float | None:
    value = table.value(key, float)
    if value is None or (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        return value
    least = "0 or more" if zero else "more than 0"
    table.add_error(key, f"must be {least}, not {table.values[key]}")
    return None


def _read_share(table: TomlTable, key: str) -> float | None:
    value = _read_number(table, key, zero=False)
    if value is None or value <= 1:
        return value
    table.add_error(key, f"must be a share of at most 1, like 0.9, not {value:g}")
    return None


def _read_hosts(table: TomlTable, key: str) -> tuple[str, ...]:
    hosts = (_read_host(table, key, entry) for entry in table.texts(key))
    return tuple(dict.fromkeys(filter(None, hosts)))


def _read_host(table: TomlTable, key: str, entry: str) -> str | None:
    host = _normalise_host(entry)
    if host is None:
        table.add_error(key, f'"{entry}" is not a host name; {_host_name_hint(entry)}')
    return host


def _normalise_host(entry: str) -> str | None:
    """Return the host in lower case and punycode, or None if ``entry`` is not just a host."""
    if re.search(r"[\s/?#@*\\]|^\.|:\d*$", entry):
        return None
    try:
        return ada_url.URL(f"http://{entry}/").hostname.rstrip(".") or None
    except ValueError:
        return None


def _host_name_hint(entry: str) -> str:
    without_scheme = entry.partition("://")[2] or entry
    bare = re.split(r"[/?#:]", without_scheme.lstrip("*."))[0]
    example = bare if _normalise_host(bare) else "example.org"
    return f'write "{example}", without scheme, port, path or wildcard: it covers its subdomains'


def _read_pattern(table: TomlTable, key: str, pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        table.add_error(key, f"{pattern!r} is not a regular expression: {error}")
        return None
    return pattern


def _read_patterns(table: TomlTable, key: str) -> tuple[str, ...]:
    return tuple(each for each in table.texts(key) if _read_pattern(table, key, each) is not None)


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


def _numbers(
    name: str, what: str, example: str, read_name: Callable[[TomlTable, str, str], str | None]
) -> ValueKind:
    """Numbers from 0 by the names that ``read_name`` returns of their keys."""

    def read(table: TomlTable, key: str) -> dict[str, float]:
        value = table.values[key]
        if not isinstance(value, dict):
            table.add_error(key, f"must be {what} and numbers: {key} = {{ {example} }}")
            return {}
        inner = TomlTable(table.key(key), value, table.errors)
        numbers: dict[str, float] = {}
        for entry in value:
            name, number = read_name(table, key, entry), _read_number(inner, entry)
            if name in numbers:
                table.add_error(key, f'"{entry}" occurs twice')
            elif name is not None and number is not None:
                numbers[name] = number
        return numbers

    schema = {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
    return ValueKind(name, schema, read)


_FLAG = ValueKind("boolean", {"type": "boolean"}, lambda table, key: table.value(key, bool))
_NUMBER = ValueKind("number from 0", {"type": "number", "minimum": 0}, _read_number)
_POSITIVE = ValueKind(
    "number above 0",
    {"type": "number", "exclusiveMinimum": 0},
    partial(_read_number, zero=False),
)
_SHARE = ValueKind(
    "number above 0, at most 1",
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    _read_share,
)
_BY_HOST = _numbers("numbers by host name", "hosts", '"example.org" = 1.0', _read_host)
_BY_PATTERN = _numbers(
    "numbers by regular expression", "patterns", '"^/news/" = 2.0', _read_pattern
)

Flag = Annotated[bool, _FLAG]
Text = Annotated[str, text()]
PathName = Annotated[Path, text("path")]
Count = Annotated[int, whole(1)]
CountOrZero = Annotated[int, whole(0)]
Number = Annotated[float, _NUMBER]
Positive = Annotated[float, _POSITIVE]
Share = Annotated[float, _SHARE]
Texts = Annotated[tuple[str, ...], texts()]
Hosts = Annotated[tuple[str, ...], texts("list of host names", _read_hosts)]
Patterns = Annotated[tuple[str, ...], texts("list of regular expressions", _read_patterns)]
ParameterNames = Annotated[tuple[str, ...], texts("list of names", _read_parameter_names)]
MediaTypes = Annotated[
    tuple[str, ...], texts("list of media types", _matching(_CONTENT_TYPE, "like text/html"))
]
Languages = Annotated[
    tuple[str, ...],
    texts("list of ISO 639-1 codes", _matching(_LANGUAGE, "an ISO 639-1 code like en")),
]
NumbersByHost = Annotated[Mapping[str, float], _BY_HOST]
NumbersByPattern = Annotated[Mapping[str, float], _BY_PATTERN]


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


def declared_sections() -> Mapping[str, type[Any]]:
    """Return the dataclasses of the installed features' sections, by feature."""
    declared = {name: each.section for name, each in installed_features().items()}
    return {name: section for name, section in declared.items() if section is not None}


def read_feature_section(table: TomlTable, kind: type[Any]) -> Any:
    """Return the section of a feature as its dataclass; wrong keys have their default.

    Types are those of msgspec: ``Annotated[int, msgspec.Meta(ge=1)]`` has a bound. A
    ``__post_init__`` may raise ValueError for values that do not fit together.
    """
    hints = get_type_hints(kind, include_extras=True)
    values = {}
    for each in fields(kind):
        if each.name in table.values:
            try:
                values[each.name] = msgspec.convert(table.values[each.name], hints[each.name])
            except msgspec.ValidationError as error:
                message = str(error).replace("`", "")
                table.add_error(each.name, message[:1].lower() + message[1:])
    try:
        return kind(**values)
    except ValueError as error:
        table.errors.append((table.name, str(error)))
        return kind()
