"""A replay journal: what was committed since the tables were last forced to the disk.

The tables (LMDB) are crash-safe by themselves only when each commit waits for
the disk, and a commit there rewrites a page of every tree it touched. So a
commit of the crawl is one append here, and the tables follow every few
megabytes (a checkpoint; Gray and Reuter 1993, "Transaction processing",
chapter 9). What outlives what:

- the process dies: every commit is in the file, for the system has its bytes;
- the power fails: every commit before the last :meth:`Journal.sync` is. Later
  ones are not believed, be they there: the files that they speak of may not be.

A batch counts if its checksum holds, and only for the checkpoint it follows.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

_MAGIC = b"focused journal 2\n"
_HEAD = struct.Struct(">18s36sQQ")
"""Magic, the machine's boot, the number of the checkpoint it follows, bytes of its tables."""
_BATCH = struct.Struct(">II")
"""Length in bytes, checksum; a length of 0 marks that all before is on the disk."""
_HEAD_CHECKSUM = struct.Struct(">I")
"""A head's own checksum, behind it: zeros, which a failure of power may leave, have another."""
_HEAD_BYTES, _BATCH_BYTES = _HEAD.size + _HEAD_CHECKSUM.size, _BATCH.size + _HEAD_CHECKSUM.size
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

JournalEntry = tuple[int, int, bytes, bytes]
"""An operation's number, a table's number, key and value."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[JournalEntry]).decode


class Journal:
    """The journal of one state folder; one owner."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises OSError."""
        # Written at once: what is buffered here would die with the process.
        self._path = path
        self._is_new = not path.exists()
        self._file: BinaryIO = path.open("w+b" if self._is_new else "r+b", buffering=0)
        self._marked = True
        self.bytes = 0

    def since(self, checkpoint: int) -> Sequence[Sequence[JournalEntry]]:
        """The batches that were committed after ``checkpoint``, oldest first.

        Raises ValueError when the file is damaged, of another state, or gone. A last batch
        that is cut short is none of it: the process died while it wrote.
        """
        if self._is_new and checkpoint:
            self._path.unlink()  # an empty one would be believed the next time
            raise ValueError("its journal is gone")
        self._file.seek(0)
        return decode_batches(self._file.read(), checkpoint)

    def begin(self, checkpoint: int, min_tables_bytes: int) -> None:
        """Forget all batches: the tables, so long now, hold them as of ``checkpoint``.

        Raises OSError.
        """
        self._file.seek(0)
        self._file.truncate()
        self._write(
            _with_head_checksum(_HEAD.pack(_MAGIC, _boot_id(), checkpoint, min_tables_bytes))
        )
        os.fsync(self._file.fileno())
        self.bytes = 0
        self._marked = True

    def append(self, steps: Sequence[JournalEntry]) -> None:
        """Commit a batch. Raises OSError; then it is as if it was never tried."""
        body = _encode(steps)
        self._write(_with_head_checksum(_BATCH.pack(len(body), zlib.crc32(body))) + body)
        self.bytes += len(body)
        self._marked = False

    def sync(self) -> None:
        """Force all batches to the disk, against power failure. Raises OSError."""
        if self._marked:
            return
        self._write(_with_head_checksum(_BATCH.pack(0, 0)))
        os.fsync(self._file.fileno())
        self._marked = True

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        left = data
        try:
            # A full disk takes what it can: a write may be short before one fails.
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            with contextlib.suppress(OSError):
                start = self._file.tell() - len(data) + len(left)
                self._file.seek(start)
                self._file.truncate()
            raise


def decode_batches(raw: bytes, checkpoint: int) -> Sequence[Sequence[JournalEntry]]:
    """The batches of a journal's content, as :meth:`Journal.since` tells. Raises ValueError."""
    # Begun anew as the process died, or the power: the tables have all there was.
    if len(raw) < _HEAD_BYTES or not raw.strip(b"\0"):
        return ()
    magic, boot, follows, _ = _HEAD.unpack_from(raw)
    if magic != _MAGIC or not _has_head_checksum(raw[:_HEAD_BYTES]) or follows > checkpoint:
        raise ValueError("its journal is damaged, or another state's")
    if follows < checkpoint:
        return ()
    batches: list[Sequence[JournalEntry]] = []
    trusted = 0
    at = _HEAD_BYTES
    while at + _BATCH_BYTES <= len(raw):
        length, checksum = _BATCH.unpack_from(raw, at)
        is_sealed = _has_head_checksum(raw[at : at + _BATCH_BYTES])
        at += _BATCH_BYTES
        body = raw[at : at + length]
        is_short = is_sealed and len(body) < length
        if is_short or not is_sealed or zlib.crc32(body) != checksum:
            # Where the power failed any part of what was not synced may be missing.
            if not is_short and boot == _boot_id():
                raise ValueError("its journal is damaged")
            break
        at += length
        if length:
            batches.append(_decode(body))
        else:
            trusted = len(batches)
    return batches if boot == _boot_id() else batches[:trusted]


def min_tables_bytes(path: Path) -> int | None:
    """How long the tables beside a journal must be: they never shrink. None: nothing tells."""
    try:
        with path.open("rb") as file:
            raw = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if len(raw) < _HEAD_BYTES or not _has_head_checksum(raw):
        return None
    magic, _, _, at_least = _HEAD.unpack_from(raw)
    return int(at_least) if magic == _MAGIC else None


def has_batches(path: Path) -> bool:
    """Whether a journal holds what its tables may lack: its process was killed, or runs."""
    try:
        return path.stat().st_size > _HEAD_BYTES
    except OSError:
        return False


def _with_head_checksum(head: bytes) -> bytes:
    return head + _HEAD_CHECKSUM.pack(zlib.crc32(head))


def _has_head_checksum(head: bytes) -> bool:
    return _with_head_checksum(head[: -_HEAD_CHECKSUM.size]) == head


def _boot_id() -> bytes:
    """36 bytes that change when the machine starts anew; zeros where nothing tells."""
    try:
        return _BOOT_ID.read_bytes().strip()[:36].ljust(36, b"\0")
    except OSError:
        return bytes(36)
