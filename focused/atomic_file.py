"""Files that are there whole or not at all.

What is written goes to a file beside the target, which then takes the target's
name in one step: a reader, also one after a crash, finds the old file or the new one.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write_path(path: Path) -> Iterator[Path]:
    """Give the path to write to; what is there becomes ``path`` when the block ends in order.

    Otherwise it is removed, and ``path`` is what it was. Raises OSError.
    """
    _remove_stale_parts(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            # A rename may reach the disk before the content does.
            os.fsync(written.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _remove_stale_parts(path: Path) -> None:
    """Remove what processes that were killed had written of ``path``."""
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
        pass  # another user's
    return True


def write_atomically(path: Path, content: bytes) -> Path:
    """Write ``path`` anew; returns it. Raises OSError."""
    with atomic_write_path(path) as part:
        part.write_bytes(content)
    return path


def append_durably(descriptor: int, content: bytes) -> None:
    """Append ``content`` and force it to the disk, or leave the file as it was. Raises OSError."""
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
    """Write ``path`` anew as JSON that people can read; returns it. Raises OSError."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return write_atomically(path, f"{text}\n".encode())


def fsync_folder(folder: Path) -> None:
    """Force the folder's entries to the disk: a new file is there after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
