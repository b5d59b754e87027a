"""A TOML table read key by key, with every problem kept until the end.

Nothing here knows about topics: it checks types and bounds, and words what is
add_error so that the reader of the message can mend it.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import ada_url

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
    """What is add_error with one file, in the order it was found."""

    lines: list[str] = field(default_factory=list)

    def add(self, key: str, message: str) -> None:
        """Keep ``message`` about ``key`` (dotted, as in ``scope.max_depth``)."""
        self.lines.append(f"{key}: {message}")


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One section. Readers answer the default when the key is absent or add_error."""

    name: str
    values: Mapping[str, object]
    errors: ErrorList

    def key(self, key: str) -> str:
        """The dotted name of ``key`` for messages."""
        return f"{self.name}.{key}" if self.name else key

    def add_error(self, key: str, message: str) -> None:
        """Keep a problem of ``key``."""
        self.errors.add(self.key(key), message)

    def report_unknown_keys(
        self, known: Sequence[str], sections: Mapping[str, Sequence[str]]
    ) -> None:
        """Keep a problem for every key not in ``known``.

        ``sections`` maps each section to its keys, to name the right section
        for a key that stands in the add_error one.
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
        """A text, outer blanks removed."""
        value = self._value_of_type(key, str, default)
        return value.strip() if isinstance(value, str) else default

    def choice(self, key: str, choices: Sequence[_Choice]) -> _Choice:
        """One of ``choices``, the first of them when absent."""
        value = self.text(key, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        close = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"
        self.add_error(key, f'"{value}" is unknown; {hint}')
        return choices[0]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, none of them empty, repetitions removed."""
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
        """A list of host names, lower case and punycode, repetitions removed."""
        found = (self._host(key, entry) for entry in self.texts(key))
        return tuple(dict.fromkeys(host for host in found if host is not None))

    def numbers_by_host(self, key: str) -> dict[str, float]:
        """Finite numbers from 0 by host name."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.add_error(key, f'must be hosts and numbers: {key} = {{ "example.org" = 1.0 }}')
            return {}
        told = TomlTable(self.key(key), value, self.errors)
        numbers: dict[str, float] = {}
        for entry in value:
            host, number = self._host(key, entry), told.optional_number(entry, zero=True)
            if host in numbers:
                self.add_error(key, f'"{entry}" stands there twice')
            elif host is not None and number is not None:
                numbers[host] = number
        return numbers

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self._value_of_type(key, bool, default))

    def whole(self, key: str, default: int, at_least: int) -> int:
        """A whole number of at least ``at_least``."""
        value = self.optional_integer(key, at_least)
        return default if value is None else value

    def optional_integer(self, key: str, at_least: int) -> int | None:
        """The same, None when absent."""
        value = self._value_of_type(key, int, None)
        if not isinstance(value, int):
            return None
        if value < at_least:
            self.add_error(key, f"must be {at_least} or more, not {value}")
            return None
        return value

    def number(self, key: str, default: float, *, zero: bool) -> float:
        """A finite number, above 0 or, with ``zero``, from 0."""
        value = self.optional_number(key, zero=zero)
        return default if value is None else value

    def optional_number(self, key: str, *, zero: bool) -> float | None:
        """The same, None when absent."""
        value = self._value_of_type(key, float, None)
        if not isinstance(value, int | float):
            return None
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            self.add_error(key, f"must be {'0 or more' if zero else 'more than 0'}, not {value}")
            return None
        return float(value)

    def share(self, key: str) -> float | None:
        """A share above 0, at most 1; None when the key is left out."""
        value = self.optional_number(key, zero=False)
        if value is not None and value > 1:
            self.add_error(key, f"must be a share of at most 1, like 0.9, not {value:g}")
            return None
        return value

    def _host(self, key: str, entry: str) -> str | None:
        host = _normalise_host(entry)
        if host is None:
            self.add_error(key, f'"{entry}" is no host name; {_host_name_hint(entry)}')
        return host

    def _value_of_type(self, key: str, kind: type, default: object) -> object:
        """The value when its type is ``kind`` (a whole number is a number, too)."""
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
    """The host in lower case and punycode, or None when ``entry`` is more or less than a host."""
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
