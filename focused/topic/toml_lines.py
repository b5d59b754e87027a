"""Where a key stands in a TOML text, for messages; the standard library's parser doesn't tell."""

from __future__ import annotations

import re
from collections import Counter

_HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]?\]")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]")
_NUMBERED = re.compile(r"([\w-]+)\[(\d+)\]")


def line_of(text: str, key: str) -> int | None:
    """Return the number of the line of a dotted key, of its section if it has none, or None.

    ``login[2].hosts`` is a key of the second ``[[login]]``. What looks like a key in a text of
    several lines is taken for one.
    """
    section, _, name = key.partition(".")
    name = name.partition(".")[0]
    numbered = _NUMBERED.fullmatch(section)
    section, place = (numbered[1], int(numbered[2])) if numbered else (section, 1)
    headers = Counter[str]()
    found, current = None, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            current = header[1]
            headers[current] += 1
            if current == section and headers[current] == place:
                found = number
        elif assigned := _KEY.match(line):
            is_there = current == section and headers[current] == place
            if (is_there and assigned[1] == name) or (not current and assigned[1] == section):
                return number
    return found
