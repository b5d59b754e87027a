"""The durable rows of a crawl: one LMDB environment, one transaction at a time.

Frontier and archive write into the same transaction, so that "this page is
archived" and "this link is no longer queued" become true together. A commit
survives the death of the process (``kill -9``); surviving a power failure
takes :meth:`StateStore.sync`, which the driver calls about once a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import lmdb
import msgspec

from focused.errors import StateError

FORMAT_VERSION = 3
_MAP_SIZE_BYTES = 1 << 40  # address space, not disk: the file grows with what is written
_TABLES = (
    "meta", "seen", "queue", "host_ids", "hosts", "robots", "pages", "page_links", "content",
    "lessons", "learned",
)  # fmt: skip


class StateStore:
    """Named tables of byte keys and values, in key order, with group commit.

    Use :meth:`open`. Not thread-safe: one owner, the crawl.
    """

    def __init__(
        self, env: lmdb.Environment, lock: TextIO, folder: Path, commit_every: int = 1
    ) -> None:
        self._env = env
        self._lock = lock
        self._folder = folder
        self._tables = {name: env.open_db(name.encode()) for name in _TABLES}
        self._txn = env.begin(write=True)
        self._commit_every = commit_every
        self._commits = 0

    @classmethod
    def open(
        cls, folder: Path, identity: Mapping[str, str], *, commit_every: int = 1
    ) -> StateStore:
        """Open or create the state in ``folder``.

        ``identity`` says whose state it is (topic, policy); it is written at
        creation and must be equal ever after. ``commit_every`` above 1 makes
        only each so manieth commit true, and those between with it: for state
        that nobody needs after a crash.

        Raises StateError when another process holds the folder, when the
        files are damaged or of another program, or belong to another crawl.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = _take_lock(folder)
        except OSError as error:
            raise StateError(
                f"{folder} cannot be written to: {error.strerror}. "
                "Choose another output.folder, or mend this one."
            ) from error
        try:
            store = cls(_open_environment(folder), lock, folder, commit_every)
        except BaseException:
            lock.close()
            raise
        try:
            store._check_identity(identity)
        except StateError:
            store.close()
            raise
        return store

    @classmethod
    def reopen(cls, folder: Path) -> StateStore:
        """Open the state in ``folder``, whose ever it is, for reports and tools.

        Raises StateError when there is none, or as :meth:`open` does.
        """
        if not (folder / "data.mdb").is_file():
            raise StateError(f"{folder}: there is no crawl's state; was the crawl ever started?")
        return cls.open(folder, {})

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value, or None."""
        value: bytes | None = self._txn.get(key, db=self._tables[table])
        return value

    def get_many(self, table: str, keys: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows that are there, in one go: a quarter of the time of one by one."""
        cursor = self._txn.cursor(db=self._tables[table])
        rows: Sequence[tuple[bytes, bytes]] = cursor.getmulti(keys)
        return rows

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Write or replace a row. Raises StateError when the disk is full."""
        try:
            self._txn.put(key, value, db=self._tables[table])
        except (lmdb.DiskError, lmdb.MapFullError, OSError) as error:
            raise self._unwritable(error) from error

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a row; False when it was not there."""
        return bool(self._txn.delete(key, db=self._tables[table]))

    def count(self, table: str) -> int:
        """Return the number of rows."""
        return int(self._txn.stat(self._tables[table])["entries"])

    def first(self, table: str, prefix: bytes) -> tuple[bytes, bytes, bytes | None] | None:
        """Return the row with the smallest key under ``prefix``, and the next such key if any."""
        cursor = self._txn.cursor(db=self._tables[table])
        if not cursor.set_range(prefix):
            return None
        key, value = cursor.item()
        if not key.startswith(prefix):
            return None
        following = cursor.key() if cursor.next() else b""
        return key, value, following if following.startswith(prefix) else None

    def scan(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows under ``prefix`` in key order; do not write meanwhile."""
        with self._txn.cursor(db=self._tables[table]) as cursor:
            found = cursor.set_range(prefix) if prefix else cursor.first()
            while found and cursor.key().startswith(prefix):
                yield cursor.key(), cursor.value()
                found = cursor.next()

    def get_meta(self, key: str) -> Any:
        """Return a JSON value of the crawl's own bookkeeping, or None."""
        raw = self.get("meta", key.encode())
        return None if raw is None else msgspec.json.decode(raw)

    def put_meta(self, key: str, value: Any) -> None:
        """Write a JSON value, or a dataclass of such, of the crawl's own bookkeeping."""
        self.put("meta", key.encode(), msgspec.json.encode(value))

    def commit(self) -> None:
        """Make everything since the last commit true at once."""
        self._commits += 1
        if self._commits % self._commit_every:
            return
        try:
            self._txn.commit()
        except (lmdb.DiskError, lmdb.MapFullError, OSError) as error:
            raise self._unwritable(error) from error
        finally:
            self._txn = self._env.begin(write=True)

    def sync(self) -> None:
        """Force what is committed to the disk, against power failure."""
        self._env.sync(True)

    def close(self) -> None:
        """Commit, sync and let the folder go; twice is harmless."""
        if self._lock.closed:
            return
        with contextlib.suppress(lmdb.Error):
            self._txn.commit()
            self._env.sync(True)
        self._env.close()
        self._lock.close()

    def _check_identity(self, identity: Mapping[str, str]) -> None:
        wanted = {"format": FORMAT_VERSION, **identity}
        found = self.get_meta("identity")
        if found is None:
            self.put_meta("identity", wanted)
            self.commit()
            return
        for key, value in wanted.items():
            if found.get(key) != value:
                raise StateError(
                    f"{self._folder} holds another crawl: its {key} is {found.get(key)!r}, "
                    f"not {value!r}. Choose another output.folder, or move this one away."
                )

    def _unwritable(self, error: Exception) -> StateError:
        return StateError(
            f"cannot write to {self._folder}: {error}. What was fetched before is safe; "
            "free some disk and start the same command again."
        )


def _take_lock(folder: Path) -> TextIO:
    lock = (folder / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StateError(
            f"{folder} is in use by another crawl (process {holder}). "
            "Stop it, or give this crawl another output.folder."
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _open_environment(folder: Path) -> lmdb.Environment:
    try:
        return lmdb.open(
            str(folder),
            map_size=_MAP_SIZE_BYTES,
            max_dbs=len(_TABLES),
            # A dead process loses nothing without fsync; see the module docstring.
            sync=False,
            metasync=False,
            lock=False,  # ours is stricter: one process at all
        )
    except lmdb.Error as error:
        raise StateError(
            f"{folder} is damaged or not ours: {error}. Move it away to start afresh; "
            "the WARC and Parquet files beside it stay readable."
        ) from error
