"""Reads a TOML table key by key and collects all errors.

Knows types and bounds, but nothing about topics.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

import ada_url
import msgspec

from focused.installed_features import installed_features

_Choice = TypeVar("_Choice", bound=str)

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    list: "a list",
    dict: "a section",
}


@dataclass(slots=True)
class ErrorList:
    """The errors of one file, in the order found: key and message."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def add(self, key: str, message: str) -> None:
        """Add ``message`` about ``key`` (dotted, as in ``scope.max_depth``)."""
        self.found.append((key, message))


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One section. Readers return the default if the key is missing or wrong."""

    name: str
    values: Mapping[str, object]
    errors: ErrorList

    def key(self, key: str) -> str:
        """Return the dotted name of ``key`` for messages."""
        return f"{self.name}.{key}" if self.name else key

    def add_error(self, key: str, message: str) -> None:
        """Add an error about ``key``."""
        self.errors.add(self.key(key), message)

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

    def text(self, key: str, default: str = "") -> str:
        """Return a string, stripped."""
        value = self._value_of_type(key, str, default)
        return value.strip() if isinstance(value, str) else default

    def choice(self, key: str, choices: Sequence[_Choice]) -> _Choice:
        """Return one of ``choices``; the default is the first."""
        value = self.text(key, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        close = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"
        self.add_error(key, f'"{value}" is unknown; {hint}')
        return choices[0]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of non-empty strings without duplicates."""
        value = self.values.get(key, [])
        if isinstance(value, str):
            shown = json.dumps(value, ensure_ascii=not value.isprintable())
            self.add_error(key, f"must be a list, also for one entry: {key} = [{shown}]")
            return ()
        entries = self._value_of_type(key, list, [])
        if not isinstance(entries, list):
            return ()
        kept: dict[str, None] = {}
        for place, entry in enumerate(entries, start=1):
            if not isinstance(entry, str):
                self.add_error(key, f"entry {place} must be a text in quotes, not {entry!r}")
            elif not entry.strip():
                self.add_error(key, f"entry {place} is empty")
            else:
                kept[entry.strip()] = None
        return tuple(kept)

    def hosts(self, key: str) -> tuple[str, ...]:
        """Return a list of host names in lower case and punycode, without duplicates."""
        found = (self._host(key, entry) for entry in self.texts(key))
        return tuple(dict.fromkeys(host for host in found if host is not None))

    def numbers_by_host(self, key: str) -> dict[str, float]:
        """Return finite numbers >= 0 by host name."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.add_error(key, f'must be hosts and numbers: {key} = {{ "example.org" = 1.0 }}')
            return {}
        table = TomlTable(self.key(key), value, self.errors)
        numbers: dict[str, float] = {}
        for entry in value:
            host, number = self._host(key, entry), table.number(entry, zero=True)
            if host in numbers:
                self.add_error(key, f'"{entry}" occurs twice')
            elif host is not None and number is not None:
                numbers[host] = number
        return numbers

    def numbers_by_pattern(self, key: str) -> dict[str, float]:
        """Return finite numbers >= 0 by regular expression."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.add_error(key, f'must be patterns and numbers: {key} = {{ "^/news/" = 2.0 }}')
            return {}
        table = TomlTable(self.key(key), value, self.errors)
        numbers: dict[str, float] = {}
        for pattern in value:
            number = table.number(pattern, zero=True)
            if self.check_pattern(key, pattern) and number is not None:
                numbers[pattern] = number
        return numbers

    def check_pattern(self, key: str, pattern: str) -> bool:
        """Whether ``pattern`` is a regular expression; adds an error otherwise."""
        try:
            re.compile(pattern)
        except re.error as error:
            self.add_error(key, f"{pattern!r} is not a regular expression: {error}")
            return False
        return True

    def boolean(self, key: str) -> bool | None:
        """Return true or false, None if absent."""
        value = self._value_of_type(key, bool, None)
        return value if isinstance(value, bool) else None

    def whole(self, key: str, at_least: int) -> int | None:
        """Return an integer >= ``at_least``, None if absent."""
        value = self._value_of_type(key, int, None)
        if not isinstance(value, int):
            return None
        if value < at_least:
            self.add_error(key, f"must be {at_least} or more, not {value}")
            return None
        return value

    def number(self, key: str, *, zero: bool) -> float | None:
        """Return a finite number > 0 (>= 0 with ``zero``), None if absent."""
        value = self._value_of_type(key, float, None)
        if not isinstance(value, int | float):
            return None
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            self.add_error(key, f"must be {'0 or more' if zero else 'more than 0'}, not {value}")
            return None
        return float(value)

    def share(self, key: str) -> float | None:
        """Return a number in (0, 1], None if absent."""
        value = self.number(key, zero=False)
        if value is not None and value > 1:
            self.add_error(key, f"must be a share of at most 1, like 0.9, not {value:g}")
            return None
        return value

    def _host(self, key: str, entry: str) -> str | None:
        host = _normalise_host(entry)
        if host is None:
            self.add_error(key, f'"{entry}" is not a host name; {_host_name_hint(entry)}')
        return host

    def _value_of_type(self, key: str, kind: type, default: object) -> object:
        """Return the value if it has type ``kind``; an integer is also a number."""
        if key not in self.values:
            return default
        value = self.values[key]
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        self.add_error(key, f"must be {_TYPE_NAMES[kind]}, not {_format_value(value)}")
        return default


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return _TYPE_NAMES[type(value)] if isinstance(value, list | dict) else str(value)


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
                table.add_error(each.name, _in_words(error))
    try:
        return kind(**values)
    except ValueError as error:
        table.errors.add(table.name, str(error))
        return kind()


def key_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the keys of a section."""
    return tuple(each.name for each in fields(kind))


def _in_words(error: msgspec.ValidationError) -> str:
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
