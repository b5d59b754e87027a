"""A TOML table read key by key, with every problem kept until the end.

Nothing here knows about topics: it checks types and bounds, and words what is
wrong so that the reader of the message can mend it.
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

_TYPE_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    list: "a list",
    dict: "a section",
}


@dataclass(slots=True)
class Problems:
    """What is wrong with one file, in the order it was found."""

    lines: list[str] = field(default_factory=list)

    def add(self, key: str, message: str) -> None:
        """Keep ``message`` about ``key`` (dotted, as in ``scope.max_depth``)."""
        self.lines.append(f"{key}: {message}")


@dataclass(frozen=True, slots=True)
class Table:
    """One section. Readers answer the default when the key is absent or wrong."""

    name: str
    values: Mapping[str, object]
    problems: Problems

    def key(self, key: str) -> str:
        """The dotted name of ``key`` for messages."""
        return f"{self.name}.{key}" if self.name else key

    def wrong(self, key: str, message: str) -> None:
        """Keep a problem of ``key``."""
        self.problems.add(self.key(key), message)

    def refuse_unknown(self, known: Sequence[str], sections: Mapping[str, Sequence[str]]) -> None:
        """Keep a problem for every key not in ``known``.

        ``sections`` maps each section to its keys, to name the right section
        for a key that stands in the wrong one.
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
            self.wrong(key, f"unknown key; {hint}")

    def text(self, key: str, default: str = "") -> str:
        """A text, outer blanks removed."""
        value = self._typed(key, str, default)
        return value.strip() if isinstance(value, str) else default

    def one_of(self, key: str, choices: Sequence[_Choice]) -> _Choice:
        """One of ``choices``, the first of them when absent."""
        value = self.text(key, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        close = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"
        self.wrong(key, f'"{value}" is unknown; {hint}')
        return choices[0]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, none of them empty, repetitions removed."""
        value = self.values.get(key, [])
        if isinstance(value, str):
            shown = json.dumps(value, ensure_ascii=not value.isprintable())
            self.wrong(key, f"must be a list, also for one entry: {key} = [{shown}]")
            return ()
        entries = self._typed(key, list, [])
        if not isinstance(entries, list):
            return ()
        kept: dict[str, None] = {}
        for place, entry in enumerate(entries, start=1):
            if not isinstance(entry, str):
                self.wrong(key, f"entry {place} must be a text in quotes, not {entry!r}")
            elif not entry.strip():
                self.wrong(key, f"entry {place} is empty")
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
            self.wrong(key, f'must be hosts and numbers: {key} = {{ "example.org" = 1.0 }}')
            return {}
        told = Table(self.key(key), value, self.problems)
        numbers: dict[str, float] = {}
        for entry in value:
            host, number = self._host(key, entry), told.maybe_number(entry, zero=True)
            if host in numbers:
                self.wrong(key, f'"{entry}" stands there twice')
            elif host is not None and number is not None:
                numbers[host] = number
        return numbers

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self._typed(key, bool, default))

    def whole(self, key: str, default: int, at_least: int) -> int:
        """A whole number of at least ``at_least``."""
        value = self.maybe_whole(key, at_least)
        return default if value is None else value

    def maybe_whole(self, key: str, at_least: int) -> int | None:
        """The same, None when absent."""
        value = self._typed(key, int, None)
        if not isinstance(value, int):
            return None
        if value < at_least:
            self.wrong(key, f"must be {at_least} or more, not {value}")
            return None
        return value

    def number(self, key: str, default: float, *, zero: bool) -> float:
        """A finite number, above 0 or, with ``zero``, from 0."""
        value = self.maybe_number(key, zero=zero)
        return default if value is None else value

    def maybe_number(self, key: str, *, zero: bool) -> float | None:
        """The same, None when absent."""
        value = self._typed(key, float, None)
        if not isinstance(value, int | float):
            return None
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            self.wrong(key, f"must be {'0 or more' if zero else 'more than 0'}, not {value}")
            return None
        return float(value)

    def share(self, key: str) -> float | None:
        """A share above 0, at most 1; None when the key is left out."""
        value = self.maybe_number(key, zero=False)
        if value is not None and value > 1:
            self.wrong(key, f"must be a share of at most 1, like 0.9, not {value:g}")
            return None
        return value

    def _host(self, key: str, entry: str) -> str | None:
        host = _host(entry)
        if host is None:
            self.wrong(key, f'"{entry}" is no host name; {_host_hint(entry)}')
        return host

    def _typed(self, key: str, kind: type, default: object) -> object:
        """The value when its type is ``kind`` (a whole number is a number, too)."""
        if key not in self.values:
            return default
        value = self.values[key]
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        self.wrong(key, f"must be {_TYPE_WORDS[kind]}, not {_shown(value)}")
        return default


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return _TYPE_WORDS[type(value)] if isinstance(value, list | dict) else str(value)


def _host(entry: str) -> str | None:
    """The host in lower case and punycode, or None when ``entry`` is more or less than a host."""
    if re.search(r"[\s/?#@*\\]|^\.|:\d*$", entry):
        return None
    try:
        return ada_url.URL(f"http://{entry}/").hostname.rstrip(".") or None
    except ValueError:
        return None


def _host_hint(entry: str) -> str:
    without_scheme = entry.partition("://")[2] or entry
    bare = re.split(r"[/?#:]", without_scheme.lstrip("*."))[0]
    example = bare if _host(bare) else "example.org"
    return f'write "{example}", without scheme, port, path or wildcard: it covers its subdomains'
