"""What the literature's policies store of a page, and lists of pages in a record store."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from focused.revisit.estimators import CheckHistory
from focused.revisit.policy import RecordStore, Visit

PAGE, COLLECTION = "page", "collection"
_HISTORY = struct.Struct("<IIIfff")
_PAGE = struct.Struct("<dfII")
_LINK = struct.Struct("<II")
_NO_PAGE = 0xFFFFFFFF
FORCED_AFTER = 3.0
"""Mean intervals after which these policies' pages are visited in any case.

Estimators that give an unchanged page the rate 0 would never visit it again: at a mean interval of
90 days a collection loses a third of its freshness.
"""


@dataclass(slots=True)
class PageRecord:
    """A page's last visit, place, weight and the sums over its visits: 44 bytes."""

    last_at: float
    weight: float
    site: int
    directory: int
    history: CheckHistory = field(default_factory=CheckHistory)

    def add(self, visit: Visit) -> None:
        """Add a visit to the sums."""
        add_visit(self.history, visit)
        self.last_at = visit.at


def add_visit(history: CheckHistory, visit: Visit) -> None:
    """Add a visit to the sums of its page or of a group."""
    since = None if visit.changed_at is None else visit.at - visit.changed_at
    history.add(visit.at - visit.previous_at, visit.changed, since)


def read_page(records: RecordStore, page: int) -> PageRecord:
    """Return a page's record. Raises KeyError for an unknown page."""
    record = records.get(PAGE, page)
    if record is None:
        raise KeyError(page)
    last_at, weight, site, directory = _PAGE.unpack_from(record)
    return PageRecord(last_at, weight, site, directory, _unpack_history(record, _PAGE.size))


def write_page(records: RecordStore, page: int, record: PageRecord) -> None:
    """Store a page's record."""
    packed = _PAGE.pack(record.last_at, record.weight, record.site, record.directory)
    records.put(PAGE, page, packed + _pack_history(record.history))


def read_history(records: RecordStore, kind: str, number: int) -> CheckHistory:
    """Return the sums of a group of pages; empty for an unknown group."""
    record = records.get(kind, number)
    return CheckHistory() if record is None else _unpack_history(record, 0)


def write_history(records: RecordStore, kind: str, number: int, history: CheckHistory) -> None:
    """Store the sums of a group of pages."""
    records.put(kind, number, _pack_history(history))


def _pack_history(history: CheckHistory) -> bytes:
    return _HISTORY.pack(
        history.checks,
        history.changes,
        history.dated,
        history.watched_s,
        history.changed_s,
        history.quiet_s,
    )


def _unpack_history(record: bytes, offset: int) -> CheckHistory:
    checks, changes, dated, watched_s, changed_s, quiet_s = _HISTORY.unpack_from(record, offset)
    return CheckHistory(checks, changes, watched_s, changed_s, quiet_s, dated)


class PageLists:
    """The pages of each group as doubly linked lists of records: 8 bytes a page.

    A record store has no scan; policies that allocate per period need the pages of a group.
    """

    def __init__(self, records: RecordStore, kind: str) -> None:
        self._records = records
        self._kind = kind
        self._heads = f"{kind}-head"

    def add(self, group: int, page: int) -> None:
        """Insert a page at the front of a group's list."""
        head = self._head(group)
        self._put(page, _NO_PAGE, head)
        if head != _NO_PAGE:
            _, after = self._get(head)
            self._put(head, page, after)
        self._records.put(self._heads, group, _LINK.pack(page, 0))

    def remove(self, group: int, page: int) -> None:
        """Take a page out of its group's list."""
        before, after = self._get(page)
        if before == _NO_PAGE:
            self._records.put(self._heads, group, _LINK.pack(after, 0))
        else:
            self._put(before, self._get(before)[0], after)
        if after != _NO_PAGE:
            self._put(after, before, self._get(after)[1])
        self._records.delete(self._kind, page)

    def pages(self, group: int) -> Iterator[int]:
        """Yield the pages of a group, the latest first; the list must not change meanwhile."""
        page = self._head(group)
        while page != _NO_PAGE:
            yield page
            page = self._get(page)[1]

    def _head(self, group: int) -> int:
        record = self._records.get(self._heads, group)
        return _NO_PAGE if record is None else int(_LINK.unpack(record)[0])

    def _get(self, page: int) -> tuple[int, int]:
        record = self._records.get(self._kind, page)
        if record is None:
            raise KeyError(page)
        before, after = _LINK.unpack(record)
        return before, after

    def _put(self, page: int, before: int, after: int) -> None:
        self._records.put(self._kind, page, _LINK.pack(before, after))
