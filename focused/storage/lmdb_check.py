"""Check an LMDB file page by page.

LMDB verifies nothing that it reads: a damaged page gives wrong rows, hides rows or crashes the
process. :class:`LmdbFileCheck` walks the same trees in Python. It verifies page headers, bounds,
the order of keys, the totals of each tree, and that every page belongs to exactly one tree or to
the free list. The layout is that of LMDB 0.9 on 64 bits, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

_PAGE = struct.Struct("<QHHHH")
"""Number, member size, flags, lower and upper end of the free space."""
_NODE = struct.Struct("<HHHH")
"""Low and high half of the value's size, flags, key size; a child's number in branches."""
_TREE = struct.Struct("<IHHQQQQQ")
_META = struct.Struct("<IIQQ")
_META_END = struct.Struct("<QQ")
_FREE_AT = _PAGE.size + _META.size
_HEAD_BYTES = _FREE_AT + 2 * _TREE.size + _META_END.size
_NUMBER = struct.Struct("<Q")
_MAGIC, _VERSION, _META_PAGES = 0xBEEFC0DE, 1, 2
_BRANCH, _LEAF, _OVERFLOW, _META_FLAG, _DIRTY, _FIXED, _SUBPAGE = 1, 2, 4, 8, 0x10, 0x20, 0x40
_BIG, _SUBTREE, _DUPLICATES = 0x01, 0x02, 0x04
_ROWS_FLAGS, _SETS_FLAGS, _MEMBERS_FLAGS, _FREE_FLAGS = 0, 0x14, 0x10, 0x08
_NO_PAGE = (1 << 64) - 1
_MAIN, _FREE = "(list of tables)", "(list of free pages)"

Rows = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class PageDamage:
    """The damage of one page in the tree of a table."""

    page: int
    table: str
    reason: str

    def __str__(self) -> str:
        return f"page {self.page}, {self.table or 'the file'}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _TreeRecord:
    """LMDB's record of a tree."""

    member_bytes: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


@dataclass(slots=True)
class _TreeWalk:
    """The walk through one tree and its totals so far."""

    table: str
    flags: int
    key_order: Callable[[bytes], Any] = bytes
    members_of: bytes = b""
    """The key of the set whose members the tree holds."""
    member_bytes: int = 0
    depth: int = 0
    branch_pages: int = 0
    leaf_pages: int = 0
    overflow_pages: int = 0
    entries: int = 0
    is_cut: bool = False
    """A damaged page was skipped, so the totals are too small."""


class _BadPageError(Exception):
    """A page cannot be read."""


class LmdbFileCheck:
    """One check of a data file."""

    def __init__(self, path: Path, map_bytes: int) -> None:
        """``map_bytes``: the map size the file was created with. Raises OSError."""
        self._map_bytes = map_bytes
        self._file = path.open("rb")
        self._page_bytes = 0
        self._owners: list[str | None] = []
        self._damage: list[PageDamage] = []
        self._claimed = 0
        self._take: Callable[[str, Rows], None] = lambda table, rows: None
        self._progress: Callable[[int, int], None] = lambda done, whole: None

    def read(
        self,
        take: Callable[[str, Rows], None],
        first: Sequence[str] = (),
        progress: Callable[[int, int], None] = lambda done, whole: None,
    ) -> Sequence[PageDamage]:
        """Call ``take`` with the rows of all tables, leaf by leaf; return the damage.

        In tables of sets a row is a set's key and one member. Tables in ``first`` come first.
        ``progress`` takes pages done and in total. Raises OSError.
        """
        self._take, self._progress = take, progress
        with self._file:
            meta = self._newest_meta()
            if meta is None:
                return self._damage
            free, main, pages = meta
            self._owners = ["(head)"] * _META_PAGES + [None] * (pages - _META_PAGES)
            tables: Rows = []
            self._read_tree(_TreeWalk(_MAIN, _ROWS_FLAGS), main, tables)
            named = {name.decode("utf-8", "replace"): record for name, record in tables}
            for table in dict.fromkeys([*filter(named.__contains__, first), *named]):
                record = named[table]
                if len(record) != _TREE.size:
                    self._bad(main.root, table, "its record is damaged")
                    continue
                tree = _TreeRecord(*_TREE.unpack(record))
                flags = _SETS_FLAGS if tree.flags == _SETS_FLAGS else _ROWS_FLAGS
                self._read_tree(_TreeWalk(table, flags), tree)
            free_lists: Rows = []
            self._read_tree(_TreeWalk(_FREE, _FREE_FLAGS, _as_number), free, free_lists)
            self._check_free_pages(free, free_lists)
        return self._damage

    @property
    def pages_in_use(self) -> Sequence[int]:
        """The numbers of the pages in use, after :meth:`read`."""
        return [page for page, owner in enumerate(self._owners) if owner not in (None, "(free)")]

    def _bad(self, page: int, table: str, reason: str) -> None:
        self._damage.append(PageDamage(page, table, reason))

    def _bytes_at(self, at: int, length: int) -> bytes:
        self._file.seek(at)
        return self._file.read(length)

    def _newest_meta(self) -> tuple[_TreeRecord, _TreeRecord, int] | None:
        """The trees of free pages and of tables, and the number of pages."""
        found = []
        for number in range(_META_PAGES):
            raw = self._bytes_at(number * self._page_bytes, _HEAD_BYTES)
            try:
                own_number, _, flags, _, _ = _PAGE.unpack_from(raw)
                head = _META.unpack_from(raw, _PAGE.size)
                free = _TreeRecord(*_TREE.unpack_from(raw, _FREE_AT))
                main = _TreeRecord(*_TREE.unpack_from(raw, _FREE_AT + _TREE.size))
                last_page, transaction = _META_END.unpack_from(raw, _FREE_AT + 2 * _TREE.size)
            except struct.error:
                self._bad(number, "", "the file is too short")
                return None
            self._page_bytes = self._page_bytes or free.member_bytes
            is_ours = (
                (own_number, flags) == (number, _META_FLAG)
                and head == (_MAGIC, _VERSION, 0, self._map_bytes)
                and free.member_bytes == self._page_bytes
                and 256 <= self._page_bytes <= 1 << 16
                and (transaction == 0 or transaction % _META_PAGES == number)
            )
            if not is_ours:
                self._bad(number, "", "its head is damaged")
                return None
            found.append((transaction, free, main, last_page))
        transaction, free, main, last_page = max(found, key=_transaction)
        if abs(found[0][0] - found[1][0]) > 1:
            self._bad(0, "", "the numbers of its last transactions are damaged")
        elif not _META_PAGES - 1 <= last_page < self._map_bytes // self._page_bytes:
            self._bad(0, "", f"it cannot have {last_page + 1} pages")
        else:
            return free, main, last_page + 1
        return None

    def _read_tree(self, walk: _TreeWalk, tree: _TreeRecord, into: Rows | None = None) -> None:
        walk.member_bytes = tree.member_bytes
        has_members = walk.flags in (_SETS_FLAGS, _MEMBERS_FLAGS, _FREE_FLAGS)
        if tree.flags != walk.flags or (tree.member_bytes and not has_members):
            self._bad(tree.root, walk.table, "the record of its tree is damaged")
            return
        if tree.root != _NO_PAGE:
            self._read_page(walk, tree.root, 1, None, None, into)
        if walk.is_cut:
            return
        totals = ["depth", "overflow_pages", "entries"]
        if walk.flags != _SETS_FLAGS:
            # LMDB's totals of sets with own trees include deleted pages.
            totals += ["branch_pages", "leaf_pages"]
        for name in totals:
            found, recorded = getattr(walk, name), getattr(tree, name)
            if found != recorded:
                what = name.replace("_", " ")
                self._bad(tree.root, walk.table, f"{what}: {found}, where {recorded} are recorded")

    def _read_page(
        self, walk: _TreeWalk, number: int, depth: int, low: Any, high: Any, into: Rows | None
    ) -> None:
        """Read the subtree of a page with keys from ``low`` to before ``high``."""
        try:
            self._claim(walk, number, 1)
            page = self._bytes_at(number * self._page_bytes, self._page_bytes)
            if len(page) < self._page_bytes:
                raise _BadPageError("the file ends before it")
            own_number, member_bytes, flags, lower, upper = _PAGE.unpack_from(page)
            if own_number != number:
                raise _BadPageError(f"its number says {own_number}")
            if lower % 2 or not _PAGE.size < lower <= upper <= self._page_bytes:
                raise _BadPageError(f"its free space is from {lower} to {upper}")
            count = (lower - _PAGE.size) // 2
            walk.depth = max(walk.depth, depth)
            if flags == _BRANCH:
                self._read_branch(walk, page, count, depth, (low, high), into)
                return
            walk.leaf_pages += 1
            rows: Rows
            if walk.flags == _MEMBERS_FLAGS and flags == _LEAF | _FIXED:
                if member_bytes != walk.member_bytes:
                    raise _BadPageError(f"its members have {member_bytes} bytes")
                members = _members(page, member_bytes, count)
                self._check_order(members, low, high)
                if upper - lower != self._page_bytes - _PAGE.size - count * member_bytes:
                    raise _BadPageError(f"its free space is from {lower} to {upper}")
                rows = [(walk.members_of, member) for member in members]
            elif walk.flags != _MEMBERS_FLAGS and flags == _LEAF:
                rows = self._read_leaf(walk, page, count, low, high)
            else:
                raise _BadPageError(f"its flags are {flags:#x}")
            walk.entries += len(rows)
            if into is None:
                self._take(walk.table, rows)
            else:
                into += rows
        except (_BadPageError, struct.error) as error:
            walk.is_cut = True
            self._bad(number, walk.table, str(error))

    def _claim(self, walk: _TreeWalk, first: int, pages: int) -> None:
        """Mark pages as the tree's; no other tree may have them."""
        for number in range(first, first + pages):
            if not _META_PAGES <= number < len(self._owners):
                raise _BadPageError("there is no such page")
            owner = self._owners[number]
            if owner is not None:
                raise _BadPageError(f"it is a page of {owner}, too")
            self._owners[number] = walk.table
        self._claimed += pages
        self._progress(self._claimed, len(self._owners))

    def _starts(self, page: bytes, count: int) -> Sequence[int]:
        """The offsets of a page's nodes."""
        starts: Sequence[int] = struct.unpack_from(f"<{count}H", page, _PAGE.size)
        upper = _PAGE.unpack_from(page)[4]
        if min(starts) != upper or max(starts) > self._page_bytes - _NODE.size:
            raise _BadPageError("its rows are out of bounds")
        return starts

    def _check_filled(self, page: bytes, used: int) -> None:
        """Check that the nodes lie side by side behind the free space."""
        if used != self._page_bytes - _PAGE.unpack_from(page)[4]:
            raise _BadPageError("its rows overlap, or there are gaps between them")

    def _check_order(self, keys: Sequence[Any], low: Any, high: Any) -> None:
        if any(a >= b for a, b in pairwise(keys)):
            raise _BadPageError("its keys are out of order")
        if (low is not None and keys[0] < low) or (high is not None and keys[-1] >= high):
            raise _BadPageError("its keys belong on another page")

    def _read_branch(
        self,
        walk: _TreeWalk,
        page: bytes,
        count: int,
        depth: int,
        bounds: tuple[Any, Any],
        into: Rows | None,
    ) -> None:
        children, keys, used = [], [], 0
        for at in self._starts(page, count):
            first, second, third, key_bytes = _NODE.unpack_from(page, at)
            begin = at + _NODE.size
            children.append(first | second << 16 | third << 32)
            keys.append(page[begin : begin + key_bytes])
            used += _even(_NODE.size + key_bytes)
        self._check_filled(page, used)
        if count < 2:
            raise _BadPageError("it has one child only")
        lows = [walk.key_order(key) for key in keys[1:]]  # the first child has no key
        self._check_order(lows, *bounds)
        walk.branch_pages += 1
        low, high = bounds
        for child, least, most in zip(children, [low, *lows], [*lows, high], strict=True):
            self._read_page(walk, child, depth + 1, least, most, into)

    def _read_leaf(self, walk: _TreeWalk, page: bytes, count: int, low: Any, high: Any) -> Rows:
        rows: Rows = []
        keys, used = [], 0
        trees: list[tuple[bytes, bytes]] = []
        for at in self._starts(page, count):
            low_half, high_half, flags, key_bytes = _NODE.unpack_from(page, at)
            value_bytes = low_half | high_half << 16
            begin = at + _NODE.size + key_bytes
            end = begin + (_NUMBER.size if flags == _BIG else value_bytes)
            if end > self._page_bytes:
                raise _BadPageError("a row is out of bounds")
            key, value = page[at + _NODE.size : begin], page[begin:end]
            keys.append(walk.key_order(key))
            used += _even(end - at)
            if flags == 0 or (flags == _SUBTREE and walk.table == _MAIN):
                rows.append((key, value))
            elif flags == _BIG and walk.flags != _SETS_FLAGS:
                rows.append((key, self._read_overflow(walk, value, value_bytes)))
            elif flags == _DUPLICATES and walk.flags == _SETS_FLAGS:
                rows += [(key, member) for member in self._read_subpage(value)]
            elif flags == _DUPLICATES | _SUBTREE and walk.flags == _SETS_FLAGS:
                trees.append((key, value))
            else:
                raise _BadPageError(f"a row has the flags {flags:#x}")
        self._check_filled(page, used)
        self._check_order(keys, low, high)
        for key, record in trees:
            tree = _TreeRecord(*_TREE.unpack(record))
            members = _TreeWalk(walk.table, _MEMBERS_FLAGS, members_of=key)
            self._read_tree(members, tree)
            walk.entries += members.entries
            walk.is_cut |= members.is_cut
        return rows

    def _read_overflow(self, walk: _TreeWalk, record: bytes, value_bytes: int) -> bytes:
        """Read a value that is too long for its leaf, from consecutive pages."""
        (number,) = _NUMBER.unpack(record)
        pages = -(-(_PAGE.size + value_bytes) // self._page_bytes)
        self._claim(walk, number, pages)
        walk.overflow_pages += pages
        raw = self._bytes_at(number * self._page_bytes, _PAGE.size + value_bytes)
        own_number, _, flags, low_half, high_half = _PAGE.unpack_from(raw)
        own_pages = low_half | high_half << 16
        if (own_number, flags, own_pages) != (number, _OVERFLOW, pages):
            raise _BadPageError(f"the long row on page {number} is damaged")
        return raw[_PAGE.size :]

    def _read_subpage(self, value: bytes) -> Sequence[bytes]:
        """Read the members of a small set, stored in a page within the page."""
        _, member_bytes, flags, lower, upper = _PAGE.unpack_from(value)
        count = (lower - _PAGE.size) // 2
        is_sound = (
            flags & ~_DIRTY == _LEAF | _FIXED | _SUBPAGE
            and count > 0
            and member_bytes > 0
            and upper - lower == len(value) - _PAGE.size - count * member_bytes
            and upper >= lower
        )
        if not is_sound:
            raise _BadPageError("a set is damaged")
        members = _members(value, member_bytes, count)
        self._check_order(members, None, None)
        return members

    def _check_free_pages(self, free: _TreeRecord, free_lists: Rows) -> None:
        """Check that each page is either in use or free."""
        try:
            for _, row in free_lists:
                (count,) = _NUMBER.unpack_from(row)
                for number in struct.unpack_from(f"<{count}Q", row, _NUMBER.size):
                    self._claim(_TreeWalk("(free)", _ROWS_FLAGS), number, 1)
        except (_BadPageError, struct.error) as error:
            self._bad(free.root, _FREE, f"it is damaged: {error}")
        lost = sum(owner is None for owner in self._owners)
        if lost and not self._damage:
            self._bad(free.root, _FREE, f"{lost} pages are neither in use nor free")


def _transaction(meta: tuple[int, _TreeRecord, _TreeRecord, int]) -> int:
    return meta[0]


def _as_number(key: bytes) -> int:
    return int.from_bytes(key, "little")


def _members(page: bytes, member_bytes: int, count: int) -> Sequence[bytes]:
    end = _PAGE.size + count * member_bytes
    return [page[at : at + member_bytes] for at in range(_PAGE.size, end, member_bytes)]


def _even(length: int) -> int:
    return length + length % 2
