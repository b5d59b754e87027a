"""Records and due queue of a revisit schedule in LMDB tables.

All writes belong to the caller's transaction. The records of a site's pages are stored in blocks of
up to 16 pages, so that the pages of a site are read together and share the overhead of a row. A
second table holds site and due time of each page: due times move more often than pages are visited.
The queue has one member per page.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from focused.storage.tables import Tables

_BLOCKS = "revisit_pages"
_DUE_TIMES = "revisit_due_times"
_GROUPS = "revisit_groups"
_QUEUE = "revisit_queue"
_ALL_PAGES = b"all"
_COLUMNS = {"schedule": 0, "page": 1}
"""The kinds of records that are stored in blocks."""
_NO_RECORDS = (None, None)
_BLOCK_PAGES = 16
_block_key = struct.Struct(">II")  # site, a number up to that of the first page
_member = struct.Struct(">II")  # due time, page
_NUMBER_BYTES = 4
_ROW_PAGES = 64
"""Pages per row of the table of due times."""
_site_and_due = struct.Struct(">II")
_EMPTY_ROW = bytes(_site_and_due.size * _ROW_PAGES)
_TAKEN = 0
_NEVER = 0xFFFF_FFFF
_MAX_CACHED_GROUPS = 50_000
_MAX_CACHED_ROWS = 20_000


class _Block:
    """Records of some pages of a site, one of each kind, in the order of the pages' numbers."""

    def __init__(self, key: bytes, records: dict[int, list[bytes | None]]) -> None:
        self.key = key
        self.records = records

    @classmethod
    def decode(cls, key: bytes, stored: bytes) -> _Block:
        """Read a row: the numbers of the pages, then the records of a kind one after another."""
        count, *sizes = stored[:3]
        end = 3 + count * _NUMBER_BYTES
        numbers = struct.unpack_from(f"<{count}I", stored, 3)
        columns: list[list[bytes | None]] = []
        for size in sizes:
            missing = bytes(size)
            found = [stored[end + n * size : end + (n + 1) * size] for n in range(count)]
            columns.append([each if each != missing else None for each in found])
            end += count * size
        return cls(key, dict(zip(numbers, map(list, zip(*columns, strict=True)), strict=True)))

    def encode(self) -> bytes:
        """Return the row; a missing record is zeros."""
        sizes: list[int] = []
        packed: list[bytes] = []
        for column in range(len(_COLUMNS)):
            records = [each[column] for each in self.records.values()]
            lengths = {len(each) for each in records if each is not None} or {0}
            if len(lengths) > 1:
                raise ValueError(f"records of one kind have different lengths: {sorted(lengths)}")
            sizes += lengths
            packed += [each or bytes(sizes[-1]) for each in records]
        count = len(self.records)
        return b"".join((bytes((count, *sizes)), struct.pack(f"<{count}I", *self.records), *packed))

    def insert(self, number: int, records: list[bytes | None]) -> None:
        self.records = dict(sorted([*self.records.items(), (number, records)]))

    def split(self, site: int) -> _Block:
        """Move the second half of the pages to a new block."""
        moved = list(self.records)[len(self.records) // 2 :]
        return _Block(
            _block_key.pack(site, moved[0]), {page: self.records.pop(page) for page in moved}
        )


class TableRecords:
    """A :class:`focused.revisit.schedule.ScheduleStore` in LMDB tables.

    The queue is a set of due times in whole seconds.

    The records of one kind have one length for all pages, and are not all zeros. Those of a page
    are stored after :meth:`register`. :meth:`save` writes what has changed; the caller calls it
    before it commits.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._unregistered: dict[int, list[bytes | None]] = {}
        self._blocks: dict[bytes, _Block] = {}
        """The blocks that were used since the last :meth:`save`."""
        self._block_of: dict[int, _Block] = {}
        self._unsaved_blocks: dict[bytes, _Block] = {}
        self._due_times = DueTimes(tables)
        self._groups: dict[tuple[str, int], bytes | None] = {}
        self._unsaved_groups: set[tuple[str, int]] = set()

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        column = _COLUMNS.get(kind)
        if column is not None:
            records = self._records_of(number)
            return None if records is None else records[column]
        group = kind, number
        if group not in self._groups:
            self._groups[group] = self._tables.get(_GROUPS, _group_key(kind, number))
        return self._groups[group]

    def get_many(self, kind: str, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """Return several records."""
        column, block_of = _COLUMNS.get(kind), self._block_of
        if column is None or not all(map(block_of.__contains__, numbers)):
            return [self.get(kind, number) for number in numbers]
        return [block_of[number].records[number][column] for number in numbers]

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        self._put(kind, number, record)

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        if self.get(kind, number) is not None:
            self._put(kind, number, None)

    def _put(self, kind: str, number: int, record: bytes | None) -> None:
        column = _COLUMNS.get(kind)
        if column is None:
            self._groups[kind, number] = record
            self._unsaved_groups.add((kind, number))
            return
        records = self._records_of(number)
        if records is None:
            records = self._unregistered[number] = list(_NO_RECORDS)
        records[column] = record
        if (block := self._block_of.get(number)) is not None:
            self._unsaved_blocks[block.key] = block

    def _records_of(self, number: int) -> list[bytes | None] | None:
        """Return the records of a page, None for a page without any."""
        found = self._unregistered.get(number)
        if found is None:
            block = self._block_of.get(number) or self._find(number)
            found = None if block is None else block.records.get(number)
        return found

    def register(self, page: int, site: int) -> None:
        """Store the records of a page with those of its site."""
        block = self._block_at(site, page)
        if block is None or (len(block.records) >= _BLOCK_PAGES and page > max(block.records)):
            block = self._new_block(_Block(_block_key.pack(site, page), {}))
        elif len(block.records) >= _BLOCK_PAGES:
            other = self._new_block(block.split(site))
            self._unsaved_blocks[block.key] = block
            block = other if page > min(other.records) else block
        block.insert(page, self._unregistered.pop(page, list(_NO_RECORDS)))
        self._block_of[page] = block
        self._unsaved_blocks[block.key] = block
        self._due_times.put(page, site, _TAKEN)

    def unregister(self, page: int) -> None:
        """Remove a page with its records."""
        block = self._block_of.get(page) or self._find(page)
        if block is None or page not in block.records:
            raise KeyError(page)
        del block.records[page]
        self._block_of.pop(page, None)
        self._unsaved_blocks[block.key] = block
        if not block.records:
            self._tables.delete(_BLOCKS, block.key)
            del self._blocks[block.key], self._unsaved_blocks[block.key]

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""
        first = self._block_at(site, after + 1)
        start = _block_key.pack(site, 0) if first is None else first.key
        pages: list[int] = []
        for key, stored in self._tables.scan(_BLOCKS, start[:_NUMBER_BYTES], start):
            pages += [page for page in self._loaded(key, stored).records if page > after]
            if len(pages) >= limit:
                break
        return pages[:limit]

    def site_of(self, page: int) -> int:
        """Return the site of a registered page."""
        return self._due_times.get(page)[0]

    def add(self, page: int, due_at: float) -> None:
        """Insert a registered page that is not in the queue."""
        due = _NEVER if due_at == math.inf else int(due_at)
        self._due_times.put(page, self.site_of(page), due)
        self._tables.add(_QUEUE, _ALL_PAGES, _member.pack(due, page))

    def remove(self, page: int) -> bool:
        """Take a page out of the queue; False if it is not in it."""
        site, due = self._due_times.get(page)
        if due == _TAKEN:
            return False
        self._tables.discard(_QUEUE, _ALL_PAGES, _member.pack(due, page))
        self._due_times.put(page, site, _TAKEN)
        return True

    def due_at(self, page: int) -> float | None:
        """Return the due time of a page; None if it is not in the queue."""
        _, due = self._due_times.get(page)
        return None if due == _TAKEN else _time(due)

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        member = self._tables.first_member(_QUEUE, _ALL_PAGES)
        if member is None:
            return None
        due, page = _member.unpack(member)
        return _time(due), page

    def save(self) -> None:
        """Write the records that are only in memory into the open transaction."""
        for key, block in sorted(self._unsaved_blocks.items()):
            self._tables.put(_BLOCKS, key, block.encode())
        self._due_times.save()
        for kind, number in sorted(self._unsaved_groups):
            key, record = _group_key(kind, number), self._groups[kind, number]
            if record is None:
                self._tables.delete(_GROUPS, key)
            else:
                self._tables.put(_GROUPS, key, record)
        self._blocks.clear()
        self._block_of.clear()
        self._unsaved_blocks.clear()
        self._unsaved_groups.clear()
        if len(self._groups) > _MAX_CACHED_GROUPS:
            self._groups.clear()

    def _find(self, number: int) -> _Block | None:
        """Return the block that may hold a page, or None."""
        return self._block_at(self.site_of(number), number)

    def _block_at(self, site: int, number: int) -> _Block | None:
        """Return the last block of a site that doesn't start above ``number``, or None."""
        found = self._tables.floor(_BLOCKS, _block_key.pack(site, number))
        if found is None or found[0][:_NUMBER_BYTES] != site.to_bytes(_NUMBER_BYTES, "big"):
            return None
        return self._loaded(*found)

    def _loaded(self, key: bytes, stored: bytes) -> _Block:
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = _Block.decode(key, stored)
            self._block_of.update(dict.fromkeys(block.records, block))
        return block

    def _new_block(self, block: _Block) -> _Block:
        """Write a new block at once, so that :meth:`_block_at` finds it."""
        self._tables.put(_BLOCKS, block.key, block.encode())
        self._blocks[block.key] = block
        self._block_of.update(dict.fromkeys(block.records, block))
        return block


class DueTimes:
    """Site and due time of each page, by page number; zeros for an unknown page."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._largest = tables.last_key(_DUE_TIMES) or b""
        self._rows: dict[int, bytearray] = {}
        self._unsaved: set[int] = set()

    def get(self, page: int) -> tuple[int, int]:
        """Return the site of a page, and its due time in seconds, 0 while it is taken."""
        number, position = divmod(page, _ROW_PAGES)
        row = self._rows.get(number) or self._load(number)
        site, due = _site_and_due.unpack_from(row, position * _site_and_due.size)
        return site, due

    def put(self, page: int, site: int, due: int) -> None:
        """Store the site and the due time of a page."""
        number, position = divmod(page, _ROW_PAGES)
        row = self._rows.get(number) or self._load(number)
        _site_and_due.pack_into(row, position * _site_and_due.size, site, due)
        self._unsaved.add(number)

    def save(self) -> None:
        """Write the rows that have changed into the open transaction."""
        for number in sorted(self._unsaved):
            key = number.to_bytes(_NUMBER_BYTES, "big")
            # Rows in the order of their keys fill the pages of the table.
            is_last = key > self._largest
            if is_last:
                self._largest = key
            self._tables.put(_DUE_TIMES, key, bytes(self._rows[number]), last=is_last)
        self._unsaved.clear()
        if len(self._rows) > _MAX_CACHED_ROWS:
            self._rows.clear()

    def _load(self, number: int) -> bytearray:
        stored = self._tables.get(_DUE_TIMES, number.to_bytes(_NUMBER_BYTES, "big"))
        row = self._rows[number] = bytearray(stored or _EMPTY_ROW)
        return row


def scheduled_pages(tables: Tables) -> Iterator[int]:
    """Yield the pages of the queue, in the order of their due times."""
    return (_member.unpack(member)[1] for member in tables.members(_QUEUE, _ALL_PAGES))


def _group_key(kind: str, number: int) -> bytes:
    return kind.encode() + b" " + number.to_bytes(_NUMBER_BYTES, "big")


def _time(due: int) -> float:
    return math.inf if due == _NEVER else float(due)


def stored_due_at(tables: Tables, page: int) -> float | None:
    """Return when a page of a stored schedule is due; minus infinity while it is taken.

    None for a page that is not in the schedule.
    """
    records = TableRecords(tables)
    if records.get("schedule", page) is None:
        return None
    due_at = records.due_at(page)
    return -math.inf if due_at is None else due_at
