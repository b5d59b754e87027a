"""The state of a crawl: its tables, and when what is written there is true.

Frontier and archive write into the same transaction, so that "this page is
archived" and "this link is no longer queued" become true together. A commit
survives the death of the process (``kill -9``), and the failure of power once
:meth:`StateStore.sync` has come, which the driver calls about once a second:
a commit is an append to a journal, from which the tables are brought up to
date when they are opened next (:mod:`focused.storage.journal`).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

import lmdb
import msgspec

from focused.errors import StateError
from focused.storage import environment, journal
from focused.storage.environment import WriteGuard
from focused.storage.journal import Journal
from focused.storage.tables import Tables

FORMAT_VERSION = 11
# Of journal. More: fewer writes in all, longer pauses, more of memory until then.
_CHECKPOINT_BYTES = 2_000_000
_SYNCS_PER_CHECKPOINT = 10


class StateStore:
    """A state folder's :attr:`tables`, and when what is written there is true.

    Use :meth:`open`. Not thread-safe: one owner, the crawl.
    """

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
        durable = lock is not None and commit_every == 1
        self._write_guard = WriteGuard(folder)
        self.tables = Tables(env, self._write_guard, read_only=lock is None, record_steps=durable)
        self._journal = Journal(folder / "journal") if durable else None
        self._closed = False

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
            lock = environment.exclusive_lock(folder)
        except OSError as error:
            raise StateError(
                f"{folder} cannot be written to: {error.strerror}. "
                "Choose another output.folder, or mend this one."
            ) from error
        with contextlib.ExitStack() as undo:
            undo.callback(lock.close)
            env = environment.open_environment(folder, durable=commit_every == 1)
            undo.callback(env.close)
            try:
                environment.write_or_check_identity(
                    env, folder, {"format": FORMAT_VERSION, **identity}
                )
                store = cls(env, lock, folder, commit_every)
                undo.callback(store.abandon)
                store._replay_journal()
            except (lmdb.Error, OSError, ValueError, msgspec.MsgspecError) as error:
                raise environment.damaged_error(folder, error) from error
            undo.pop_all()
        return store

    @classmethod
    def reopen(cls, folder: Path) -> StateStore:
        """Open the state in ``folder``, whose ever it is, for reports and tools.

        Raises StateError when there is none, or as :meth:`open` does.
        """
        environment.require_state(folder)
        return cls.open(folder, {})

    @classmethod
    @contextlib.contextmanager
    def reading(cls, folder: Path) -> Iterator[tuple[StateStore, bool]]:
        """The state in ``folder`` to read; nothing is written there, it may be read-only.

        True with it when a crawl runs there: then it is a :meth:`view`. What a crawl that was
        killed wrote last is brought into a temporary copy. Raises StateError as :meth:`view`.
        """
        environment.require_state(folder)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(environment.shared_lock(folder))
                running = False
            except StateError:
                running = True
            if not running and journal.has_batches(folder / "journal"):
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
        """A snapshot of the state, to read only, even while a crawl runs on it.

        Of a running crawl it is at most some ten seconds old. Of one that was
        killed it may lack the last seconds, which :meth:`open` brings back. ``lock`` False
        writes nothing, and is for where no crawl runs.
        Raises StateError when there is none, or it is damaged or of another format.
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
        """Call ``force`` before rows are forced to the disk: what they speak of must be there."""
        self._before_sync.append(force)

    def commit(self) -> None:
        """Make everything since the last commit true at once. Raises StateError: disk full."""
        self._commits += 1
        if self._journal is None:
            if self._commits % self._commit_every == 0:
                self.tables.commit_transaction()
            return
        steps = self.tables.steps
        if not steps:
            return
        with self._write_guard.writing():
            self._journal.append(steps)
        steps.clear()
        if self._journal.bytes >= _CHECKPOINT_BYTES:
            self._checkpoint()

    def sync(self) -> None:
        """Force what is committed to the disk, against power failure.

        Now and then the tables, too, so that :meth:`view` does not lag behind for long.
        """
        if self._journal is None:
            return
        self._syncs += 1
        self._run_before_sync()
        with self._write_guard.writing():
            self._journal.sync()
        # Between two commits the tables hold what is not true yet.
        due = self._syncs >= _SYNCS_PER_CHECKPOINT and not self.tables.steps
        if self._journal.bytes and due:
            self._write_tables()

    def close(self) -> None:
        """Commit, sync and let the folder go; twice is harmless.

        After an error of writing nothing is written any more: what was committed
        before is what counts.
        """
        if not self._closed and self._write_guard.holds and self._lock is not None:
            with contextlib.suppress(StateError):
                if self._journal is not None:
                    self.commit()
                    self._checkpoint()
                else:
                    self.tables.commit_transaction()
        self.abandon()

    def abandon(self) -> None:
        """Let the folder go as the death of the process would: nothing is written any more."""
        if self._closed:
            return
        self._closed = True
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
        """Bring the tables on the disk up to date, and begin the journal anew."""
        assert self._journal is not None
        number = int(self.tables.get_meta("checkpoint") or 0) + 1
        self.tables.put_meta("checkpoint", number)
        self.tables.steps.clear()
        self._syncs = 0
        self.tables.commit_transaction()
        with self._write_guard.writing():
            self._journal.begin(number, environment.data_file(self._folder).stat().st_size)

    def _replay_journal(self) -> None:
        """Do again what was committed after the last checkpoint."""
        if self._journal is None:
            return
        number = int(self.tables.get_meta("checkpoint") or 0)
        for batch in self._journal.since(number):
            self.tables.replay(batch)
        self._checkpoint()


def _copy(folder: Path, stack: contextlib.ExitStack) -> Path:
    """A temporary copy of a state's files, removed with ``stack``."""
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
