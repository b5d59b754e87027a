"""Change histories: when the pages of a site were created, changed and deleted.

A history is a file of tab-separated lines, ``*.tsv`` or ``*.tsv.gz``, one line per event::

    page <TAB> created|changed|deleted <TAB> time <TAB> lines added <TAB> lines deleted

``page`` is any text that identifies the page within its site, usually a path. ``time`` is in
seconds since the epoch. The name of the file, without its suffixes, is the name of the site.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from focused.errors import ConfigurationError
from focused.files import write_atomically

_COLUMNS = 5


class ChangeKind(StrEnum):
    """What happened to a page."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a page at ``at``; the size of a change is in lines."""

    kind: ChangeKind
    at: float
    lines_added: int = 0
    lines_deleted: int = 0


@dataclass(frozen=True, slots=True)
class PageChanges:
    """The events of one page in order of time.

    The kinds are consistent: a page that exists is changed or deleted, any other is created. The
    first event may be a change or a deletion; the page then existed before the history began.
    """

    page: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SiteChanges:
    """The change history of one site; pages are in the order of the file."""

    site: str
    pages: tuple[PageChanges, ...]


def page_changes(page: str, changes: Iterable[Change]) -> PageChanges:
    """Return the events in order of time with consistent kinds."""
    return PageChanges(page, tuple(_consistent(sorted(changes, key=_time_of))))


def last_change_at(page: PageChanges, time: float) -> Change | None:
    """Return the last event at or before ``time``, or None."""
    number = bisect_right(page.changes, time, key=lambda change: change.at)
    return page.changes[number - 1] if number else None


def exists_at(page: PageChanges, time: float) -> bool:
    """Whether the page exists at ``time``."""
    last = last_change_at(page, time)
    if last is None:
        return bool(page.changes) and page.changes[0].kind is not ChangeKind.CREATED
    return last.kind is not ChangeKind.DELETED


def first_at(history: SiteChanges) -> float:
    """Return the time of the first event; infinity without events."""
    return min((page.changes[0].at for page in history.pages), default=math.inf)


def last_at(history: SiteChanges) -> float:
    """Return the time of the last event; minus infinity without events."""
    return max((page.changes[-1].at for page in history.pages), default=-math.inf)


def read_change_history(path: Path) -> SiteChanges:
    """Read the change history of a site.

    Events of a page are sorted by time. An event that contradicts the one before becomes
    consistent: a page that exists and is created is changed, a page that does not exist and is
    changed is created, and a second deletion is ignored. Raises ConfigurationError with file and
    line.
    """
    by_page: dict[str, list[Change]] = {}
    for number, line in enumerate(_read_lines(path), start=1):
        page, change = _parse_line(line, f"{path}, line {number}")
        by_page.setdefault(page, []).append(change)
    pages = (page_changes(page, changes) for page, changes in by_page.items())
    return SiteChanges(site_name(path), tuple(pages))


def write_change_history(path: Path, history: SiteChanges) -> None:
    """Write a history atomically, compressed if the name ends with ``.gz``."""
    lines = "".join(
        f"{page.page}\t{change.kind}\t{change.at!r}\t{change.lines_added}\t{change.lines_deleted}\n"
        for page in history.pages
        for change in page.changes
    )
    content = lines.encode()
    if path.suffix == ".gz":
        # A fixed time: equal histories are equal files.
        content = gzip.compress(content, mtime=0)
    write_atomically(path, content)


def site_name(path: Path) -> str:
    """Return the site's name: the file's name without ``.tsv`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".tsv")


def _time_of(change: Change) -> float:
    return change.at


def _consistent(changes: Iterable[Change]) -> Iterator[Change]:
    exists: bool | None = None
    for change in changes:
        kind = change.kind
        if exists is True and kind is ChangeKind.CREATED:
            kind = ChangeKind.CHANGED
        elif exists is False and kind is ChangeKind.CHANGED:
            kind = ChangeKind.CREATED
        elif exists is False and kind is ChangeKind.DELETED:
            continue
        exists = kind is not ChangeKind.DELETED
        yield change if kind is change.kind else replace(change, kind=kind)


def _read_lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        text = content.decode()
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigurationError(f"{path}: the change history cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: the change history is not UTF-8: {error}") from error
    # Names of pages may contain characters that str.splitlines takes for line breaks.
    return [line.removesuffix("\n") for line in io.StringIO(text, newline="\n")]


def _parse_line(line: str, where: str) -> tuple[str, Change]:
    fields = line.removesuffix("\r").split("\t")
    if len(fields) != _COLUMNS:
        raise ConfigurationError(
            f"{where}: expected page, kind, time, lines added and lines deleted, "
            f"separated by tabs, but there are {len(fields)} fields"
        )
    page, kind, at, added, deleted = fields
    try:
        change = Change(ChangeKind(kind), float(at), int(added), int(deleted))
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if not math.isfinite(change.at):
        raise ConfigurationError(f"{where}: the time must be a finite number, not {at}")
    if min(change.lines_added, change.lines_deleted) < 0:
        raise ConfigurationError(f"{where}: numbers of lines must not be negative")
    return page, change
