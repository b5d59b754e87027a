"""Files: atomic writes, and access to regular files and private folders only.

After a crash a file that was written atomically has its old content or its new content: new content
goes to a temporary file beside the target, which then replaces the target.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path


@contextmanager
def atomic_write_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; it replaces ``path`` when the block succeeds, else it is removed.

    Raises OSError.
    """
    _remove_stale_parts(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            # The rename may reach the disk before the content.
            os.fsync(written.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _remove_stale_parts(path: Path) -> None:
    """Remove temporary files of ``path`` left by killed processes."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        pid = part.name.split(".")[-2]
        if pid.isdecimal() and not _is_process_alive(int(pid)):
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # the process belongs to another user
    return True


def write_atomically(path: Path, content: bytes) -> Path:
    """Write ``content`` to ``path`` atomically; returns ``path``. Raises OSError."""
    with atomic_write_path(path) as part:
        part.write_bytes(content)
    return path


def append_durably(descriptor: int, content: bytes) -> None:
    """Append ``content`` and fsync, or leave the file unchanged. Raises OSError."""
    before = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
        raise


def write_json_atomically(path: Path, value: object) -> Path:
    """Write ``value`` to ``path`` as indented JSON; returns ``path``. Raises OSError."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return write_atomically(path, f"{text}\n".encode())


def fsync_folder(folder: Path) -> None:
    """fsync a folder, so that its new files survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Create a folder, unless it exists, that other users cannot read. Raises OSError.

    What a crawl stores can be pages behind a login. Missing parents get the usual rights, and an
    existing folder keeps its own.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def lock_folder(folder: Path, busy: Exception) -> Iterator[None]:
    """Lock a folder while the block runs; raises ``busy`` if it is locked, OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(descriptor)


def open_regular_file(path: Path) -> BufferedReader:
    """Open a file to read its bytes. Raises OSError for a FIFO, which would wait for a writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "this is no regular file", str(path))
    return open(file, "rb")
