"""A folder of saved pages: sub-folders are categories, nested ones the paths below.

``pages/Food/Cheese/brie.html`` stands for category ``Food/Cheese``. Pages are HTML
(.html, .htm, .xhtml) or text (.txt) and are read from disk, never fetched.

A page that a browser or SingleFile saved says in a comment where it came from: that is
its address, so that it doesn't count as harvest. Any other page is known by its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from focused.directory.entry import DirectoryEntry, own_address
from focused.directory.opening import unreadable
from focused.directory.passed_over import PassedOver
from focused.errors import ConfigurationError
from focused.web.url import normalise

PAGE_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".txt"})
MAX_PAGE_BYTES = 10_000_000

_HEAD_BYTES = 4096
_SAVED_FROM = re.compile(
    rb"<!--\s*saved from url=\(\d+\)(\S+)|<!--\s*Page saved with SingleFile\s+url:\s*(\S+)"
)


def read_page_folder(folder: Path, passed_over: PassedOver) -> Iterator[DirectoryEntry]:
    """The folder's pages, by category and name. Other files are counted as passed over.

    Hidden files, links to folders and out of the folder, and the folders in which browsers
    put a page's pictures and frames are left out. Raises :class:`ConfigurationError` for
    a page that lies in no category, and for one that cannot be read.
    """
    inside = folder.resolve()
    for place, folders, names in os.walk(folder, onerror=_refuse):
        here = Path(place)
        category = here.relative_to(folder).as_posix()
        folders[:] = sorted(name for name in folders if not _is_left_out(here, name))
        for name in sorted(name for name in names if not name.startswith(".")):
            if Path(name).suffix.lower() not in PAGE_SUFFIXES:
                passed_over.add(folder, "files that are no pages (.html, .htm, .xhtml, .txt)")
            elif category == ".":
                raise ConfigurationError(
                    f"{here / name}: lies in no category; put it into a sub-folder of {folder}, "
                    "whose name is its category"
                )
            elif not _lies_in(inside, here / name):
                passed_over.add(folder, "links that lead out of the folder, or to no file")
            elif (entry := _entry(category, here / name)) is not None:
                yield entry
            else:
                passed_over.add(folder, f"pages of more than {MAX_PAGE_BYTES // 10**6} MB")


def _refuse(error: OSError) -> None:
    raise unreadable(Path(error.filename or ""), error)


def _is_left_out(here: Path, name: str) -> bool:
    if name.startswith(".") or (here / name).is_symlink():
        return True
    page = re.sub(r"[_.-][^_.-]+\Z", "", name)  # "brie_files", "brie-Dateien", "brie.files"
    return page != name and any((here / f"{page}{suffix}").is_file() for suffix in PAGE_SUFFIXES)


def _lies_in(inside: Path, file: Path) -> bool:
    """Whether it is a file of the folder, that a pipe or a link to elsewhere is not."""
    return file.is_file() and (not file.is_symlink() or file.resolve().is_relative_to(inside))


def _entry(category: str, file: Path) -> DirectoryEntry | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_PAGE_BYTES + 1)
    except OSError as error:
        raise unreadable(file, error) from error
    if len(content) > MAX_PAGE_BYTES:
        return None
    saved = _SAVED_FROM.search(content[:_HEAD_BYTES])
    source = (saved[1] or saved[2]).decode("utf-8", "replace") if saved else ""
    return DirectoryEntry(category, normalise(source) or own_address(content), file=file)
