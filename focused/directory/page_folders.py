"""Sample pages that are part of the directory: folders of saved pages, and inline texts.

Sub-folders are categories: ``pages/Food/Cheese/brie.html`` has category ``Food/Cheese``.
Pages are HTML (.html, .htm, .xhtml) or text (.txt) and are never fetched. The address of a
page saved by a browser or SingleFile is taken from its comment, so that the page does not
count as harvest; any other page is identified by its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from focused.directory.directory_entry import DirectoryEntry, SkippedRecords, content_url
from focused.directory.sample_files import unreadable_file_error
from focused.errors import ConfigurationError
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused.web.urls import normalize_url

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
