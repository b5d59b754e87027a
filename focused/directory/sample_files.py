"""Sample files of one sample per line, TSV and JSON Lines, and folders of saved pages.

Files may be compressed.

TSV is UTF-8 with the columns::

    category <TAB> url <TAB> title <TAB> description

Title and description are optional. Lines that start with ``#``, blank lines and a header
line are skipped. Categories are paths such as ``Top/Computers/Databases``.

JSON Lines has one object per line::

    {"category": "Top/Food/Cheese", "url": "https://cheese.example/brie", "title": "Brie"}
    {"category": "Top/Other", "text": "The text of the page, which then needs no URL."}

``category`` is required, and ``url``, ``text`` or both. ``title``, ``description`` and
``weight`` (> 0) are optional; other keys are ignored.

Folders hold whole pages: HTML (.html, .htm, .xhtml) or text (.txt), which are never fetched.
Sub-folders are categories: ``pages/Food/Cheese/brie.html`` has category ``Food/Cheese``. The
address of a page saved by a browser or SingleFile is taken from its comment, so that the page does
not count as harvest; any other page is identified by its content.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import msgspec

from focused.directory import (
    DirectoryEntry,
    SkippedRecords,
    content_url,
    normalise_category,
)
from focused.errors import ConfigurationError
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
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


PAGE_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".txt"})
MAX_PAGE_BYTES = 10_000_000

_HEAD_BYTES = 4096
_SAVED_FROM = re.compile(
    rb"<!--\s*saved from url=\(\d+\)(\S+)|<!--\s*Page saved with SingleFile\s+url:\s*(\S+)"
)


def read_page_folder(folder: Path, skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    """Yield the folder's pages by category and name; other files are counted as skipped.

    Ignores hidden files, links out of the folder, and the folders of images and frames that
    browsers save beside a page. Raises :class:`ConfigurationError` for a page outside of any
    category, or one that cannot be read.
    """
    inside = folder.resolve()
    for place, folders, names in os.walk(folder, onerror=_raise_unreadable):
        here = Path(place)
        category = here.relative_to(folder).as_posix()
        folders[:] = sorted(name for name in folders if not _is_ignored_folder(here, name))
        for name in sorted(name for name in names if not name.startswith(".")):
            if Path(name).suffix.lower() not in PAGE_SUFFIXES:
                skipped.add(folder, "files that are not pages (.html, .htm, .xhtml, .txt)")
            elif category == ".":
                raise ConfigurationError(
                    f"{here / name}: is in no category; move it to a sub-folder of {folder}, "
                    "whose name is its category"
                )
            elif not _is_file_inside(inside, here / name):
                skipped.add(folder, "links that lead out of the folder, or to no file")
            elif (entry := _entry_from_file(category, here / name)) is not None:
                yield entry
            else:
                skipped.add(folder, f"pages of more than {MAX_PAGE_BYTES // 10**6} MB")


def _raise_unreadable(error: OSError) -> None:
    raise unreadable_file_error(Path(error.filename or ""), error)


def _is_ignored_folder(here: Path, name: str) -> bool:
    if name.startswith(".") or (here / name).is_symlink():
        return True
    page = re.sub(r"[_.-][^_.-]+\Z", "", name)  # "brie_files", "brie-Dateien", "brie.files"
    return page != name and any((here / f"{page}{suffix}").is_file() for suffix in PAGE_SUFFIXES)


def _is_file_inside(inside: Path, file: Path) -> bool:
    """Whether ``file`` is a regular file, not a link out of the folder."""
    return file.is_file() and (not file.is_symlink() or file.resolve().is_relative_to(inside))


def _entry_from_file(category: str, file: Path) -> DirectoryEntry | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_PAGE_BYTES + 1)
    except OSError as error:
        raise unreadable_file_error(file, error) from error
    if len(content) > MAX_PAGE_BYTES:
        return None
    saved = _SAVED_FROM.search(content[:_HEAD_BYTES])
    source = (saved[1] or saved[2]).decode("utf-8", "replace") if saved else ""
    return DirectoryEntry(category, normalize_url(source) or content_url(content), file=file)


def load_sample_page(entry: DirectoryEntry) -> Page | None:
    """Return the page of a sample's text or file, with its ``url``; None if unreadable."""
    if entry.text:
        page = _parse(entry.url, "text/plain; charset=utf-8", entry.text.encode())
    elif entry.file is not None:
        kind = "text/plain" if entry.file.suffix.lower() == ".txt" else "text/html"
        page = _parse(entry.url, kind, _read_file(entry.file))
    else:
        return None
    if page is None:
        return None
    return replace(
        page,
        title=page.title or entry.title,
        description=page.description or entry.description,
    )


def _read_file(saved: Path) -> bytes:
    try:
        with saved.open("rb") as file:
            return file.read(MAX_PAGE_BYTES)
    except OSError:
        return b""


def _parse(url: str, content_type: str, content: bytes) -> Page | None:
    page = parse_page(Fetched(url, 200, {"content-type": content_type}, content))
    return page if isinstance(page, Page) else None
