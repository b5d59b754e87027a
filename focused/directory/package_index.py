"""Debian's package index as a directory: homepages under sections and debtags.

A package of section ``science`` with tag ``field::biology`` is a sample of
``Top/Section/science`` and one of ``Top/Tag/field/biology``: its homepage, with name and
summary as title and the long description, where the file has one (those of ``apt-cache
dumpavail`` and the lists of apt have not, those of ``apt-cache show`` have).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from focused.directory.control_fields import paragraphs, stanzas
from focused.directory.entry import DirectoryEntry
from focused.directory.opening import CUT_OFF, DAMAGED, byte_lines, opened
from focused.directory.passed_over import PassedOver
from focused.web.url import normalise

_NO_CATEGORY = "special"  # a facet about the tagging, not about the package


def read_package_index(path: Path, passed_over: PassedOver) -> Iterator[DirectoryEntry]:
    """A sample for each section and tag of each package, in order.

    Packages without a homepage are counted in ``passed_over``. Raises
    :class:`ConfigurationError` when the file cannot be opened.
    """
    for fields in stanzas(_text_lines(path, passed_over)):
        if "Package" not in fields:
            passed_over.add(path, "stanzas that are no package")
            continue
        url = normalise(fields.get("Homepage", ""))
        if url is None:
            passed_over.add(path, "packages without a homepage on the Web")
            continue
        title, description = _texts(fields)
        for category in _categories(fields):
            yield DirectoryEntry(category, url, title, description)


def _text_lines(path: Path, passed_over: PassedOver) -> Iterator[str]:
    with opened(path) as file:
        try:
            for line in byte_lines(file):
                yield line.decode("utf-8", "replace")
        except (OSError, *DAMAGED):
            passed_over.add(path, CUT_OFF)


def _texts(fields: Mapping[str, str]) -> tuple[str, str]:
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
        if value and facet != _NO_CATEGORY:
            yield f"Top/Tag/{facet}/{value.replace(':', '/')}"
