"""A revisit schedule in a crawl's state: a row a page, and the pages by due time and by site.

The row holds all that the schedule and the policy know of a page. The rows in use are in memory and
written once a commit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from focused.storage.rows import pack
from focused.storage.tables import Tables

_PAGES = "scheduled_pages"
_SITES = "pages_by_site"
_GROUPS = "revisit_groups"
_QUEUE = "revisit_queue"
_ALL_PAGES = b"all"
_number = struct.Struct(">I")
_member = struct.Struct(">II")  # due time, page
_TAKEN = 0
_NEVER = 0xFFFF_FFFF
_MAX_CACHED = 50_000
"""Rows of pages, and of groups, that are kept in memory between commits."""


class _Page(msgspec.Struct, array_like=True, gc=False):
    """The row of a page; ``due`` is in seconds. The records have the names of their kinds."""

    site: int = 0
    due: int = _TAKEN
    schedule: bytes | None = None
    page: bytes | None = None
    weight: bytes | None = None


_PAGE_KINDS = frozenset({"schedule", "page", "weight"})
"""The kinds of records that are in the rows of pages."""
_decode = msgspec.msgpack.Decoder(_Page).decode


class TableRecords:
    """A :class:`focused.revisit.schedule.ScheduleStore` in LMDB tables.

    The queue is a set of due times in whole seconds. :meth:`save` writes the rows that have
    changed; the caller calls it before it commits.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._pages: dict[int, _Page | None] = {}
        """Rows that were read or written lately; None for a page without one."""
        self._unsaved_pages: set[int] = set()
        self._groups: dict[tuple[str, int], bytes | None] = {}
        self._unsaved_groups: set[tuple[str, int]] = set()

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        if kind in _PAGE_KINDS:
            record: bytes | None = getattr(self._find(number), kind, None)
            return record
        group = kind, number
        if group not in self._groups:
            self._groups[group] = self._tables.get(_GROUPS, _group_key(kind, number))
        return self._groups[group]

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        if kind in _PAGE_KINDS:
            setattr(self._changed(number), kind, record)
        else:
            self._groups[kind, number] = record
            self._unsaved_groups.add((kind, number))

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        if self.get(kind, number) is None:
            return
        if kind in _PAGE_KINDS:
            setattr(self._changed(number), kind, None)
        else:
            self._groups[kind, number] = None
            self._unsaved_groups.add((kind, number))

    def register(self, page: int, site: int) -> None:
        """Add a page to its site."""
        self._changed(page).site = site
        self._tables.add(_SITES, _number.pack(site), _number.pack(page))

    def unregister(self, page: int) -> None:
        """Remove a page with its records."""
        site = _number.pack(self.site_of(page))
        self._tables.discard(_SITES, site, _number.pack(page))
        self._pages[page] = None
        self._unsaved_pages.add(page)

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""
        members = self._tables.members(_SITES, _number.pack(site), _number.pack(after + 1))
        return [_number.unpack(member)[0] for member in islice(members, limit)]

    def site_of(self, page: int) -> int:
        """Return the site of a registered page."""
        found = self._find(page)
        if found is None:
            raise KeyError(page)
        return found.site

    def add(self, page: int, due_at: float) -> None:
        """Insert a registered page that is not in the queue."""
        due = _NEVER if due_at == math.inf else int(due_at)
        self._changed(page).due = due
        self._tables.add(_QUEUE, _ALL_PAGES, _member.pack(due, page))

    def remove(self, page: int) -> bool:
        """Take a page out of the queue; False if it is not in it."""
        found = self._find(page)
        if found is None or found.due == _TAKEN:
            return False
        self._tables.discard(_QUEUE, _ALL_PAGES, _member.pack(found.due, page))
        self._changed(page).due = _TAKEN
        return True

    def due_at(self, page: int) -> float | None:
        """Return the due time of a page; None if it is not in the queue."""
        found = self._find(page)
        return None if found is None or found.due == _TAKEN else _time(found.due)

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        member, _ = self._tables.first_two(_QUEUE, _ALL_PAGES)
        if member is None:
            return None
        due, page = _member.unpack(member)
        return _time(due), page

    def save(self) -> None:
        """Write the rows that have changed into the open transaction."""
        for number in sorted(self._unsaved_pages):
            page = self._pages[number]
            self._write(_PAGES, _number.pack(number), None if page is None else pack(page))
        for kind, number in sorted(self._unsaved_groups):
            self._write(_GROUPS, _group_key(kind, number), self._groups[kind, number])
        self._unsaved_pages.clear()
        self._unsaved_groups.clear()
        for cached in (self._pages, self._groups):
            if len(cached) > _MAX_CACHED:
                cached.clear()

    def _find(self, number: int) -> _Page | None:
        """Return the row of a page, or None."""
        if number not in self._pages:
            stored = self._tables.get(_PAGES, _number.pack(number))
            self._pages[number] = None if stored is None else _decode(stored)
        return self._pages[number]

    def _changed(self, number: int) -> _Page:
        """Return the row of a page, a new one if it has none, to be changed."""
        page = self._find(number)
        if page is None:
            page = self._pages[number] = _Page()
        self._unsaved_pages.add(number)
        return page

    def _write(self, table: str, key: bytes, row: bytes | None) -> None:
        if row is None:
            self._tables.delete(table, key)
        else:
            self._tables.put(table, key, row)


def scheduled_pages(tables: Tables) -> Iterator[int]:
    """Yield the pages of the queue, in the order of their due times."""
    return (_member.unpack(member)[1] for member in tables.members(_QUEUE, _ALL_PAGES))


def stored_due_at(tables: Tables, page: int) -> float | None:
    """Return when a page of a stored schedule is due; minus infinity while it is taken.

    None for a page that is not in the schedule.
    """
    records = TableRecords(tables)
    if records.get("schedule", page) is None:
        return None
    due_at = records.due_at(page)
    return -math.inf if due_at is None else due_at


def _group_key(kind: str, number: int) -> bytes:
    return kind.encode() + b" " + _number.pack(number)


def _time(due: int) -> float:
    return math.inf if due == _NEVER else float(due)
