"""Tables and sets of the crawl's state, read and written in one open transaction.

What is written is noted as steps, by which :meth:`Tables.redo` can do it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import lmdb
import msgspec

from focused.frontier import environment
from focused.frontier.environment import SETS, TABLES
from focused.frontier.journal import Step
from focused.frontier.soundness import DISK_ERRORS, Soundness

_PUT, _DELETE, _ADD, _DISCARD = range(4)
_NAMES = (*TABLES, *SETS)
_NUMBER = {name: number for number, name in enumerate(_NAMES)}


class Tables:
    """Named tables of byte keys and values, and sets of byte members by key; all in order.

    Not thread-safe: one owner, the crawl. What becomes of the transaction is for the
    :class:`focused.frontier.store.StateStore` to say.
    """

    def __init__(
        self, env: lmdb.Environment, soundness: Soundness, *, read_only: bool, noting: bool
    ) -> None:
        """``noting`` keeps what is written in :attr:`steps`. Raises lmdb.Error."""
        self._dbs = environment.databases(env, create=not read_only)
        self._soundness = soundness
        self._noting = noting
        self._env = env
        self._txn = env.begin(write=not read_only)
        self._cursors: dict[str, Any] = {}
        self.steps: list[Step] = []
        """What was written, in order, until somebody clears it."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value, or None."""
        value: bytes | None = self._txn.get(key, db=self._dbs[table])
        return value

    def get_many(self, table: str, keys: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows that are there, in one go: a quarter of the time of one by one."""
        rows: Sequence[tuple[bytes, bytes]] = self._cursor(table).getmulti(keys)
        return rows

    def put(self, table: str, key: bytes, value: bytes, *, last: bool = False) -> None:
        """Write or replace a row; ``last`` tells that no key of the table is as large or larger.

        Rows that come in order fill their pages wholly, where others leave a third free.
        Raises StateError when the disk is full.
        """
        try:
            written = self._txn.put(key, value, append=last, db=self._dbs[table])
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        if not written:
            raise ValueError(f"{key!r} is not the last of {table}")
        self._note(_PUT, table, key, value)

    def put_many(
        self, table: str, rows: Sequence[tuple[bytes, bytes]], *, last: bool = False
    ) -> None:
        """:meth:`put` rows in one go."""
        if not rows:
            return
        try:
            _, written = self._cursor(table).putmulti(rows, append=last)
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        if written != len(rows):
            raise ValueError(f"{rows[0][0]!r} is not the last of {table}")
        self._note_all(_PUT, table, rows)

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a row, or a set with all its members; False when it was not there."""
        try:
            gone = bool(self._txn.delete(key, db=self._dbs[table]))
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        self._note(_DELETE, table, key, b"")
        return gone

    def count(self, table: str) -> int:
        """Return the number of rows, or of members of all sets together."""
        return int(self._txn.stat(self._dbs[table])["entries"])

    def scan(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows under ``prefix`` in key order; do not write meanwhile."""
        with self._txn.cursor(db=self._dbs[table]) as cursor:
            found = cursor.set_range(prefix) if prefix else cursor.first()
            while found and cursor.key().startswith(prefix):
                yield cursor.key(), cursor.value()
                found = cursor.next()

    def last_key(self, table: str) -> bytes | None:
        """Return the largest key, or None."""
        cursor = self._cursor(table)
        return bytes(cursor.key()) if cursor.last() else None

    def add(self, sets: str, key: bytes, member: bytes) -> None:
        """Put a member into the set of that key. All of one table are of one length."""
        try:
            self._txn.put(key, member, db=self._dbs[sets])
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        self._note(_ADD, sets, key, member)

    def add_many(self, sets: str, members: Sequence[tuple[bytes, bytes]]) -> None:
        """:meth:`add` members, each with its set's key before it, in one go."""
        if not members:
            return
        try:
            self._cursor(sets).putmulti(members)
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        self._note_all(_ADD, sets, members)

    def discard(self, sets: str, key: bytes, member: bytes) -> bool:
        """Take a member out of the set of that key; False when it was not in."""
        try:
            gone = bool(self._txn.delete(key, member, db=self._dbs[sets]))
        except DISK_ERRORS as error:
            raise self._soundness.lost(error) from error
        self._note(_DISCARD, sets, key, member)
        return gone

    def first_two(self, sets: str, key: bytes) -> tuple[bytes | None, bytes | None]:
        """Return the smallest members of the set of that key, None where there are fewer."""
        cursor = self._cursor(sets)
        if not cursor.set_key(key):
            return None, None
        first = bytes(cursor.value())
        return first, bytes(cursor.value()) if cursor.next_dup() else None

    def member_with(self, sets: str, key: bytes, prefix: bytes) -> bytes | None:
        """Return the first member that begins with ``prefix``, or None."""
        cursor = self._cursor(sets)
        if not cursor.set_range_dup(key, prefix):
            return None
        member = bytes(cursor.value())
        return member if member.startswith(prefix) else None

    def members_with(
        self, sets: str, wanted: Sequence[tuple[bytes, bytes]]
    ) -> Sequence[bytes | None]:
        """:meth:`member_with` for each (key, prefix), in one go."""
        cursor = self._cursor(sets)
        reach, value = cursor.set_range_dup, cursor.value
        found: list[bytes | None] = []
        for key, prefix in wanted:
            member = value() if reach(key, prefix) else b""
            found.append(member if member.startswith(prefix) else None)
        return found

    def members(self, sets: str, key: bytes) -> Iterator[bytes]:
        """Yield the members of the set of that key in order; do not write meanwhile."""
        with self._txn.cursor(db=self._dbs[sets]) as cursor:
            if cursor.set_key(key):
                yield from cursor.iternext_dup()

    def size_of(self, sets: str, key: bytes) -> int:
        """Return the number of members of the set of that key."""
        cursor = self._cursor(sets)
        return int(cursor.count()) if cursor.set_key(key) else 0

    def firsts(self, sets: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield each set's key with its smallest member, in key order; do not write meanwhile."""
        with self._txn.cursor(db=self._dbs[sets]) as cursor:
            if cursor.first():
                yield from cursor.iternext_nodup(keys=True, values=True)

    def get_meta(self, key: str) -> Any:
        """Return a JSON value of the crawl's own bookkeeping, or None."""
        raw = self.get("meta", key.encode())
        return None if raw is None else msgspec.json.decode(raw)

    def put_meta(self, key: str, value: Any) -> None:
        """Write a JSON value, or a dataclass of such, of the crawl's own bookkeeping."""
        self.put("meta", key.encode(), msgspec.json.encode(value))

    def redo(self, steps: Iterable[Step]) -> None:
        """Write again what was noted; it is not noted anew. Raises lmdb.Error."""
        for operation, table, key, value in steps:
            database = self._dbs[_NAMES[table]]
            if operation in (_PUT, _ADD):
                self._txn.put(key, value, db=database)
            else:
                self._txn.delete(key, value, db=database)

    def renew(self) -> None:
        """Make true what was written, and begin the next transaction. Raises StateError."""
        self._cursors.clear()
        try:
            with self._soundness.writing():
                self._txn.commit()
        finally:
            self._txn = self._env.begin(write=True)

    def abort(self) -> None:
        """Forget what was written since the transaction began, and end it."""
        self._cursors.clear()
        self._txn.abort()

    def _cursor(self, name: str) -> Any:
        cursor = self._cursors.get(name)
        if cursor is None:
            cursor = self._cursors[name] = self._txn.cursor(db=self._dbs[name])
        return cursor

    def _note(self, operation: int, table: str, key: bytes, value: bytes) -> None:
        if self._noting:
            self.steps.append((operation, _NUMBER[table], key, value))

    def _note_all(self, operation: int, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        if self._noting:
            number = _NUMBER[table]
            self.steps += [(operation, number, key, value) for key, value in rows]
