"""Directory files of our own: UTF-8 text in the manner of DMOZ, one sample a line.

The columns are::

    category <TAB> url <TAB> title <TAB> description

Title and description may be left out; lines that start with ``#`` and blank
lines are skipped, a header line of those column names too. Categories are
paths such as ``Top/Computers/Databases``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from focused.directory.entry import DirectoryEntry, category_path
from focused.directory.opening import numbered_lines
from focused.errors import ConfigurationError
from focused.web.url import normalise

_MAX_COLUMNS = 4


def read_tsv(path: Path) -> Iterator[DirectoryEntry]:
    """The samples of one file, in order.

    Raises :class:`ConfigurationError` naming file and line for a file that
    cannot be read or a line that is no sample.
    """
    for number, sample in numbered_lines(path):
        if not sample.startswith("#"):
            fields = [field.strip() for field in sample.split("\t")]
            if [field.lower() for field in fields[:2]] != ["category", "url"]:
                yield _entry(fields, f"{path}:{number}")


def _entry(fields: list[str], where: str) -> DirectoryEntry:
    if not 2 <= len(fields) <= _MAX_COLUMNS:
        raise ConfigurationError(
            f"{where}: {len(fields)} column(s); expected "
            "category <TAB> url <TAB> title <TAB> description, separated by tabs"
        )
    category = category_path(fields[0])
    if not category:
        raise ConfigurationError(f"{where}: the category is empty")
    url = normalise(fields[1])
    if url is None:
        raise ConfigurationError(f"{where}: {fields[1]!r} is no http or https address")
    title, description = [*fields[2:], "", ""][:2]
    return DirectoryEntry(category, url, title, description)
