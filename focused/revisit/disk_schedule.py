"""Records and due queue of a revisit schedule in LMDB tables.

All writes belong to the caller's transaction. Per page there are two records of fixed size, written
in the order of page numbers, and two members of sets: one in the order of all pages, one in that of
the site.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from focused.storage.tables import Tables

_PAGE_TABLES = {"page": "revisit_pages", "schedule": "revisit_schedule"}
_GROUPS = "revisit_groups"
_QUEUE = "revisit_queue"
_ALL_PAGES = b"all"
_NUMBER_BYTES = 6
_TIME_BYTES = 6
_UNITS_PER_S = 1_000
_NEVER = (1 << 8 * _TIME_BYTES) - 1
_MAX_CACHED_GROUPS = 50_000


class TableRecords:
    """A :class:`focused.revisit.policy.RecordStore` in LMDB tables.

    Records of sites and directories change with each visit, so they are written by :meth:`save`,
    which the caller calls before it commits.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._largest = {table: tables.last_key(table) or b"" for table in _PAGE_TABLES.values()}
        self._groups: dict[str, dict[int, bytes | None]] = {}
        self._unsaved: set[tuple[str, int]] = set()

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        table = _PAGE_TABLES.get(kind)
        if table is not None:
            return self._tables.get(table, number.to_bytes(_NUMBER_BYTES, "big"))
        groups = self._groups.setdefault(kind, {})
        if number not in groups:
            groups[number] = self._tables.get(_GROUPS, _group_key(kind, number))
        return groups[number]

    def get_many(self, kind: str, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """Return several records."""
        table = _PAGE_TABLES.get(kind)
        if table is None:
            return [self.get(kind, number) for number in numbers]
        keys = [number.to_bytes(_NUMBER_BYTES, "big") for number in numbers]
        found = dict(self._tables.get_many(table, keys))
        return [found.get(key) for key in keys]

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        table = _PAGE_TABLES.get(kind)
        if table is None:
            self._groups.setdefault(kind, {})[number] = record
            self._unsaved.add((kind, number))
            return
        key = number.to_bytes(_NUMBER_BYTES, "big")
        is_last = key > self._largest[table]
        if is_last:
            self._largest[table] = key
        self._tables.put(table, key, record, last=is_last)

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        table = _PAGE_TABLES.get(kind)
        if table is not None:
            self._tables.delete(table, number.to_bytes(_NUMBER_BYTES, "big"))
            return
        self._groups.setdefault(kind, {})[number] = None
        self._unsaved.add((kind, number))

    def save(self) -> None:
        """Write the records that are only in memory into the open transaction."""
        for kind, number in sorted(self._unsaved):
            key, record = _group_key(kind, number), self._groups[kind][number]
            if record is None:
                self._tables.delete(_GROUPS, key)
            else:
                self._tables.put(_GROUPS, key, record)
        self._unsaved.clear()
        if sum(map(len, self._groups.values())) > _MAX_CACHED_GROUPS:
            self._groups.clear()


class TableDueQueue:
    """A :class:`focused.revisit.schedule.DueQueue` of LMDB sets; times in milliseconds."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, page: int, site: int, due_at: float) -> None:
        """Insert a page that is not in the queue."""
        member = _member(page, due_at)
        self._tables.add(_QUEUE, _ALL_PAGES, member)
        self._tables.add(_QUEUE, _site_key(site), member)

    def remove(self, page: int, site: int, due_at: float) -> None:
        """Remove a page; ``due_at`` is the time that it was inserted with."""
        member = _member(page, due_at)
        self._tables.discard(_QUEUE, _ALL_PAGES, member)
        self._tables.discard(_QUEUE, _site_key(site), member)

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        for member in self._tables.members_from(_QUEUE, _ALL_PAGES, _member(0, 0.0), 1):
            return _due_at(member), _page(member)
        return None

    def next_of_site(self, site: int, after: float, limit: int) -> Sequence[int]:
        """Return the pages of a site that are due next after a time."""
        start = _member(0, after)
        return [
            _page(member)
            for member in self._tables.members_from(_QUEUE, _site_key(site), start, limit)
        ]


def _group_key(kind: str, number: int) -> bytes:
    return kind.encode() + b" " + number.to_bytes(_NUMBER_BYTES, "big")


def _site_key(site: int) -> bytes:
    return b"site " + site.to_bytes(_NUMBER_BYTES, "big")


def _member(page: int, due_at: float) -> bytes:
    units = _NEVER if due_at == math.inf else int(due_at * _UNITS_PER_S)
    due = min(max(units, 0), _NEVER)
    return due.to_bytes(_TIME_BYTES, "big") + page.to_bytes(_NUMBER_BYTES, "big")


def _due_at(member: bytes) -> float:
    units = int.from_bytes(member[:_TIME_BYTES], "big")
    return math.inf if units == _NEVER else units / _UNITS_PER_S


def _page(member: bytes) -> int:
    return int.from_bytes(member[_TIME_BYTES:], "big")
