"""The durable rows of a crawl: tables, sets, and one transaction at a time.

Frontier and archive write into the same transaction, so that "this page is
archived" and "this link is no longer queued" become true together. A commit
survives the death of the process (``kill -9``), and the failure of power once
:meth:`StateStore.sync` has come, which the driver calls about once a second:
a commit is an append to a journal, from which the tables are brought up to
date when they are opened next (:mod:`focused.frontier.journal`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import lmdb
import msgspec

from focused.errors import StateError
from focused.frontier import environment
from focused.frontier.environment import SETS, TABLES
from focused.frontier.journal import Journal, Step

FORMAT_VERSION = 9
# A disk that took a part of what was written is an lmdb.Error without a name of its own.
_DISK_ERRORS = (lmdb.Error, OSError)
_PUT, _DELETE, _ADD, _DISCARD = range(4)
# Of journal. More: fewer writes in all, longer pauses, more of memory until then.
_CHECKPOINT_BYTES = 2_000_000
_SYNCS_PER_CHECKPOINT = 10
_NUMBER = {name: number for number, name in enumerate((*TABLES, *SETS))}


class StateStore:
    """Named tables of byte keys and values, and sets of byte members by key; all in order.

    Use :meth:`open`. Not thread-safe: one owner, the crawl.
    """

    def __init__(
        self, env: lmdb.Environment, lock: TextIO | None, folder: Path, commit_every: int = 1
    ) -> None:
        self._env = env
        self._lock = lock
        self._folder = folder
        self._dbs = environment.databases(env, create=lock is not None)
        self._commit_every = commit_every
        self._commits = 0
        self._syncs = 0
        self._steps: list[Step] = []
        self._forced_first: list[Callable[[], object]] = []
        durable = lock is not None and commit_every == 1
        self._journal = Journal(folder / "journal") if durable else None
        self._broken = False
        self._closed = False
        self._txn = env.begin(write=lock is not None)
        self._cursors: dict[str, Any] = {}

    @classmethod
    def open(
        cls, folder: Path, identity: Mapping[str, str], *, commit_every: int = 1
    ) -> StateStore:
        """Open or create the state in ``folder``.

        ``identity`` says whose state it is (topic, policy); it is written at
        creation and must be equal ever after. ``commit_every`` above 1 makes
        only each so manieth commit true, and those between with it, and
        never waits for the disk: for state that nobody needs after a crash.

        Raises StateError when another process holds the folder, when the
        files are damaged or of another program, or belong to another crawl.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = environment.locked(folder)
        except OSError as error:
            raise StateError(
                f"{folder} cannot be written to: {error.strerror}. "
                "Choose another output.folder, or mend this one."
            ) from error
        with contextlib.ExitStack() as undo:
            undo.callback(lock.close)
            env = environment.opened(folder, durable=commit_every == 1)
            undo.callback(env.close)
            try:
                environment.claim(env, folder, {"format": FORMAT_VERSION, **identity})
                store = cls(env, lock, folder, commit_every)
                store._catch_up()
            except (lmdb.Error, OSError, ValueError, msgspec.MsgspecError) as error:
                raise environment.damaged(folder, error) from error
            undo.pop_all()
        return store

    @classmethod
    def reopen(cls, folder: Path) -> StateStore:
        """Open the state in ``folder``, whose ever it is, for reports and tools.

        Raises StateError when there is none, or as :meth:`open` does.
        """
        environment.must_hold_state(folder)
        return cls.open(folder, {})

    @classmethod
    def view(cls, folder: Path) -> StateStore:
        """A snapshot of the state, to read only, even while a crawl runs on it.

        Of a running crawl it is at most some ten seconds old. Of one that was
        killed it may lack the last seconds, which :meth:`open` brings back.
        Raises StateError when there is none, or it is damaged or of another format.
        """
        environment.must_hold_state(folder)
        env = environment.opened(folder, durable=True, read_only=True)
        with contextlib.ExitStack() as undo:
            undo.callback(env.close)
            try:
                environment.check(env, folder, {"format": FORMAT_VERSION})
                store = cls(env, None, folder)
            except (lmdb.Error, msgspec.MsgspecError) as error:
                raise environment.damaged(folder, error) from error
            undo.pop_all()
        return store

    def before_sync(self, force: Callable[[], object]) -> None:
        """Call ``force`` before rows are forced to the disk: what they speak of must be there."""
        self._forced_first.append(force)

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
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
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
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
        if written != len(rows):
            raise ValueError(f"{rows[0][0]!r} is not the last of {table}")
        self._note_all(_PUT, table, rows)

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a row, or a set with all its members; False when it was not there."""
        try:
            gone = bool(self._txn.delete(key, db=self._dbs[table]))
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
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
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
        self._note(_ADD, sets, key, member)

    def add_many(self, sets: str, members: Sequence[tuple[bytes, bytes]]) -> None:
        """:meth:`add` members, each with its set's key before it, in one go."""
        if not members:
            return
        try:
            self._cursor(sets).putmulti(members)
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
        self._note_all(_ADD, sets, members)

    def discard(self, sets: str, key: bytes, member: bytes) -> bool:
        """Take a member out of the set of that key; False when it was not in."""
        try:
            gone = bool(self._txn.delete(key, member, db=self._dbs[sets]))
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
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

    def commit(self) -> None:
        """Make everything since the last commit true at once. Raises StateError: disk full."""
        self._commits += 1
        if self._journal is None:
            if self._commits % self._commit_every == 0:
                self._renew()
            return
        if not self._steps:
            return
        self._must_be_sound()
        try:
            self._journal.append(self._steps)
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error
        self._steps.clear()
        if self._journal.bytes >= _CHECKPOINT_BYTES:
            self._checkpoint()

    def sync(self) -> None:
        """Force what is committed to the disk, against power failure.

        Now and then the tables, too, so that :meth:`view` does not lag behind for long.
        """
        if self._journal is None:
            return
        self._syncs += 1
        self._force_first()
        with self._writing():
            self._journal.sync()
        # Between two commits the tables hold what is not true yet.
        due = self._syncs >= _SYNCS_PER_CHECKPOINT and not self._steps
        if self._journal.bytes and due:
            self._write_tables()

    def close(self) -> None:
        """Commit, sync and let the folder go; twice is harmless.

        After an error of writing nothing is written any more: what was committed
        before is what counts.
        """
        if not self._closed and not self._broken and self._lock is not None:
            with contextlib.suppress(StateError):
                if self._journal is not None:
                    self.commit()
                    self._checkpoint()
                else:
                    self._renew()
        self.abandon()

    def abandon(self) -> None:
        """Let the folder go as the death of the process would: nothing is written any more."""
        if self._closed:
            return
        self._closed = True
        self._cursors.clear()
        self._txn.abort()
        self._env.close()
        if self._journal is not None:
            self._journal.close()
        if self._lock is not None:
            self._lock.close()

    def _cursor(self, name: str) -> Any:
        cursor = self._cursors.get(name)
        if cursor is None:
            cursor = self._cursors[name] = self._txn.cursor(db=self._dbs[name])
        return cursor

    def _note(self, operation: int, table: str, key: bytes, value: bytes) -> None:
        if self._journal is not None:
            self._steps.append((operation, _NUMBER[table], key, value))

    def _note_all(self, operation: int, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        if self._journal is not None:
            number = _NUMBER[table]
            self._steps += [(operation, number, key, value) for key, value in rows]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._must_be_sound()
        try:
            yield
        except _DISK_ERRORS as error:
            raise self._unwritable(error) from error

    def _must_be_sound(self) -> None:
        if self._broken:
            raise StateError(f"{self._folder}: writing failed before; start the command again")

    def _unwritable(self, error: Exception) -> StateError:
        if isinstance(error, lmdb.BadValsizeError):
            raise error  # it is the caller's: no key is so long
        # Tables and journal may differ now: only what is on the disk can be believed.
        self._broken = True
        return StateError(
            f"cannot write to {self._folder}: {error}. What was fetched before is safe; "
            "free some disk and start the same command again."
        )

    def _renew(self) -> None:
        self._cursors.clear()
        try:
            with self._writing():
                self._txn.commit()
        finally:
            self._txn = self._env.begin(write=True)

    def _force_first(self) -> None:
        with self._writing():
            for force in self._forced_first:
                force()

    def _checkpoint(self) -> None:
        self._force_first()
        self._write_tables()

    def _write_tables(self) -> None:
        """Bring the tables on the disk up to date, and begin the journal anew."""
        assert self._journal is not None
        number = int(self.get_meta("checkpoint") or 0) + 1
        self.put_meta("checkpoint", number)
        self._steps.clear()
        self._syncs = 0
        self._renew()
        with self._writing():
            self._journal.begin(number, environment.tables_file(self._folder).stat().st_size)

    def _catch_up(self) -> None:
        """Do again what was committed after the last checkpoint."""
        if self._journal is None:
            return
        number = int(self.get_meta("checkpoint") or 0)
        by_number = {number: self._dbs[name] for name, number in _NUMBER.items()}
        for batch in self._journal.since(number):
            for operation, table, key, value in batch:
                if operation in (_PUT, _ADD):
                    self._txn.put(key, value, db=by_number[table])
                else:
                    self._txn.delete(key, value, db=by_number[table])
        self._checkpoint()
