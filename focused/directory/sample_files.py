"""Sample files of one sample per line: TSV and JSON Lines, optionally compressed.

TSV is UTF-8 with the columns::

    category <TAB> url <TAB> title <TAB> description

Title and description are optional. Lines that start with ``#``, blank lines and a header
line are skipped. Categories are paths such as ``Top/Computers/Databases``.

JSON Lines has one object per line::

    {"category": "Top/Food/Cheese", "url": "https://cheese.example/brie", "title": "Brie"}
    {"category": "Top/Other", "text": "The text of the page, which then needs no URL."}

``category`` is required, and ``url``, ``text`` or both. ``title``, ``description`` and
``weight`` (> 0) are optional; other keys are ignored.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import msgspec

from focused.directory.directory_entry import DirectoryEntry, content_url, normalise_category
from focused.errors import ConfigurationError
from focused.web.urls import normalize_url

MAX_LINE_BYTES = 16_000_000
TRUNCATED = "place where the file is cut off or damaged; the rest was not read"
DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""Exceptions raised when reading a truncated or damaged compressed file."""

_OPENERS: dict[str, Callable[..., object]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def uncompressed_name(path: Path) -> str:
    """Return the file name in lower case without its compression suffix."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in _OPENERS else name


def open_sample_file(path: Path) -> BufferedIOBase:
    """Open a file for reading, decompressed by its suffix (.gz, .xz, .bz2).

    Raises :class:`ConfigurationError` if it cannot be opened, or is a pipe or device:
    directories are read more than once.
    """
    if path.exists() and not path.is_file():
        raise ConfigurationError(
            f"training.directory: {path}: is not a regular file; copy its content into one"
        )
    try:
        return cast(BufferedIOBase, _OPENERS.get(path.suffix.lower(), open)(path, "rb"))
    except OSError as error:
        raise unreadable_file_error(path, error) from error


def unreadable_file_error(path: Path, error: Exception) -> ConfigurationError:
    """Return the error for a file that cannot be read completely."""
    reason = getattr(error, "strerror", None) or error
    return ConfigurationError(f"training.directory: cannot read {path}: {reason}")


def read_numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines of a UTF-8 file without line ends, numbered from 1.

    Raises :class:`ConfigurationError` with file and line for a line that is not UTF-8 or longer
    than :data:`MAX_LINE_BYTES`.
    """
    with open_sample_file(path) as file:
        try:
            for number, line in enumerate(read_byte_lines(file), start=1):
                text = _decode_line(line, number, path)
                if text.strip():
                    yield number, text.rstrip("\r\n")
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            raise unreadable_file_error(path, error) from error


def read_byte_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield lines with their ends; overlong lines in pieces."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line


def _decode_line(line: bytes, number: int, path: Path) -> str:
    if len(line) > MAX_LINE_BYTES:
        raise ConfigurationError(
            f"{path}:{number}: longer than {MAX_LINE_BYTES // 10**6} MB; is this a "
            "directory of one sample a line?"
        )
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}:{number}: not UTF-8 text; save it as UTF-8") from error


_MAX_COLUMNS = 4


def read_tsv(path: Path) -> Iterator[DirectoryEntry]:
    """Yield the samples of a TSV file in order.

    Raises :class:`ConfigurationError` with file and line for invalid input.
    """
    for number, sample in read_numbered_lines(path):
        if not sample.startswith("#"):
            fields = [field.strip() for field in sample.split("\t")]
            if [field.lower() for field in fields[:2]] != ["category", "url"]:
                yield _entry_from_columns(fields, f"{path}:{number}")


def _entry_from_columns(fields: list[str], where: str) -> DirectoryEntry:
    if not 2 <= len(fields) <= _MAX_COLUMNS:
        raise ConfigurationError(
            f"{where}: {len(fields)} column(s); expected "
            "category <TAB> url <TAB> title <TAB> description, separated by tabs"
        )
    category = normalise_category(fields[0])
    if not category:
        raise ConfigurationError(f"{where}: the category is empty")
    url = normalize_url(fields[1])
    if url is None:
        raise ConfigurationError(f"{where}: {fields[1]!r} is not an http or https address")
    title, description = [*fields[2:], "", ""][:2]
    return DirectoryEntry(category, url, title, description)


class _JsonSample(msgspec.Struct):
    category: str
    url: str | None = None
    title: str | None = None
    description: str | None = None
    text: str | None = None
    weight: float = 1.0


_decoder = msgspec.json.Decoder(_JsonSample)


def read_json_lines(path: Path) -> Iterator[DirectoryEntry]:
    """Yield the samples of a JSON Lines file in order.

    Raises :class:`ConfigurationError` with file and line for invalid input.
    """
    for number, text in read_numbered_lines(path):
        where = f"{path}:{number}"
        try:
            line = _decoder.decode(text)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{where}: {error}") from error
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise ConfigurationError(f"{where}: not a JSON object on one line: {error}") from error
        yield _entry_from_json(line, where)


def _entry_from_json(line: _JsonSample, where: str) -> DirectoryEntry:
    category, text = normalise_category(line.category), (line.text or "").strip()
    if not category:
        raise ConfigurationError(f"{where}: the category is empty")
    if not line.url and not text:
        raise ConfigurationError(f"{where}: neither url nor text is given")
    if not (math.isfinite(line.weight) and line.weight > 0):
        raise ConfigurationError(f"{where}: weight must be a number above 0, not {line.weight}")
    url = normalize_url(line.url) if line.url else content_url(text.encode())
    if url is None:
        raise ConfigurationError(f"{where}: {line.url!r} is not an http or https address")
    return DirectoryEntry(
        category,
        url,
        (line.title or "").strip(),
        (line.description or "").strip(),
        line.weight,
        text,
    )
