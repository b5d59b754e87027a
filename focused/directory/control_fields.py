"""Debian's control files: stanzas of fields (Debian Policy, chapter 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MAX_STANZA_CHARS = 16_000_000
"""The longest of Debian have some ten thousand."""


def stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The stanzas' fields by name, one stanza at a time; blank lines part them.

    Lines of continuation keep their line breaks and their first space. Of a stanza of
    more than :data:`MAX_STANZA_CHARS` the rest is passed over.
    """
    fields: dict[str, list[str]] = {}
    name, room = "", MAX_STANZA_CHARS
    for line in lines:
        room -= len(line)
        if not line.strip("\r\n"):
            if fields:
                yield _joined(fields)
            fields, name, room = {}, "", MAX_STANZA_CHARS
        elif room < 0:
            continue
        elif line.startswith((" ", "\t")):
            if name:
                fields[name].append(line.rstrip("\r\n"))
        else:
            name, _, value = line.partition(":")
            fields[name] = [value.strip()]
    if fields:
        yield _joined(fields)


def _joined(fields: dict[str, list[str]]) -> dict[str, str]:
    return {name: "\n".join(lines) for name, lines in fields.items()}


def paragraphs(lines: Iterable[str]) -> tuple[str, ...]:
    """Paragraphs of a long description (Policy 5.6.13); lines that are set off stand alone."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == ".":
            found.append([])
        elif line.startswith("  ") or re.match(r"\s[*-]\s", line):
            found.append([line.strip()])
        else:
            found[-1].append(line.strip())
    joined = (" ".join(" ".join(words).split()) for words in found)
    return tuple(paragraph for paragraph in joined if paragraph)
