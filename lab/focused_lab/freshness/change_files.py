"""Read change histories (:mod:`focused.recorded_web.changing_web`)."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from bisect import bisect_right
from pathlib import Path

from focused.errors import ConfigurationError
from focused.recorded_web.changing_web import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    page_changes,
    site_name,
)

_COLUMNS = 5


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
