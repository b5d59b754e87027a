"""Replicate the state of a partition to shared storage, and restore it there.

The owner of a partition stores a snapshot of its tables and the commits since then, in segments. A
successor restores both, so it continues at the last flush of the previous owner.

Each owner writes below the fencing token of its lease, ``state/partition-0007/0000000012/``, and a
successor first marks all lower tokens as closed, then reads. An owner checks after each write that
it is not closed, before it relies on the write: so what it relies on, its successor has read. What
an owner writes elsewhere, or deletes, follows from a state that passed this check.
"""

from __future__ import annotations

import logging
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import lmdb
import msgspec
import pyarrow as pa
import xxhash
from msgspec.structs import replace

from focused.cluster.archive_parts import (
    WarcPart,
    WarcParts,
    local_error,
    partition_name,
    remove_local_files,
    temporary_folder,
    unfinished_parts,
    upload_tables,
)
from focused.cluster.storage import SharedStorage
from focused.errors import StorageError
from focused.storage.state_store import FrozenTables, StateStore

logger = logging.getLogger(__name__)

MAX_PENDING_BYTES = 64_000_000
"""Commits kept in memory while uploads fail; then a snapshot replaces them."""
_MIN_SNAPSHOT_BYTES = 4_000_000
_MAX_SEGMENTS = 5_000
"""A snapshot is due when its segments are larger than it, or as many as this."""
_REPLAYED_AT_ONCE = 16_000_000
_CHUNK_BYTES = 1 << 20
_FORMAT = 1
_MANIFEST, _CLAIM, _CLOSED = "manifest.json", "claim", "closed-"
_MARK = b"\n"
"""The content of objects whose existence says it all."""
_SEGMENT, _SNAPSHOT = "segment-", "snapshot-"
_MAGIC = b"focused segment 1\n"
_HEAD = struct.Struct(">18sQQQQ")
"""Magic, number, bytes of the commits, of them compressed, checksum of those."""
_LENGTH = struct.Struct(">I")
_CHECKSUM = struct.Struct(">Q")


class FencedError(StorageError):
    """Another worker took the partition; this one must stop crawling it."""


class _TruncatedError(ValueError):
    """A segment is shorter than it says."""


class Manifest(msgspec.Struct, frozen=True):
    """What a successor reads: a snapshot, and the segments from ``first_segment``.

    Segments below ``promised`` were durable when the manifest was written.
    """

    format: int
    snapshot: str
    bytes: int
    checksum: int
    first_segment: int
    promised: int


@dataclass(frozen=True, slots=True)
class PreparedFlush:
    """What :meth:`Replica.upload` uploads: commits, and the tables for a snapshot if one is due.

    WARC files below ``warc_number`` are complete.
    """

    batches: Sequence[bytes]
    warc_number: int
    tables: FrozenTables | None


class Replica:
    """The copy of one partition in shared storage, under the lease with ``token``.

    It collects the commits of ``store``; ``folder`` holds the WARC files. Use it from the store's
    thread; only :meth:`upload` may run in another one. Methods raise StorageError, and after that
    may be called again: nothing is lost. They raise FencedError when the partition was taken over.
    """

    def __init__(
        self,
        storage: SharedStorage,
        partition: int,
        token: int,
        store: StateStore,
        folder: Path,
        *,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        min_snapshot_bytes: int = _MIN_SNAPSHOT_BYTES,
    ) -> None:
        self._storage = storage
        self._partition = partition
        self._token = token
        self._store = store
        self._folder = folder
        self._max_pending_bytes = max_pending_bytes
        self._min_snapshot_bytes = min_snapshot_bytes
        self._home = _token_folder(partition, token)
        number, _ = store.tables.get_meta("warc") or (1, 0)
        self._warc_number = int(number)
        self._warc = WarcParts(storage, partition, token, folder, self._warc_number)
        self._batches: list[bytes] = []
        """Commits since the last :meth:`prepare`."""
        self._pending_bytes = 0
        self._overflowed = False
        """Whether commits since the last :meth:`prepare` were dropped."""
        self._unsent: list[bytes] = []
        """Commits of earlier calls of :meth:`prepare` that are not uploaded."""
        self._has_gap = False
        """Whether commits were dropped that no snapshot in storage has."""
        self._segment = 1
        """The number of the next segment."""
        self._snapshots = 0
        self._manifest: Manifest | None = None
        self._segment_bytes = 0
        store.on_commit(self._collect)

    def begin(self) -> None:
        """Write the first snapshot, and clean up what earlier owners left.

        Commits what was written to the store so far.
        """
        _claim(self._storage, self._partition, self._token)
        self._store.commit()
        parts = _taken_over(self._store)
        tables = self._store.freeze()
        self._batches, self._pending_bytes, self._overflowed = [], 0, False
        try:
            self._warc.upload_pieces()
            self._write_snapshot(tables)
        finally:
            tables.close()
        self._delete_earlier_owners()
        self._warc.compose(parts)

    def flush(self) -> None:
        """Make everything durable that was committed, WARC records included.

        Call it after :meth:`StateStore.sync`, when nothing is uncommitted.
        """
        self.upload(self.prepare())

    def prepare(self) -> PreparedFlush:
        """Collect what is to be uploaded; each one is passed to :meth:`upload` before the next."""
        if self._overflowed:
            self._has_gap, self._overflowed = True, False
            self._segment += 1  # this one may be stored although its upload failed
        if self._has_gap:
            self._unsent = []
        else:
            self._unsent += self._batches
        self._batches = []
        self._pending_bytes = sum(map(len, self._unsent))
        is_committed = self._store.is_open and not self._store.tables.steps
        if is_committed:
            self._warc_number = int((self._store.tables.get_meta("warc") or (1, 0))[0])
        tables = self._store.freeze() if is_committed and self._is_snapshot_due() else None
        if self._has_gap and tables is None:
            raise StorageError(
                f"partition {self._partition}: commits were dropped while uploads failed, and a "
                "snapshot cannot be made of uncommitted changes; commit, then flush again"
            )
        return PreparedFlush(tuple(self._unsent), self._warc_number, tables)

    def upload(self, prepared: PreparedFlush) -> None:
        """Upload; when it returns, everything is durable that was committed before the prepare."""
        try:
            self._warc.upload_pieces()
            if prepared.batches:
                self._write_segment(prepared.batches)
                self._unsent = []
            if prepared.tables is not None:
                self._write_snapshot(prepared.tables)
        finally:
            if prepared.tables is not None:
                prepared.tables.close()
        self._warc.upload_files(below=prepared.warc_number)

    def finish(self, *, results: bool = True) -> None:
        """Make everything durable at the end, before or after the store is closed.

        ``results`` writes the partition's parts of the archive: its crawl is over.
        """
        if self._store.is_open:
            self._store.commit()
        self.flush()
        assert self._manifest is not None, "begin() was not called"
        self._write_manifest(replace(self._manifest, promised=self._segment))
        if not results:
            return
        self._warc.upload_files()
        if self._store.is_open:
            upload_tables(self._storage, self._partition, self._folder, self._store.tables)
        else:
            with StateStore.open_for_reading(self._folder / "state") as (store, _):
                upload_tables(self._storage, self._partition, self._folder, store.tables)

    def _collect(self, batch: bytes) -> None:
        if self._overflowed:
            return
        self._pending_bytes += len(batch)
        if self._pending_bytes > self._max_pending_bytes:
            self._overflowed = True
            self._batches = []
        else:
            self._batches.append(batch)

    def _is_snapshot_due(self) -> bool:
        if self._has_gap or self._manifest is None:
            return True
        segments = self._segment - self._manifest.first_segment
        enough = max(self._manifest.bytes, self._min_snapshot_bytes)
        return self._segment_bytes > enough or segments > _MAX_SEGMENTS

    def _write_segment(self, batches: Sequence[bytes]) -> None:
        content = encode_segment(self._segment, batches)
        self._storage.write(f"{self._home}/{_SEGMENT}{self._segment:010}", content)
        self._check_not_closed()
        self._segment += 1
        self._segment_bytes += len(content)

    def _write_snapshot(self, tables: FrozenTables) -> None:
        """Upload the tables, then the manifest; delete what they supersede."""
        self._snapshots += 1
        name = f"{_SNAPSHOT}{self._snapshots:010}"
        with temporary_folder(self._folder) as folder:
            path = _compressed_copy(tables, folder)
            size, checksum = path.stat().st_size, _file_checksum(path)
            self._storage.upload(f"{self._home}/{name}", path)
        self._write_manifest(Manifest(_FORMAT, name, size, checksum, self._segment, self._segment))
        self._segment_bytes, self._has_gap = 0, False
        self._delete_superseded()

    def _write_manifest(self, manifest: Manifest) -> None:
        self._storage.write(f"{self._home}/{_MANIFEST}", _encode_manifest(manifest))
        self._check_not_closed()
        self._manifest = manifest

    def _check_not_closed(self) -> None:
        """Raise FencedError if a successor may have read the state before the last write."""
        folder = _partition_folder(self._partition)
        if self._storage.exists(f"{folder}/{_closed_name(self._token)}"):
            raise _fenced(self._partition, self._token)

    def _delete_superseded(self) -> None:
        assert self._manifest is not None
        first, snapshot = self._manifest.first_segment, self._manifest.snapshot
        self._storage.delete(
            [
                f"{self._home}/{name}"
                for name in self._storage.entries(self._home)
                if (name.startswith(_SEGMENT) and _number(name) < first)
                or (name.startswith(_SNAPSHOT) and name != snapshot)
            ]
        )

    def _delete_earlier_owners(self) -> None:
        for token in _stored_tokens(self._storage, self._partition):
            if token < self._token:
                home = _token_folder(self._partition, token)
                self._storage.delete([f"{home}/{name}" for name in self._storage.entries(home)])


def newest_token(storage: SharedStorage, partition: int) -> int:
    """Return the highest fencing token of a partition's owners in storage; 0 without any."""
    return max(_stored_tokens(storage, partition), default=0)


def restore(storage: SharedStorage, partition: int, folder: Path, token: int) -> None:
    """Restore a partition's state into ``folder``, for the owner with ``token``.

    Earlier owners are fenced off first. What ``folder`` held of the partition is removed; it gets
    no state if none is stored. Raises StorageError; FencedError if there is a higher token.
    """
    _claim(storage, partition, token)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_local_files(folder, partition)
    except OSError as error:
        raise local_error(folder, error) from error
    source = _newest_manifest(storage, partition, below=token)
    if source is None:
        return
    store = _restored(storage, partition, source, folder)
    try:
        _begin_next_warc_file(storage, partition, source, store)
    finally:
        store.close()


def _begin_next_warc_file(
    storage: SharedStorage, partition: int, token: int, store: StateStore
) -> None:
    """Leave the last WARC file of the owner with ``token`` to be composed."""
    end = store.tables.get_meta("warc")
    if end is not None:
        number, length = end
        parts = unfinished_parts(storage, partition, token, _taken_over(store), (number, length))
        store.tables.put_meta("warc_parts", parts)
        store.tables.put_meta("warc", [number + 1 if length else number, 0])


def _restored(storage: SharedStorage, partition: int, token: int, folder: Path) -> StateStore:
    """Return the open state of the owner with ``token``, restored into ``folder``."""
    home = _token_folder(partition, token)
    manifest = _read_manifest(storage, home)
    state = folder / "state"
    try:
        state.mkdir(parents=True)
        with temporary_folder(folder) as temporary:
            packed = temporary / "snapshot"
            storage.download(f"{home}/{manifest.snapshot}", packed)
            if (packed.stat().st_size, _file_checksum(packed)) != (
                manifest.bytes,
                manifest.checksum,
            ):
                raise _damaged(storage, f"{home}/{manifest.snapshot}", "its checksum is wrong")
            _decompress(packed, state / "data.mdb")
        (state / "journal").touch()
    except OSError as error:
        raise local_error(folder, error) from error
    store = StateStore.reopen(state)
    try:
        group: list[bytes] = []
        for batches in _segments(storage, home, manifest):
            group += batches
            if sum(map(len, group)) > _REPLAYED_AT_ONCE:
                store.replay(group)
                group = []
        store.replay(group)
    except BaseException:
        store.abandon()
        raise
    return store


def _segments(storage: SharedStorage, home: str, manifest: Manifest) -> Iterator[Sequence[bytes]]:
    """Yield the commits of each segment after the snapshot.

    A last segment may be truncated: its upload was interrupted, so it was never relied on.
    """
    numbers = [_number(name) for name in storage.entries(home) if name.startswith(_SEGMENT)]
    numbers = sorted(number for number in numbers if number >= manifest.first_segment)
    last = max([*numbers, manifest.promised - 1])
    names = [f"{home}/{_SEGMENT}{n:010}" for n in range(manifest.first_segment, last + 1)]
    for number, (name, content) in enumerate(
        zip(names, storage.read_many(names), strict=True), manifest.first_segment
    ):
        try:
            yield decode_segment(number, content)
        except _TruncatedError as error:
            if number < max(last, manifest.promised):
                raise _damaged(storage, name, str(error)) from error
            logger.warning("%s %s; its upload was interrupted", storage.name_of(name), error)
        except ValueError as error:
            raise _damaged(storage, name, str(error)) from error


def encode_segment(number: int, batches: Sequence[bytes]) -> bytes:
    """Return commits as a segment."""
    raw = b"".join(part for each in batches for part in (_LENGTH.pack(len(each)), each))
    packed = pa.compress(raw, codec="zstd", asbytes=True)
    head = _HEAD.pack(_MAGIC, number, len(raw), len(packed), xxhash.xxh3_64_intdigest(packed))
    return b"".join([head, _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)), packed])


def decode_segment(number: int, content: bytes) -> Sequence[bytes]:
    """Return the commits of a segment. Raises ValueError."""
    start = _HEAD.size + _CHECKSUM.size
    if len(content) < start:
        raise _TruncatedError("is truncated")
    head = content[: _HEAD.size]
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)) != content[_HEAD.size : start]:
        raise ValueError("its head's checksum is wrong")
    magic, stored, raw_bytes, packed_bytes, checksum = _HEAD.unpack(head)
    if magic != _MAGIC or stored != number:
        raise ValueError("it is another program's, or another segment")
    packed = content[start:]
    if len(packed) < packed_bytes:
        raise _TruncatedError("is truncated")
    if xxhash.xxh3_64_intdigest(packed) != checksum:
        raise ValueError("its checksum is wrong")
    raw = pa.decompress(packed, raw_bytes, codec="zstd", asbytes=True)
    batches, at = [], 0
    while at < len(raw):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        batches.append(raw[at : at + length])
        at += length
    return batches


def _claim(storage: SharedStorage, partition: int, token: int) -> None:
    """Close all lower tokens. Raises FencedError if there is a higher one.

    Of two that claim at a time at least one sees the other: each writes before it lists.
    """
    storage.write(f"{_token_folder(partition, token)}/{_CLAIM}", _MARK)
    entries = storage.entries(_partition_folder(partition))
    tokens = _tokens(entries)
    if max(tokens) > token or _closed_name(token) in entries:
        raise _fenced(partition, token)
    for other in tokens:
        if other < token and _closed_name(other) not in entries:
            storage.write(f"{_partition_folder(partition)}/{_closed_name(other)}", _MARK)


def _newest_manifest(storage: SharedStorage, partition: int, below: int) -> int | None:
    """Return the highest token below ``below`` that has a manifest."""
    for token in sorted(_stored_tokens(storage, partition), reverse=True):
        if token < below and storage.exists(f"{_token_folder(partition, token)}/{_MANIFEST}"):
            return token
    return None


def _stored_tokens(storage: SharedStorage, partition: int) -> Sequence[int]:
    return _tokens(storage.entries(_partition_folder(partition)))


def _tokens(entries: Mapping[str, int | None]) -> Sequence[int]:
    return [int(name) for name, size in entries.items() if size is None and name.isdecimal()]


def _taken_over(store: StateStore) -> Sequence[WarcPart]:
    return [WarcPart(*each) for each in store.tables.get_meta("warc_parts") or ()]


def _encode_manifest(manifest: Manifest) -> bytes:
    content = msgspec.json.encode(manifest)
    return b"%s\n%016x\n" % (content, xxhash.xxh3_64_intdigest(content))


def _read_manifest(storage: SharedStorage, home: str) -> Manifest:
    name = f"{home}/{_MANIFEST}"
    content, _, checksum = storage.read(name).partition(b"\n")
    if checksum.strip() != b"%016x" % xxhash.xxh3_64_intdigest(content):
        raise _damaged(storage, name, "its checksum is wrong")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise _damaged(storage, name, str(error)) from error
    if manifest.format != _FORMAT:
        raise _damaged(storage, name, f"format {manifest.format} is unknown to this version")
    return manifest


def _compressed_copy(tables: FrozenTables, folder: Path) -> Path:
    packed = folder / "packed"
    try:
        tables.copy(folder)
        with (
            (folder / "data.mdb").open("rb") as source,
            packed.open("wb") as target,
            pa.CompressedOutputStream(target, "zstd") as compressed,
        ):
            shutil.copyfileobj(source, cast(BinaryIO, compressed), _CHUNK_BYTES)
    except (OSError, lmdb.Error) as error:
        raise local_error(folder.parent, error) from error
    return packed


def _decompress(packed: Path, target: Path) -> None:
    with packed.open("rb") as source, target.open("wb") as file:
        shutil.copyfileobj(
            cast(BinaryIO, pa.CompressedInputStream(source, "zstd")), file, _CHUNK_BYTES
        )


def _file_checksum(path: Path) -> int:
    digest = xxhash.xxh3_64()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.intdigest()


def _damaged(storage: SharedStorage, name: str, reason: str) -> StorageError:
    return StorageError(
        f"{storage.name_of(name)} is damaged: {reason}. Restore the object from a copy."
    )


def _fenced(partition: int, token: int) -> FencedError:
    return FencedError(
        f"partition {partition} has another owner than the one with token {token}; "
        "this worker stops crawling it"
    )


def _partition_folder(partition: int) -> str:
    return f"state/{partition_name(partition)}"


def _token_folder(partition: int, token: int) -> str:
    return f"{_partition_folder(partition)}/{token:010}"


def _closed_name(token: int) -> str:
    return f"{_CLOSED}{token:010}"


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
