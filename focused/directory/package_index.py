"""Debian package indexes as a directory: homepages under sections and debtags.

A package of section ``science`` with tag ``field::biology`` is a sample of
``Top/Section/science`` and of ``Top/Tag/field/biology``: its homepage, with name and
summary as title, and the long description if the file has one (``apt-cache show`` has it,
``apt-cache dumpavail`` and the lists of apt don't).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from focused.directory.directory_entry import DirectoryEntry, SkippedRecords
from focused.directory.sample_files import (
    DECOMPRESSION_ERRORS,
    TRUNCATED,
    open_sample_file,
    read_byte_lines,
)
from focused.web.urls import normalize_url

_IGNORED_FACET = "special"  # a facet about the tagging, not about the package


def read_package_index(path: Path, skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    """Yield a sample for each section and tag of each package, in order.

    Counts packages without a homepage in ``skipped``. Raises :class:`ConfigurationError` if the
    file cannot be opened.
    """
    for fields in parse_stanzas(_read_text_lines(path, skipped)):
        if "Package" not in fields:
            skipped.add(path, "stanzas that are not a package")
            continue
        url = normalize_url(fields.get("Homepage", ""))
        if url is None:
            skipped.add(path, "packages without a homepage on the Web")
            continue
        title, description = _title_and_description(fields)
        for category in _categories(fields):
            yield DirectoryEntry(category, url, title, description)


def _read_text_lines(path: Path, skipped: SkippedRecords) -> Iterator[str]:
    with open_sample_file(path) as file:
        try:
            for line in read_byte_lines(file):
                yield line.decode("utf-8", "replace")
        except (OSError, *DECOMPRESSION_ERRORS):
            skipped.add(path, TRUNCATED)


def _title_and_description(fields: Mapping[str, str]) -> tuple[str, str]:
    text = fields.get("Description-en", fields.get("Description", ""))
    summary, _, rest = text.partition("\n")
    name = fields["Package"]
    return f"{name}: {summary}" if summary else name, " ".join(paragraphs(rest.splitlines()))


def _categories(fields: Mapping[str, str]) -> Iterator[str]:
    section = fields.get("Section", "").rpartition("/")[2]
    if section:
        yield f"Top/Section/{section}"
    tags = (tag.strip() for tag in fields.get("Tag", "").split(","))
    for tag in dict.fromkeys(tags):
        facet, _, value = tag.partition("::")
        if value and facet != _IGNORED_FACET:
            yield f"Top/Tag/{facet}/{value.replace(':', '/')}"


MAX_STANZA_CHARS = 16_000_000
"""The longest of Debian have some ten thousand."""


def parse_stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
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
                yield _join_lines(fields)
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
        yield _join_lines(fields)


def _join_lines(fields: dict[str, list[str]]) -> dict[str, str]:
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
