"""The LMDB environment of a state folder: open, identify, lock, guard against failed writes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import lmdb
import msgspec

from focused.errors import StateError, StateFormatError
from focused.storage import journal
from focused.storage.rows import add_checksum, checksum_seed, verify_checksum

OLDEST_FORMAT = 19
"""The oldest format of states that :mod:`focused.storage.migrations` brings up to date."""
EMPTY = "(empty)"
"""A set without members, read in place of tables that do not exist."""
META, IDENTITY = "meta", b"identity"
MAX_TABLES = 126
MAX_READING_S = 60.0
"""A crawl that starts waits so long for commands that read its state."""
_POLL_S = 0.05
MAP_SIZE_BYTES = 1 << 40  # address space, not disk: the file grows with what is written


def open_environment(
    folder: Path, *, durable: bool, read_only: bool = False, lock: bool = True
) -> lmdb.Environment:
    """Open or create the environment.

    ``durable`` waits for the disk at each commit. ``lock`` False doesn't use LMDB's reader table, a
    file that is written to; use it only where nobody else writes. Raises StateError.
    """
    try:
        env = lmdb.open(
            str(folder),
            map_size=MAP_SIZE_BYTES,
            max_dbs=MAX_TABLES,
            readonly=read_only,
            lock=lock,
            sync=durable,
            metasync=durable,
            # Queues are spread over the file, so read-ahead reads the wrong pages.
            readahead=False,
        )
        if lock:
            env.reader_check()
    except (lmdb.Error, OSError) as error:
        raise damaged_error(folder, error) from error
    # Reading past the end of the file raises SIGBUS. Pages that were free at the commit are never
    # written, so the last page may lie beyond the end of an intact file.
    whole_bytes = journal.min_tables_bytes(folder / "journal")
    if whole_bytes is None:
        whole_bytes = used_bytes(env) if durable else 0
    if data_file(folder).stat().st_size < whole_bytes:
        env.close()
        reason = f"data.mdb is truncated: it had {whole_bytes} bytes"
        raise damaged_error(folder, ValueError(reason))
    return env


def open_databases(env: lmdb.Environment, txn: lmdb.Transaction) -> dict[str, Any]:
    """Open all tables that exist, by name, in ``txn``. Raises lmdb.Error."""
    with txn.cursor() as cursor:
        names = [bytes(name) for name in cursor.iternext(keys=True, values=False)]
    return {name.decode(): env.open_db(name, txn, create=False) for name in names}


def create_database(
    env: lmdb.Environment, txn: lmdb.Transaction, name: str, *, is_set: bool
) -> Any:
    """Create a table of rows, or of sets, whose members have one length. Raises lmdb.Error."""
    return env.open_db(name.encode(), txn, dupsort=is_set, dupfixed=is_set)


def write_or_check_identity(
    env: lmdb.Environment, folder: Path, identity: Mapping[str, Any]
) -> None:
    """Write ``identity`` into a new environment, or check that of an existing one."""
    if not env.stat()["entries"]:
        # In one transaction: after a kill between two, tables without identity would be refused.
        with env.begin(write=True) as txn:
            create_database(env, txn, EMPTY, is_set=True)
            meta = create_database(env, txn, META, is_set=False)
            raw = msgspec.json.encode(identity)
            txn.put(IDENTITY, add_checksum(checksum_seed(META), IDENTITY, raw), db=meta)
    check_identity(env, folder, identity)


def check_identity(env: lmdb.Environment, folder: Path, identity: Mapping[str, Any]) -> None:
    """Raise StateError when the environment has another identity; writes nothing."""
    if not env.stat()["entries"]:
        raise _no_state_error(folder)  # killed before it stored anything
    compare_identity(find_identity(env), folder, identity)


def compare_identity(
    found: Mapping[str, Any] | None, folder: Path, identity: Mapping[str, Any]
) -> None:
    """Raise StateError when ``found`` is not ``identity``.

    A key that ``found`` lacks was not stored yet when the folder was made. Another format is a
    :class:`StateFormatError`.
    """
    if found is None:
        raise damaged_error(folder, ValueError("it holds another program's tables"))
    for key, value in identity.items():
        if key == "format" and found.get(key, value) != value:
            if _is_older(found[key], value):
                raise StateFormatError(
                    f"{folder} was written by an earlier version of the crawler: its format is "
                    f"{found[key]}, not {value}. The next crawl of its topic brings it up to date."
                )
            raise StateFormatError(
                f"{folder} was written by another version of the crawler: its format is "
                f"{found.get(key)!r}, not {value!r}. The commands report, export, search, why and "
                "graph read the Parquet and WARC files beside it; to crawl, choose another "
                "output.folder, or move this one away."
            )
        if found.get(key, value) != value:
            raise StateError(
                f"{folder} holds another crawl: its {key} is {found.get(key)!r}, "
                f"not {value!r}. Choose another output.folder, or move this one away."
            )


def is_of_older_format(env: lmdb.Environment, current_format: int) -> bool:
    """Whether the state has an older format that can be migrated."""
    return _is_older((find_identity(env) or {}).get("format"), current_format)


def _is_older(found: object, current_format: int) -> bool:
    return isinstance(found, int) and OLDEST_FORMAT <= found < current_format


def find_identity(env: lmdb.Environment) -> Mapping[str, Any] | None:
    """Return the identity that a state was created with, None without one."""
    try:
        meta = env.open_db(META.encode(), create=False)
    except lmdb.NotFoundError:
        return None
    with env.begin(db=meta) as txn:
        stored = txn.get(IDENTITY)
    return None if stored is None else read_identity(stored)


def read_identity(stored: bytes) -> Mapping[str, Any]:
    """Decode the identity's row. Raises msgspec.MsgspecError."""
    # Rows had no checksum before format 10; the identity names the format.
    raw = verify_checksum(checksum_seed(META), IDENTITY, stored) or stored
    return msgspec.json.decode(raw, type=dict[str, Any])


def data_file(folder: Path) -> Path:
    """Return the path of the LMDB file."""
    return folder / "data.mdb"


def used_bytes(env: lmdb.Environment) -> int:
    """Return the size of the data file up to the last page that was ever in use."""
    return int((env.info()["last_pgno"] + 1) * env.stat()["psize"])


def extend_by_pages(file: Path, size: int) -> None:
    """Extend a file to ``size`` bytes page by page; on a full disk it may stay shorter.

    Since Linux 6.16 ext4 keeps what is written at once, as LMDB writes new pages, in one folio, and
    later writes of its pages take twice as long: https://lkml.iu.edu/2606.1/01045.html.
    """
    with contextlib.suppress(OSError), file.open("r+b", buffering=0) as opened:
        for at in range(opened.seek(0, os.SEEK_END), size, mmap.PAGESIZE):
            os.pwrite(opened.fileno(), bytes(mmap.PAGESIZE), at)


def require_state(folder: Path) -> None:
    """Raise StateError when ``folder`` holds no state."""
    if not data_file(folder).is_file():
        raise _no_state_error(folder)


def _no_state_error(folder: Path) -> StateError:
    return StateError(f"{folder}: there is no crawl's state; was the crawl ever started?")


def is_out_of_memory(error: Exception) -> bool:
    """Whether the system refused memory or address space."""
    is_refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return is_refused or isinstance(error, (MemoryError, lmdb.MemoryError))


def damaged_error(folder: Path, error: Exception) -> StateError:
    """Return the error for files that cannot be read; a lack of memory is no damage."""
    if is_out_of_memory(error):
        return StateError(
            f"{folder} cannot be read: {error}. Its files are as they were: free some memory, or "
            "raise the limit of address space (ulimit -v), and start the same command again."
        )
    return StateError(
        f"{folder} is damaged or belongs to another program: {error}. "
        f"`focused crawl --check {folder.parent}` lists the damage. Restore the folder from a "
        "copy, or move it away to start afresh; the WARC and Parquet files beside it stay readable."
    )


@contextmanager
def shared_lock(folder: Path) -> Iterator[None]:
    """Keep crawls from starting on the folder, without writing; StateError when one runs."""
    try:
        lock = (folder / "lock").open(encoding="utf-8")
    except FileNotFoundError:
        yield
        return
    with lock:
        _share_lock(lock, folder)
        yield


def exclusive_lock(folder: Path) -> TextIO:
    """Lock the folder until the process ends; StateError when it is locked.

    Commands that read the state of a stopped crawl are waited for: a report takes seconds.
    """
    lock = (folder / "lock").open("a+", encoding="utf-8")
    give_up_at = time.monotonic() + MAX_READING_S
    while not _try_lock(lock, fcntl.LOCK_EX):
        _share_lock(lock, folder)  # raises if a crawl holds it
        fcntl.flock(lock, fcntl.LOCK_UN)
        if time.monotonic() >= give_up_at:
            lock.close()
            raise StateError(f"{folder} is being read by another command. Wait for it, or end it.")
        time.sleep(_POLL_S)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _share_lock(lock: TextIO, folder: Path) -> None:
    if not _try_lock(lock, fcntl.LOCK_SH):
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StateError(
            f"{folder} is in use by another crawl (process {holder}). "
            "Stop it, or give this crawl another output.folder."
        )


def _try_lock(lock: TextIO, kind: int) -> bool:
    """Try to take the lock; whether it is taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# A partial write raises a plain lmdb.Error.
DISK_ERRORS = (lmdb.Error, OSError)


def write_error_advice(error: Exception) -> str:
    """Tell the user what to do about a failed write."""
    if is_out_of_memory(error):
        return "free some memory"
    number = (error.errno if isinstance(error, OSError) else None) or 0
    advice = {
        errno.EROFS: "make the disk writable",
        errno.EIO: "check the disk for errors",
        errno.EMFILE: "allow more open files (ulimit -n)",
        errno.ENFILE: "allow more open files (ulimit -n)",
    }
    return advice.get(number, "free some disk")


class WriteGuard:
    """Refuses further writes to a state after a failed write or a damaged row."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._error: StateError | None = None
        """Why writes are refused."""

    @property
    def holds(self) -> bool:
        """Whether all reads and writes succeeded so far."""
        return self._error is None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Context for writing to the disk. Raises StateError after any failure, now or earlier."""
        self.check()
        try:
            yield
        except DISK_ERRORS as error:
            raise self.lost(error) from error

    def check(self) -> None:
        """Raise the first error again; a caller may have attributed it to a single page."""
        if self._error is not None:
            raise StateError(str(self._error)) from self._error

    def damaged(self, reason: str) -> StateError:
        """Return the error for damaged data, and refuse writes from now on."""
        self._error = self._error or damaged_error(self._folder, ValueError(reason))
        return self._error

    def unreadable(self, table: str, error: Exception) -> StateError:
        """Return the error for a failed read, and refuse writes from now on."""
        if is_out_of_memory(error):
            self._error = self._error or damaged_error(self._folder, error)
            return self._error
        return self.damaged(f"table {table!r}: {error}")

    def lost(self, error: Exception) -> StateError:
        """Return the error for a failed write, and refuse writes from now on."""
        if isinstance(error, lmdb.BadValsizeError):
            raise error  # it is the caller's: no key is so long
        # Tables and journal may differ in memory now; the disk is consistent.
        self._error = self._error or StateError(
            f"cannot write to {self._folder}: {error}. What was fetched before is safe; "
            f"{write_error_advice(error)} and start the same command again."
        )
        return self._error
