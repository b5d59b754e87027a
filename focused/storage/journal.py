"""A redo journal: the commits since the last checkpoint of the tables.

LMDB is crash-safe only when each commit waits for the disk, and each commit rewrites a page of
every tree that it touched. So a commit is one append to this file, and the tables follow every few
megabytes: a checkpoint (Gray and Reuter 1993, "Transaction processing", chapter 9).

- After the death of the process every commit is in the file, because the system has its bytes.
- After a power failure every commit before the last :meth:`Journal.sync` is. Later ones are
  ignored, because the files that they refer to may be incomplete.

A batch is valid if its checksum is right, and only for the checkpoint that it follows.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

_MAGIC = b"focused journal 3\n"
_HEAD = struct.Struct(">18s36sQQ")
"""Magic, boot id, number of the checkpoint, size of the tables' file."""
_BATCH = struct.Struct(">II")
"""Length, checksum; length 0 marks that everything before is synced."""
_HEAD_CHECKSUM = struct.Struct(">I")
"""The header's own checksum, so that zeros after a power failure are invalid."""
_HEAD_BYTES, _BATCH_BYTES = _HEAD.size + _HEAD_CHECKSUM.size, _BATCH.size + _HEAD_CHECKSUM.size
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

JournalEntry = tuple[int, bytes, bytes]
"""Operation, key, value."""
Batch = Mapping[str, Sequence[JournalEntry]]
"""The writes of a commit by table. Those of a table are in order; tables are independent."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, list[JournalEntry]]).decode


class Journal:
    """The journal of one state folder; single owner."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises OSError."""
        # Unbuffered: buffered data would be lost with the process.
        self._path = path
        self._is_new = not path.exists()
        self._file: BinaryIO = path.open("w+b" if self._is_new else "r+b", buffering=0)
        self._marked = True
        self.bytes = 0

    def since(self, checkpoint: int) -> Sequence[Batch]:
        """Return the batches committed after ``checkpoint``, oldest first.

        Raises ValueError when the file is damaged, missing or of another state. A truncated last
        batch is dropped: the process died while it wrote it.
        """
        if self._is_new and checkpoint:
            self._path.unlink()  # an empty one would be believed the next time
            raise ValueError("its journal is missing")
        self._file.seek(0)
        return decode_batches(self._file.read(), checkpoint)

    def begin(self, checkpoint: int, min_tables_bytes: int) -> None:
        """Start an empty journal after ``checkpoint``, with tables of that size. Raises OSError."""
        self._file.seek(0)
        self._file.truncate()
        self._write(
            _with_head_checksum(_HEAD.pack(_MAGIC, _boot_id(), checkpoint, min_tables_bytes))
        )
        os.fsync(self._file.fileno())
        self.bytes = 0
        self._marked = True

    def append(self, batch: Batch) -> bytes:
        """Commit a batch and return it encoded.

        Raises OSError, and then leaves the file as it was.
        """
        body = _encode(batch)
        self._write(_with_head_checksum(_BATCH.pack(len(body), zlib.crc32(body))) + body)
        self.bytes += len(body)
        self._marked = False
        return body

    def sync(self) -> None:
        """Flush all batches to the disk. Raises OSError."""
        if self._marked:
            return
        self._write(_with_head_checksum(_BATCH.pack(0, 0)))
        os.fsync(self._file.fileno())
        self._marked = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        left = data
        try:
            # On a full disk a write may be short before the next one fails.
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            with contextlib.suppress(OSError):
                start = self._file.tell() - len(data) + len(left)
                self._file.seek(start)
                self._file.truncate()
            raise


def decode_batches(raw: bytes, checkpoint: int) -> Sequence[Batch]:
    """Decode a journal's batches; see :meth:`Journal.since`. Raises ValueError."""
    # Interrupted in begin(): the tables have everything.
    if len(raw) < _HEAD_BYTES or not raw.strip(b"\0"):
        return ()
    magic, boot, follows, _ = _HEAD.unpack_from(raw)
    if not _has_head_checksum(raw[:_HEAD_BYTES]) or follows > checkpoint:
        raise ValueError("its journal is damaged, or another state's")
    # The tables have everything; the journal of a migrated state may be in its former format.
    if follows < checkpoint:
        return ()
    if magic != _MAGIC:
        raise ValueError("its journal is damaged, or another state's")
    batches: list[Batch] = []
    trusted = 0
    at = _HEAD_BYTES
    while at + _BATCH_BYTES <= len(raw):
        length, checksum = _BATCH.unpack_from(raw, at)
        is_sealed = _has_head_checksum(raw[at : at + _BATCH_BYTES])
        at += _BATCH_BYTES
        body = raw[at : at + length]
        is_short = is_sealed and len(body) < length
        if is_short or not is_sealed or zlib.crc32(body) != checksum:
            # After a power failure any part of what was not synced may be missing.
            if not is_short and boot == _boot_id():
                raise ValueError("its journal is damaged")
            break
        at += length
        if length:
            batches.append(_decode(body))
        else:
            trusted = len(batches)
    return batches if boot == _boot_id() else batches[:trusted]


def decode_batch(body: bytes) -> Batch:
    """Decode a batch that :meth:`Journal.append` returned. Raises msgspec.MsgspecError."""
    return _decode(body)


def min_tables_bytes(path: Path) -> int | None:
    """Return the size that the tables' file must have at least, or None."""
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
    """Whether a journal holds commits that its tables lack."""
    try:
        return path.stat().st_size > _HEAD_BYTES
    except OSError:
        return False


def _with_head_checksum(head: bytes) -> bytes:
    return head + _HEAD_CHECKSUM.pack(zlib.crc32(head))


def _has_head_checksum(head: bytes) -> bool:
    return _with_head_checksum(head[: -_HEAD_CHECKSUM.size]) == head


def _boot_id() -> bytes:
    """36 bytes that change at each boot; zeros where unknown."""
    try:
        return _BOOT_ID.read_bytes().strip()[:36].ljust(36, b"\0")
    except OSError:
        return bytes(36)
