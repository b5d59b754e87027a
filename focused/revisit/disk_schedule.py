"""Records and due queue of a revisit schedule in LMDB tables.

All writes belong to the caller's transaction. The records of a site's pages are stored in blocks of
up to 16 pages, so that the pages of a site are read together and share the overhead of a row. A
second table holds site and due time of each page: due times move more often than pages are visited.
The queue has one member per page.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from focused.storage.tables import Tables

_BLOCKS = "revisit_pages"
_DUE_TIMES = "revisit_due_times"
_GROUPS = "revisit_groups"
_QUEUE = "revisit_queue"
_ALL_PAGES = b"all"
_COLUMNS = {"schedule": 0, "page": 1}
"""The kinds of records that are stored in blocks."""
_BLOCK_PAGES = 16
_block_key = struct.Struct(">II")  # site, a number up to that of the first page
_member = struct.Struct(">II")  # due time, page
_NUMBER_BYTES = 4
_ROW_PAGES = 64
"""Pages per row of the table of due times."""
_number = struct.Struct(">I")
_SITE_AND_DUE_BYTES = 2 * _NUMBER_BYTES
_EMPTY_ROW = bytes(_SITE_AND_DUE_BYTES * _ROW_PAGES)
_TAKEN = 0
_NEVER = 0xFFFF_FFFF
_MAX_CACHED_GROUPS = 50_000
_MAX_CACHED_ROWS = 20_000


class _Block:
    """Records of some pages of a site, in the order of their numbers."""

    __slots__ = ("columns", "key", "numbers", "sizes")

    def __init__(self, key: bytes, stored: bytes = b"\0\0\0") -> None:
        self.key = key
        count, *self.sizes = stored[:3]
        begin, end = 3, 3 + count * _NUMBER_BYTES
        self.numbers = list(struct.unpack_from(f"<{count}I", stored, begin))
        self.columns: list[bytearray] = []
        for size in self.sizes:
            begin, end = end, end + count * size
            self.columns.append(bytearray(stored[begin:end]))

    def encode(self) -> bytes:
        head = bytes((len(self.numbers), *self.sizes))
        return b"".join((head, struct.pack(f"<{len(self.numbers)}I", *self.numbers), *self.columns))

    def position(self, number: int) -> int | None:
        position = bisect_left(self.numbers, number)
        found = position < len(self.numbers) and self.numbers[position] == number
        return position if found else None

    def get(self, column: int, position: int) -> bytes | None:
        """Return a record; None if it was never put, or deleted."""
        size = self.sizes[column]
        record = bytes(self.columns[column][position * size : (position + 1) * size])
        return record if record != bytes(size) else None

    def all(self, column: int) -> Sequence[bytes | None]:
        """Return the records of all pages."""
        size, stored = self.sizes[column], bytes(self.columns[column])
        if not size:
            return [None] * len(self.numbers)
        none = bytes(size)
        records = [stored[begin : begin + size] for begin in range(0, len(stored), size)]
        return (
            records if none not in records else [each if each != none else None for each in records]
        )

    def put(self, column: int, position: int, record: bytes) -> None:
        size = self.sizes[column]
        if size != len(record):
            if any(self.columns[column]):
                raise ValueError(f"a record of {len(record)} bytes among others of {size} bytes")
            size = self.sizes[column] = len(record)
            self.columns[column] = bytearray(size * len(self.numbers))
        self.columns[column][position * size : (position + 1) * size] = record

    def insert(self, number: int) -> None:
        position = bisect_left(self.numbers, number)
        self.numbers.insert(position, number)
        for size, column in zip(self.sizes, self.columns, strict=True):
            column[position * size : position * size] = bytes(size)

    def remove(self, position: int) -> None:
        del self.numbers[position]
        for size, column in zip(self.sizes, self.columns, strict=True):
            del column[position * size : (position + 1) * size]

    def split(self, site: int) -> _Block:
        """Move the second half of the pages to a new block."""
        half = len(self.numbers) // 2
        other = _Block(_block_key.pack(site, self.numbers[half]))
        other.sizes = list(self.sizes)
        other.numbers = self.numbers[half:]
        other.columns = [
            column[half * size :] for size, column in zip(self.sizes, self.columns, strict=True)
        ]
        del self.numbers[half:]
        for size, column in zip(self.sizes, self.columns, strict=True):
            del column[half * size :]
        return other


class TableRecords:
    """A RecordStore and a DueQueue in LMDB tables.

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
        self.due_times = DueTimes(tables)
        self._groups: dict[str, dict[int, bytes | None]] = {}
        self._unsaved_groups: set[tuple[str, int]] = set()

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        column = _COLUMNS.get(kind)
        if column is None:
            groups = self._groups.get(kind) or self._groups.setdefault(kind, {})
            if number not in groups:
                groups[number] = self._tables.get(_GROUPS, _group_key(kind, number))
            return groups[number]
        block = self._block_of.get(number)
        if block is None:
            if number in self._unregistered:
                return self._unregistered[number][column]
            block = self._find(number)
        position = None if block is None else block.position(number)
        return None if block is None or position is None else block.get(column, position)

    def get_many(self, kind: str, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """Return several records; those of a site's pages, in order, block by block."""
        column = _COLUMNS.get(kind)
        records: list[bytes | None] = []
        while len(records) < len(numbers):
            number = numbers[len(records)]
            block = None if column is None else self._block_of.get(number)
            if block is not None and column is not None:
                end = len(records) + len(block.numbers)
                if block.numbers == numbers[len(records) : end]:
                    records += block.all(column)
                    continue
            records.append(self.get(kind, number))
        return records

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        column = _COLUMNS.get(kind)
        if column is None:
            self._groups.setdefault(kind, {})[number] = record
            self._unsaved_groups.add((kind, number))
            return
        block = self._block_of.get(number) or self._find(number)
        position = None if block is None else block.position(number)
        if block is None or position is None:
            self._unregistered.setdefault(number, [None, None])[column] = record
        else:
            block.put(column, position, record)
            self._unsaved_blocks[block.key] = block

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        column = _COLUMNS.get(kind)
        if column is None:
            self._groups.setdefault(kind, {})[number] = None
            self._unsaved_groups.add((kind, number))
        elif number in self._unregistered:
            self._unregistered[number][column] = None
        elif (record := self.get(kind, number)) is not None:
            self.put(kind, number, bytes(len(record)))

    def register(self, page: int, site: int) -> None:
        """Store the records of a page with those of its site."""
        block = self._block_at(site, page)
        if block is None or (len(block.numbers) >= _BLOCK_PAGES and page > block.numbers[-1]):
            block = self._new_block(_Block(_block_key.pack(site, page)))
        elif len(block.numbers) >= _BLOCK_PAGES:
            other = self._new_block(block.split(site))
            self._unsaved_blocks[block.key] = block
            block = other if page > other.numbers[0] else block
        block.insert(page)
        self._block_of[page] = block
        self._unsaved_blocks[block.key] = block
        self.due_times.put_site(page, site)
        for column, record in enumerate(self._unregistered.pop(page, ())):
            if record is not None:
                block.put(column, block.numbers.index(page), record)

    def unregister(self, page: int) -> None:
        """Remove a page with its records."""
        block = self._block_of.get(page) or self._find(page)
        position = None if block is None else block.position(page)
        if block is None or position is None:
            raise KeyError(page)
        block.remove(position)
        self._block_of.pop(page, None)
        self._unsaved_blocks[block.key] = block
        if not block.numbers:
            self._tables.delete(_BLOCKS, block.key)
            del self._blocks[block.key], self._unsaved_blocks[block.key]

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""
        first = self._block_at(site, after + 1)
        start = _block_key.pack(site, 0) if first is None else first.key
        pages: list[int] = []
        for key, stored in self._tables.scan(_BLOCKS, start[:_NUMBER_BYTES], start):
            block = self._loaded(key, stored)
            pages += (
                block.numbers
                if block is not first
                else block.numbers[bisect_left(block.numbers, after + 1) :]
            )
            if len(pages) >= limit:
                break
        return pages[:limit]

    def site_of(self, page: int) -> int:
        """Return the site of a registered page."""
        return self.due_times.site_of(page)

    def add(self, page: int, due_at: float) -> None:
        """Insert a registered page that is not in the queue."""
        due = _NEVER if due_at == math.inf else int(due_at)
        self.due_times.put_due(page, due)
        self._tables.add(_QUEUE, _ALL_PAGES, _member.pack(due, page))

    def remove(self, page: int) -> None:
        """Take a page out of the queue."""
        self._tables.discard(_QUEUE, _ALL_PAGES, _member.pack(self.due_times.due_of(page), page))
        self.due_times.put_due(page, _TAKEN)

    def due_at(self, page: int) -> float | None:
        """Return the due time of a page; None if it is not in the queue."""
        due = self.due_times.due_of(page)
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
        self.due_times.save()
        for kind, number in sorted(self._unsaved_groups):
            key, record = _group_key(kind, number), self._groups[kind][number]
            if record is None:
                self._tables.delete(_GROUPS, key)
            else:
                self._tables.put(_GROUPS, key, record)
        self._blocks.clear()
        self._block_of.clear()
        self._unsaved_blocks.clear()
        self._unsaved_groups.clear()
        if sum(map(len, self._groups.values())) > _MAX_CACHED_GROUPS:
            self._groups.clear()

    def _find(self, number: int) -> _Block | None:
        """Return the block that may hold a page, or None."""
        return self._block_at(self.due_times.site_of(number), number)

    def _block_at(self, site: int, number: int) -> _Block | None:
        """Return the last block of a site that doesn't start above ``number``, or None."""
        found = self._tables.floor(_BLOCKS, _block_key.pack(site, number))
        if found is None or found[0][:_NUMBER_BYTES] != site.to_bytes(_NUMBER_BYTES, "big"):
            return None
        return self._loaded(*found)

    def _loaded(self, key: bytes, stored: bytes) -> _Block:
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = _Block(key, stored)
            self._block_of.update(dict.fromkeys(block.numbers, block))
        return block

    def _new_block(self, block: _Block) -> _Block:
        """Write a new block at once, so that :meth:`_block_at` finds it."""
        self._tables.put(_BLOCKS, block.key, block.encode())
        self._blocks[block.key] = block
        self._block_of.update(dict.fromkeys(block.numbers, block))
        return block


class DueTimes:
    """Site and due time of each page, by page number; zeros for an unknown page."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._largest = tables.last_key(_DUE_TIMES) or b""
        self._rows: dict[int, bytearray] = {}
        self._unsaved: set[int] = set()

    def site_of(self, page: int) -> int:
        """Return the site of a page."""
        return self._get(page, 0)

    def put_site(self, page: int, site: int) -> None:
        """Store the site of a page."""
        self._put(page, 0, site)

    def due_of(self, page: int) -> int:
        """Return the due time of a page in seconds, 0 while it is taken."""
        return self._get(page, _NUMBER_BYTES)

    def put_due(self, page: int, due: int) -> None:
        """Store the due time of a page."""
        self._put(page, _NUMBER_BYTES, due)

    def _get(self, page: int, offset: int) -> int:
        number, position = divmod(page, _ROW_PAGES)
        row = self._rows.get(number) or self._load(number)
        return int(_number.unpack_from(row, position * _SITE_AND_DUE_BYTES + offset)[0])

    def _put(self, page: int, offset: int, value: int) -> None:
        number, position = divmod(page, _ROW_PAGES)
        row = self._rows.get(number) or self._load(number)
        _number.pack_into(row, position * _SITE_AND_DUE_BYTES + offset, value)
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
    due = records.due_times.due_of(page)
    return -math.inf if due == _TAKEN else _time(due)
