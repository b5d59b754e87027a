"""Tables and sets of a state, in one open transaction.

A table belongs to the part of the crawl that names it. The first write creates it; one that was
never written to is empty. Writes are recorded as steps, which :meth:`Tables.replay` repeats. Each
row has a checksum, verified whenever it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import lmdb
import msgspec

from focused.errors import StateError
from focused.storage import environment
from focused.storage.environment import DISK_ERRORS, EMPTY, WriteGuard
from focused.storage.journal import Batch, JournalEntry
from focused.storage.rows import add_checksum, checksum_seed, verify_checksum

_PUT, _DELETE, _ADD, _DISCARD = range(4)


class Tables:
    """Named tables of byte keys and values, and sets of byte members by key; both sorted.

    Single owner, not thread-safe. :class:`focused.storage.state_store.StateStore` commits. Reading
    a damaged row raises StateError; afterwards nothing is written.
    """

    def __init__(
        self, env: lmdb.Environment, write_guard: WriteGuard, *, read_only: bool, record_steps: bool
    ) -> None:
        """``record_steps`` records writes in :attr:`steps`. Raises lmdb.Error."""
        self._write_guard = write_guard
        self._record_steps = record_steps
        self._env = env
        self._txn = env.begin(write=not read_only)
        self._dbs = environment.open_databases(env, self._txn)
        self._empty = self._dbs[EMPTY]
        self._cursors: dict[str, Any] = {}
        self.steps: defaultdict[str, list[JournalEntry]] = defaultdict(list)
        """The recorded writes by table; the caller clears them."""

    @property
    def names(self) -> frozenset[str]:
        """The tables that were written to, sets included."""
        return frozenset(self._dbs) - {EMPTY}

    @property
    def sets(self) -> frozenset[str]:
        """Those of :attr:`names` that hold sets."""
        return frozenset(name for name in self.names if self._dbs[name].flags(self._txn)["dupsort"])

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value, or None."""
        try:
            stored = self._txn.get(key, db=self._dbs.get(table, self._empty))
        except lmdb.Error as error:
            raise self._write_guard.unreadable(table, error) from error
        return None if stored is None else self._verified(table, key, stored)

    def get_many(self, table: str, keys: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        """Return the existing rows, four times as fast as one by one."""
        try:
            rows = self._cursor(table).getmulti(keys)
        except lmdb.Error as error:
            raise self._write_guard.unreadable(table, error) from error
        return [(key, self._verified(table, key, stored)) for key, stored in rows]

    def put(self, table: str, key: bytes, value: bytes, *, last: bool = False) -> None:
        """Write or replace a row; ``last`` promises that no key of the table is as large or larger.

        Rows written in key order fill their pages; otherwise a third stays free. Raises StateError
        when the disk is full.
        """
        try:
            stored = add_checksum(checksum_seed(table), key, value)
            written = self._txn.put(key, stored, append=last, db=self._writable(table))
        except DISK_ERRORS as error:
            raise self._write_guard.lost(error) from error
        if not written:
            raise ValueError(f"{key!r} is not the last of {table}")
        self._record(_PUT, table, key, value)

    def put_many(
        self, table: str, rows: Sequence[tuple[bytes, bytes]], *, last: bool = False
    ) -> None:
        """:meth:`put` several rows."""
        if not rows:
            return
        try:
            self._writable(table)
            _, written = self._cursor(table).putmulti(_with_checksums(table, rows), append=last)
        except DISK_ERRORS as error:
            raise self._write_guard.lost(error) from error
        if written != len(rows):
            raise ValueError(f"{rows[0][0]!r} is not the last of {table}")
        self._record_all(_PUT, table, rows)

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a row, or a set with all its members; False when it doesn't exist."""
        try:
            gone = bool(self._txn.delete(key, db=self._dbs.get(table, self._empty)))
        except DISK_ERRORS as error:
            raise self._write_guard.lost(error) from error
        self._record(_DELETE, table, key, b"")
        return gone

    def drop(self, table: str) -> None:
        """Remove a table, for good; only migrations do."""
        found = self._dbs.pop(table, None)
        if found is not None:
            self._txn.drop(found)

    def count(self, table: str) -> int:
        """Return the number of rows, or of members of all sets together."""
        return int(self._txn.stat(self._dbs.get(table, self._empty))["entries"])

    def damaged(self, table: str, reason: str) -> StateError:
        """Return the error for a damaged table, and refuse writes from now on."""
        return self._write_guard.damaged(f"table {table!r}: {reason}")

    def scan(
        self, table: str, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows under ``prefix`` from ``start`` in key order; don't write meanwhile."""
        start = max(prefix, start)
        try:
            with self._txn.cursor(db=self._dbs.get(table, self._empty)) as cursor:
                found = cursor.set_range(start) if start else cursor.first()
                while found and (key := cursor.key()).startswith(prefix):
                    yield key, self._verified(table, key, cursor.value())
                    found = cursor.next()
        except lmdb.Error as error:
            raise self._write_guard.unreadable(table, error) from error

    def last_key(self, table: str) -> bytes | None:
        """Return the largest key, or None."""
        cursor = self._cursor(table)
        if not cursor.last():
            return None
        key = bytes(cursor.key())
        self._verified(table, key, cursor.value())
        return key

    def add(self, sets: str, key: bytes, member: bytes) -> None:
        """Add a member to a set; all members of a table have one length."""
        self.add_many(sets, ((key, member),))

    def add_many(self, sets: str, members: Sequence[tuple[bytes, bytes]]) -> None:
        """:meth:`add` several members, each after its set's key."""
        if not members:
            return
        try:
            self._writable(sets, is_set=True)
            self._cursor(sets).putmulti(_with_checksums(sets, members))
        except DISK_ERRORS as error:
            raise self._write_guard.lost(error) from error
        self._record_all(_ADD, sets, members)

    def discard(self, sets: str, key: bytes, member: bytes) -> bool:
        """Remove a member from a set; False when it isn't in."""
        return self.discard_many(sets, ((key, member),)) == 1

    def discard_many(self, sets: str, members: Sequence[tuple[bytes, bytes]]) -> int:
        """:meth:`discard` several members, each after its set's key; return how many were in."""
        if not members:
            return 0
        db, delete = self._dbs.get(sets, self._empty), self._txn.delete
        try:
            rows = _with_checksums(sets, members)
            gone = sum([delete(key, stored, db=db) for key, stored in rows])
        except DISK_ERRORS as error:
            raise self._write_guard.lost(error) from error
        self._record_all(_DISCARD, sets, members)
        return gone

    def first_two(self, sets: str, key: bytes) -> tuple[bytes | None, bytes | None]:
        """Return the two smallest members of a set, None where there are fewer."""
        cursor = self._cursor(sets)
        if not cursor.set_key(key):
            return None, None
        first = self._verified(sets, key, cursor.value())
        if not cursor.next_dup():
            return first, None
        return first, self._verified(sets, key, cursor.value())

    def members_with(
        self, sets: str, wanted: Sequence[tuple[bytes, bytes]]
    ) -> Sequence[bytes | None]:
        """Return for each (key, prefix) the first member that starts so, or None."""
        cursor = self._cursor(sets)
        reach, value = cursor.set_range_dup, cursor.value
        found: list[bytes | None] = []
        for key, prefix in wanted:
            member = self._verified(sets, key, value()) if reach(key, prefix) else b""
            found.append(member if member.startswith(prefix) else None)
        return found

    def members(self, sets: str, key: bytes, start: bytes = b"") -> Iterator[bytes]:
        """Yield the members of a set from ``start`` in order; don't write meanwhile."""
        try:
            with self._txn.cursor(db=self._dbs.get(sets, self._empty)) as cursor:
                if cursor.set_range_dup(key, start) if start else cursor.set_key(key):
                    for stored in cursor.iternext_dup():
                        yield self._verified(sets, key, stored)
        except lmdb.Error as error:
            raise self._write_guard.unreadable(sets, error) from error

    def set_size(self, sets: str, key: bytes) -> int:
        """Return the number of members of a set."""
        cursor = self._cursor(sets)
        return int(cursor.count()) if cursor.set_key(key) else 0

    def first_members(self, sets: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield each set's key and smallest member; don't write meanwhile."""
        with self._txn.cursor(db=self._dbs.get(sets, self._empty)) as cursor:
            if cursor.first():
                for key, stored in cursor.iternext_nodup(keys=True, values=True):
                    yield key, self._verified(sets, key, stored)

    def get_meta(self, key: str) -> Any:
        """Return a JSON value of the crawl's bookkeeping, or None."""
        raw = self.get("meta", key.encode())
        return None if raw is None else msgspec.json.decode(raw)

    def put_meta(self, key: str, value: Any) -> None:
        """Write a JSON value, or a dataclass of such."""
        self.put("meta", key.encode(), msgspec.json.encode(value))

    def replay(self, batch: Batch) -> None:
        """Repeat recorded writes without recording them. Raises lmdb.Error."""
        for table, steps in batch.items():
            for operation, key, value in steps:
                stored = add_checksum(checksum_seed(table), key, value)
                if operation in (_PUT, _ADD):
                    self._txn.put(key, stored, db=self._writable(table, is_set=operation == _ADD))
                elif operation == _DISCARD:
                    self._txn.delete(key, stored, db=self._dbs.get(table, self._empty))
                else:
                    self._txn.delete(key, db=self._dbs.get(table, self._empty))

    def commit_transaction(self) -> None:
        """Commit, and begin the next transaction. Raises StateError."""
        self._cursors.clear()
        try:
            with self._write_guard.writing():
                self._txn.commit()
        finally:
            self._txn = self._env.begin(write=True)

    def abort(self) -> None:
        """Abort the transaction."""
        self._cursors.clear()
        self._txn.abort()

    def _verified(self, table: str, key: bytes, stored: bytes) -> bytes:
        value = verify_checksum(checksum_seed(table), key, stored)
        if value is None:
            raise self.damaged(table, f"the row of key {key.hex()} has a wrong checksum")
        return value

    def _writable(self, table: str, *, is_set: bool = False) -> Any:
        """Return the table's handle, and create it if it is not there."""
        found = self._dbs.get(table)
        if found is None:
            found = environment.create_database(self._env, self._txn, table, is_set=is_set)
            self._dbs[table] = found
            self._cursors.pop(table, None)  # of the empty table
        return found

    def _cursor(self, name: str) -> Any:
        cursor = self._cursors.get(name)
        if cursor is None:
            db = self._dbs.get(name, self._empty)
            cursor = self._cursors[name] = self._txn.cursor(db=db)
        return cursor

    def _record(self, operation: int, table: str, key: bytes, value: bytes) -> None:
        if self._record_steps:
            self.steps[table].append((operation, key, value))

    def _record_all(self, operation: int, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        if self._record_steps:
            self.steps[table] += [(operation, key, value) for key, value in rows]


def put_entries(batch: Batch) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield table, key and value of each recorded put."""
    for table, steps in batch.items():
        for operation, key, value in steps:
            if operation == _PUT:
                yield table, key, value


def _with_checksums(table: str, rows: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    seed = checksum_seed(table)
    return [(key, add_checksum(seed, key, value)) for key, value in rows]
