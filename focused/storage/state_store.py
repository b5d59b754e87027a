"""The state of a crawl: its tables and their transactions.

Frontier and archive write into the same transaction, so that "this page is archived" and "this link
is no longer queued" are committed together. A commit survives the death of the process, and a power
failure after :meth:`StateStore.sync`, which the driver calls about once a second. A commit is an
append to the journal, which is replayed into the tables when they are opened next.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TextIO

import lmdb
import msgspec

from focused.errors import StateError
from focused.files import make_private_folder
from focused.storage import environment, journal
from focused.storage.environment import WriteGuard
from focused.storage.journal import Journal
from focused.storage.tables import Tables

FORMAT_VERSION = 22
# Journal size. A larger one means fewer writes, longer pauses and more memory.
_CHECKPOINT_BYTES = 2_000_000
_SYNCS_PER_CHECKPOINT = 10
_COPIED_AT_ONCE = 1 << 20


class FrozenTables:
    """The tables as they were at a checkpoint, while the crawl goes on; for backups.

    LMDB's own compacting copy crashes on large sets (0.9.36), and its other one waits for the open
    transaction. So this copies the file: a read transaction keeps LMDB from reusing its pages, and
    the pages that refer to the others are read at the checkpoint.
    """

    def __init__(self, env: lmdb.Environment, path: Path) -> None:
        """Right after a checkpoint of ``env``, whose file is ``path``."""
        page_bytes = env.stat()["psize"]
        self.bytes = environment.used_bytes(env)
        self._path = path
        with path.open("rb") as file:
            self._meta_pages = file.read(2 * page_bytes)
        self._txn: lmdb.Transaction | None = env.begin()

    @property
    def is_open(self) -> bool:
        """Whether :meth:`close` was not called."""
        return self._txn is not None

    def copy(self, target: IO[bytes]) -> None:
        """Write the tables' file, from any thread. Raises OSError."""
        with self._path.open("rb") as source:
            target.write(self._meta_pages)
            source.seek(len(self._meta_pages))
            left = self.bytes - len(self._meta_pages)
            while left:
                size = min(left, _COPIED_AT_ONCE)
                # Pages that were free at the checkpoint may lie beyond the end.
                target.write(source.read(size).ljust(size, b"\0"))
                left -= size
                if not self.is_open:
                    raise OSError("the state was closed")

    def close(self) -> None:
        """Let the crawl reuse their pages."""
        if self._txn is not None:
            self._txn.abort()
            self._txn = None


_open_stores: set[StateStore] = set()
"""Keeps the stores that nobody closed. Garbage collection may run in any thread, and a write
transaction that ends in another thread than its own makes a later one a segmentation fault."""


class StateStore:
    """A state folder with its :attr:`tables`; use :meth:`open`. Single owner, not thread-safe."""

    def __init__(
        self, env: lmdb.Environment, lock: TextIO | None, folder: Path, commit_every: int = 1
    ) -> None:
        self._env = env
        self._lock = lock
        self._folder = folder
        self._commit_every = commit_every
        self._commits = 0
        self._syncs = 0
        self._before_sync: list[Callable[[], object]] = []
        self._on_commit: Callable[[bytes], object] | None = None
        self._frozen: list[FrozenTables] = []
        durable = lock is not None and commit_every == 1
        self._write_guard = WriteGuard(folder)
        self.tables = Tables(env, self._write_guard, read_only=lock is None, record_steps=durable)
        self._journal = Journal(folder / "journal") if durable else None
        self._used_bytes = environment.used_bytes(env)
        self._closed = False
        if lock is not None:
            _open_stores.add(self)

    @classmethod
    def open(
        cls,
        folder: Path,
        identity: Mapping[str, str],
        *,
        commit_every: int = 1,
        migrates: bool = True,
    ) -> StateStore:
        """Open or create the state in ``folder``.

        ``identity`` (topic, policy) is stored at creation and must be equal later. ``commit_every``
        above 1 persists every n-th commit and never waits for the disk: for state that nobody needs
        after a crash. With ``migrates`` False an older format stays: for who repeats commits.

        Raises StateError when another process holds the folder, when the files are damaged or of
        another program, or when they belong to another crawl.
        """
        try:
            make_private_folder(folder.parent)
            make_private_folder(folder)
            lock = environment.exclusive_lock(folder)
        except OSError as error:
            raise StateError(
                f"{folder} cannot be written to: {error.strerror}. "
                "Choose another output.folder, or make this one writable."
            ) from error
        with contextlib.ExitStack() as undo:
            undo.callback(lock.close)
            env = environment.open_environment(folder, durable=commit_every == 1)
            undo.callback(env.close)
            try:
                is_older = environment.is_of_older_format(env, FORMAT_VERSION)
                if is_older and migrates:
                    from focused.storage.migrations import migrate  # rarely needed

                    environment.check_identity(env, folder, identity)  # another crawl's stays
                    migrate(env, folder, FORMAT_VERSION)
                expected = {} if is_older and not migrates else {"format": FORMAT_VERSION}
                environment.write_or_check_identity(env, folder, {**expected, **identity})
                store = cls(env, lock, folder, commit_every)
                undo.callback(store.abandon)
                store._replay_journal()
            except (lmdb.Error, OSError, ValueError, msgspec.MsgspecError) as error:
                raise environment.damaged_error(folder, error) from error
            undo.pop_all()
        return store

    @classmethod
    def reopen(cls, folder: Path, *, migrates: bool = True) -> StateStore:
        """Open an existing state of any identity. Raises StateError like :meth:`open`."""
        environment.require_state(folder)
        return cls.open(folder, {}, migrates=migrates)

    @classmethod
    @contextlib.contextmanager
    def open_for_reading(cls, folder: Path) -> Iterator[tuple[StateStore, bool]]:
        """Open the state to read, without writing to the folder.

        Yields the store and whether a crawl runs on it; then it is a :meth:`view`. The last commits
        of a killed crawl are replayed, and older formats migrated, in a temporary copy. Raises
        StateError like :meth:`view`.
        """
        environment.require_state(folder)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(environment.shared_lock(folder))
                running = False
            except StateError:
                running = True
            is_stale = journal.has_batches(folder / "journal") or _is_of_older_format(folder)
            if not running and is_stale:
                copy = _copy(folder, stack)
                try:
                    store = cls.reopen(copy)
                except StateError as error:
                    raise StateError(
                        str(error).replace(str(copy.parent), str(folder.parent))
                    ) from error
                stack.callback(store.abandon)
            else:
                store = cls.view(folder, lock=running)
                stack.callback(store.close)
            yield store, running

    @classmethod
    def view(cls, folder: Path, *, lock: bool = True) -> StateStore:
        """Open a read-only snapshot, even while a crawl runs on it.

        It is at most about ten seconds old. After a kill it may lack the last seconds, which
        :meth:`open` restores. ``lock`` False writes nothing, and is for folders without a running
        crawl. Raises StateError when there is no state, or it is damaged or of another format.
        """
        environment.require_state(folder)
        env = environment.open_environment(folder, durable=True, read_only=True, lock=lock)
        with contextlib.ExitStack() as undo:
            undo.callback(env.close)
            try:
                environment.check_identity(env, folder, {"format": FORMAT_VERSION})
                store = cls(env, None, folder)
            except (lmdb.Error, msgspec.MsgspecError) as error:
                raise environment.damaged_error(folder, error) from error
            undo.pop_all()
        return store

    def before_sync(self, force: Callable[[], object]) -> None:
        """Call ``force`` before rows are flushed, to flush the files that they refer to."""
        self._before_sync.append(force)

    def on_commit(self, listener: Callable[[bytes], object]) -> None:
        """Call ``listener`` with each batch that is committed, as the journal encodes it."""
        assert self._journal is not None, "only durable states have a journal"
        self._on_commit = listener

    def freeze(self) -> FrozenTables:
        """Write a checkpoint and return the tables as of it; not within a transaction.

        Raises StateError.
        """
        assert not self.tables.steps, "there are uncommitted changes"
        self._checkpoint()
        self._frozen = [each for each in self._frozen if each.is_open]
        self._frozen.append(FrozenTables(self._env, environment.data_file(self._folder)))
        return self._frozen[-1]

    def replay(self, batches: Iterable[bytes]) -> None:
        """Repeat commits of another copy of this state, then write a checkpoint.

        Raises StateError when they are damaged or of another program.
        """
        with self._write_guard.writing():
            try:
                for batch in batches:
                    self.tables.replay(journal.decode_batch(batch))
            except (
                msgspec.MsgspecError,
                lmdb.BadValsizeError,
                ValueError,
                IndexError,
            ) as error:
                raise self._write_guard.damaged(f"its journal: {error}") from error
        self._checkpoint()

    def commit(self) -> None:
        """Commit everything since the last commit. Raises StateError, as on a full disk."""
        self._commits += 1
        if self._journal is None:
            if self._commits % self._commit_every == 0:
                self.tables.commit_transaction()
            return
        steps = self.tables.steps
        if not steps:
            return
        with self._write_guard.writing():
            batch = self._journal.append(steps)
        steps.clear()
        if self._on_commit is not None:
            self._on_commit(batch)
        if self._journal.bytes >= _CHECKPOINT_BYTES:
            self._checkpoint()

    def sync(self) -> None:
        """Flush commits to the disk, and checkpoint from time to time for :meth:`view`."""
        if self._journal is None:
            return
        self._syncs += 1
        self._run_before_sync()
        with self._write_guard.writing():
            self._journal.sync()
        # Between two commits the tables hold uncommitted changes.
        due = self._syncs >= _SYNCS_PER_CHECKPOINT and not self.tables.steps
        if self._journal.bytes and due:
            self._write_tables()

    def close(self) -> None:
        """Commit, sync and close; calling it twice is harmless.

        After a write error nothing more is written.
        """
        if not self._closed and self._write_guard.holds and self._lock is not None:
            with contextlib.suppress(StateError):
                if self._journal is not None:
                    self.commit()
                    self._checkpoint()
                    with contextlib.suppress(OSError):
                        os.truncate(environment.data_file(self._folder), self._used_bytes)
                else:
                    self.tables.commit_transaction()
        self.abandon()

    def abandon(self) -> None:
        """Close without writing, as if the process had died."""
        if self._closed:
            return
        self._closed = True
        _open_stores.discard(self)
        for frozen in self._frozen:
            frozen.close()
        self.tables.abort()
        self._env.close()
        if self._journal is not None:
            self._journal.close()
        if self._lock is not None:
            self._lock.close()

    def _run_before_sync(self) -> None:
        with self._write_guard.writing():
            for force in self._before_sync:
                force()

    def _checkpoint(self) -> None:
        self._run_before_sync()
        self._write_tables()

    def _write_tables(self) -> None:
        """Write a checkpoint and start the journal again."""
        assert self._journal is not None
        number = int(self.tables.get_meta("checkpoint") or 0) + 1
        self.tables.put_meta("checkpoint", number)
        self.tables.steps.clear()
        self._syncs = 0
        self.tables.commit_transaction()
        file, used = environment.data_file(self._folder), environment.used_bytes(self._env)
        with self._write_guard.writing():
            self._journal.begin(number, min(file.stat().st_size, used))
        # After the commit: the next ones overwrite the pages before they reach the disk.
        environment.extend_by_pages(file, used + 2 * (used - self._used_bytes))
        self._used_bytes = used

    def _replay_journal(self) -> None:
        """Replay the commits after the last checkpoint."""
        if self._journal is None:
            return
        number = int(self.tables.get_meta("checkpoint") or 0)
        for batch in self._journal.since(number):
            self.tables.replay(batch)
        self._checkpoint()


def _is_of_older_format(folder: Path) -> bool:
    with environment.open_environment(folder, durable=True, read_only=True, lock=False) as env:
        return environment.is_of_older_format(env, FORMAT_VERSION)


def _copy(folder: Path, stack: contextlib.ExitStack) -> Path:
    """Copy a state's files into a temporary folder, removed with ``stack``."""
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="focused-")), folder.name)
    try:
        copy.mkdir()
        for name in (environment.data_file(folder).name, "journal"):
            shutil.copyfile(folder / name, copy / name)
    except OSError as error:
        raise StateError(
            f"{folder} cannot be copied to {copy} to be read: {error.strerror}; "
            "TMPDIR names another place for temporary files"
        ) from error
    return copy
