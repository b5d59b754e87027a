"""Write change histories: when the pages of a site were created, changed and deleted.

A history is a file of tab-separated lines, ``*.tsv`` or ``*.tsv.gz``, one line per event::

    page <TAB> created|changed|deleted <TAB> time <TAB> lines added <TAB> lines deleted

``page`` is any text that identifies the page within its site, usually a path. ``time`` is in
seconds since the epoch. The name of the file, without its suffixes, is the name of the site.
The extra ``experiments`` reads them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from focused.files import write_atomically


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


def page_changes(page: str, changes: Iterable[Change]) -> PageChanges:
    """Return the events in order of time with consistent kinds."""
    return PageChanges(page, tuple(_consistent(sorted(changes, key=_time_of))))


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
