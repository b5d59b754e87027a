"""Records and due queue of a revisit schedule in LMDB tables.

All writes belong to the caller's transaction. Per page there is one row of fixed size and one
member of the queue; both move with each visit. The set of its site's pages never changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from focused.storage.tables import Tables

_PAGES = "revisit_pages"
_GROUPS = "revisit_groups"
_QUEUE = "revisit_queue"
_SITES = "revisit_sites"
_ALL_PAGES = b"all"
_PAGE_KINDS = ("schedule", "page")
"""The records of a page share a row, in this order."""
_NUMBER_BYTES = 6
_TIME_BYTES = 6
_UNITS_PER_S = 1_000
_NEVER = (1 << 8 * _TIME_BYTES) - 1
_MAX_CACHED_GROUPS = 50_000


class TableRecords:
    """A :class:`focused.revisit.policy.RecordStore` in LMDB tables.

    :meth:`save` writes what has changed; the caller calls it before it commits.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._largest = tables.last_key(_PAGES) or b""
        self._pages: dict[int, list[bytes]] = {}
        """The records of pages since the last :meth:`save`, by kind."""
        self._groups: dict[str, dict[int, bytes | None]] = {}
        self._unsaved_pages: set[int] = set()
        self._unsaved_groups: set[tuple[str, int]] = set()

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        if kind in _PAGE_KINDS:
            return self._row(number)[_PAGE_KINDS.index(kind)] or None
        groups = self._groups.setdefault(kind, {})
        if number not in groups:
            groups[number] = self._tables.get(_GROUPS, _group_key(kind, number))
        return groups[number]

    def get_many(self, kind: str, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """Return several records."""
        if kind not in _PAGE_KINDS:
            return [self.get(kind, number) for number in numbers]
        pages, index = self._pages, _PAGE_KINDS.index(kind)
        missing = [_number_key(number) for number in numbers if number not in pages]
        for key, row in self._tables.get_many(_PAGES, missing):
            pages[int.from_bytes(key, "big")] = _split(row)
        return [pages[number][index] or None if number in pages else None for number in numbers]

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        if kind in _PAGE_KINDS:
            self._row(number)[_PAGE_KINDS.index(kind)] = record
            self._unsaved_pages.add(number)
        else:
            self._groups.setdefault(kind, {})[number] = record
            self._unsaved_groups.add((kind, number))

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        if kind in _PAGE_KINDS:
            self.put(kind, number, b"")
        else:
            self._groups.setdefault(kind, {})[number] = None
            self._unsaved_groups.add((kind, number))

    def save(self) -> None:
        """Write the records that are only in memory into the open transaction."""
        for number in sorted(self._unsaved_pages):
            self._save_page(_number_key(number), self._pages[number])
        for kind, number in sorted(self._unsaved_groups):
            key, record = _group_key(kind, number), self._groups[kind][number]
            if record is None:
                self._tables.delete(_GROUPS, key)
            else:
                self._tables.put(_GROUPS, key, record)
        self._pages.clear()
        self._unsaved_pages.clear()
        self._unsaved_groups.clear()
        if sum(map(len, self._groups.values())) > _MAX_CACHED_GROUPS:
            self._groups.clear()

    def _row(self, number: int) -> list[bytes]:
        row = self._pages.get(number)
        if row is None:
            stored = self._tables.get(_PAGES, _number_key(number))
            row = self._pages[number] = [b"", b""] if stored is None else _split(stored)
        return row

    def _save_page(self, key: bytes, row: Sequence[bytes]) -> None:
        if not any(row):
            self._tables.delete(_PAGES, key)
            return
        # Rows in the order of their keys fill the pages of the table.
        is_last = key > self._largest
        if is_last:
            self._largest = key
        self._tables.put(_PAGES, key, bytes([len(row[0])]) + row[0] + row[1], last=is_last)


class TableDueQueue:
    """A :class:`focused.revisit.schedule.DueQueue` of LMDB sets; times in milliseconds."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def register(self, page: int, site: int) -> None:
        """Add a page to its site."""
        self._tables.add(_SITES, _number_key(site), _number_key(page))

    def unregister(self, page: int, site: int) -> None:
        """Remove a page from its site."""
        self._tables.discard(_SITES, _number_key(site), _number_key(page))

    def add(self, page: int, due_at: float) -> None:
        """Insert a page that is not in the queue."""
        self._tables.add(_QUEUE, _ALL_PAGES, _member(page, due_at))

    def remove(self, page: int, due_at: float) -> None:
        """Remove a page; ``due_at`` is the time that it was inserted with."""
        self._tables.discard(_QUEUE, _ALL_PAGES, _member(page, due_at))

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        for member in self._tables.members_from(_QUEUE, _ALL_PAGES, _member(0, 0.0), 1):
            return _due_at(member), _page(member)
        return None

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""
        start = _number_key(after + 1)
        return [
            int.from_bytes(member, "big")
            for member in self._tables.members_from(_SITES, _number_key(site), start, limit)
        ]


def _number_key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _split(row: bytes) -> list[bytes]:
    length = 1 + row[0]
    return [row[1:length], row[length:]]


def _group_key(kind: str, number: int) -> bytes:
    return kind.encode() + b" " + number.to_bytes(_NUMBER_BYTES, "big")


def _member(page: int, due_at: float) -> bytes:
    units = _NEVER if due_at == math.inf else int(due_at * _UNITS_PER_S)
    due = min(max(units, 0), _NEVER)
    return due.to_bytes(_TIME_BYTES, "big") + page.to_bytes(_NUMBER_BYTES, "big")


def _due_at(member: bytes) -> float:
    units = int.from_bytes(member[:_TIME_BYTES], "big")
    return math.inf if units == _NEVER else units / _UNITS_PER_S


def _page(member: bytes) -> int:
    return int.from_bytes(member[_TIME_BYTES:], "big")
