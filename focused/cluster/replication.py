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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, ParamSpec, TypeVar, cast

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
from focused.files import make_private_folder
from focused.storage.state_store import FrozenTables, StateStore

logger = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_PENDING_BYTES = 16_000_000
"""Commits kept in memory while uploads fail; then a snapshot replaces them."""
MIN_SNAPSHOT_BYTES = 4_000_000
_MAX_SEGMENTS = 5_000
"""A snapshot is due when its segments are larger than it, or as many as this."""
_FLUSHES_UNTIL_RETRY = 30
_REPLAYED_AT_ONCE = 16_000_000
_CHUNK_BYTES = 1 << 20
_FORMAT = 1
_MANIFEST, _CLAIM, _CLOSED = "manifest.json", "claim", "closed-"
_MARK = b"\n"
"""The content of objects whose existence says it all."""
_SEGMENT, _SNAPSHOT = "segment-", "snapshot-"
_RESTORED = "restored_from"
_MAGIC = b"focused segment 1\n"
_HEAD = struct.Struct(">18sQQQQQ")
"""Magic, number, number of the segment it follows, bytes of the commits, of them compressed,
checksum of those."""
_LENGTH = struct.Struct(">I")
_CHECKSUM = struct.Struct(">Q")


class FencedError(StorageError):
    """Another worker took the partition; this one must stop crawling it."""


class _TruncatedError(ValueError):
    """A segment is shorter than it says."""


class SegmentRun(NamedTuple):
    """Segments of an earlier owner."""

    token: int
    first: int
    last: int


class Manifest(msgspec.Struct, frozen=True):
    """What a successor reads: a snapshot, segments of earlier owners, then this owner's own.

    Those start at ``first_segment``; those up to ``promised`` were durable when the manifest was
    written. ``snapshot`` is a path in the partition's folder.
    """

    format: int
    snapshot: str
    bytes: int
    checksum: int
    runs: tuple[SegmentRun, ...] = ()
    run_bytes: int = 0
    first_segment: int = 1
    promised: int = 0


class _Restored(msgspec.Struct, frozen=True):
    """A row of the state: what the owner with ``token`` restored it from."""

    token: int
    manifest: Manifest


class _Inline(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


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
        background: Executor | None = None,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        min_snapshot_bytes: int = MIN_SNAPSHOT_BYTES,
    ) -> None:
        """``background`` uploads what is large: snapshots and whole WARC files; None: at once."""
        self._storage = storage
        self._partition = partition
        self._token = token
        self._store = store
        self._folder = folder
        self._background = background or _Inline()
        self._max_pending_bytes = max_pending_bytes
        self._min_snapshot_bytes = min_snapshot_bytes
        self._home = _token_folder(partition, token)
        self._restored_from = None if store.has_commits else _restored_from(store, token)
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
        """The number of the next segment. None is written twice: it may be stored although its
        upload failed."""
        self._confirmed = 0
        """The last segment that a successor is sure to have read."""
        self._snapshots = 0
        self._snapshot: Future[Manifest] | None = None
        self._bytes_before_snapshot = 0
        self._next_try = 0
        self._manifest: Manifest | None = None
        self._segments, self._segment_bytes = 0, 0
        """Segments after the snapshot, those of earlier owners included."""
        self._parts: Sequence[WarcPart] = ()
        """WARC files of earlier owners that may be in pieces."""
        self._files: Future[None] | None = None
        store.on_commit(self._collect)

    def begin(self) -> None:
        """Store what a successor needs to go on from here.

        That is the first snapshot, or a reference to what the state was restored from. Commits what
        was written to the store so far.
        """
        _claim(self._storage, self._partition, self._token)
        self._parts = _taken_over(self._store)
        source = self._restored_from
        if source is not None:
            for name, value in _restored_rows(self._store):
                self._store.tables.put_meta(name, value)
            self._store.tables.delete("meta", _RESTORED.encode())
        self._store.commit()
        self._warc.upload_pieces()
        if source is None or self._overflowed:
            tables = self._store.freeze()
            self._batches, self._pending_bytes, self._overflowed = [], 0, False
            self._confirm_snapshot(self._upload_snapshot(tables, self._next_snapshot()), 0)
        else:
            self._write_segment(self._batches)
            self._segments += sum(run.last + 1 - run.first for run in source.runs)
            self._segment_bytes += source.run_bytes
            self._batches, self._pending_bytes = [], 0
            self._write_manifest(replace(source, promised=self._confirmed))
        self._files = self._background.submit(self._compose)

    def flush(self) -> None:
        """Make everything durable that was committed, WARC records included.

        Call it after :meth:`StateStore.sync`, when nothing is uncommitted.
        """
        self.upload(self.prepare())

    def prepare(self) -> PreparedFlush:
        """Collect what is to be uploaded; each one is passed to :meth:`upload` before the next."""
        if self._overflowed:
            self._has_gap, self._overflowed = True, False
            self._snapshot = None  # one that is being made lacks what was dropped
        is_committed = self._store.is_open and not self._store.tables.steps
        if is_committed:
            self._warc_number = int((self._store.tables.get_meta("warc") or (1, 0))[0])
        is_due = is_committed and self._snapshot is None and self._is_snapshot_due()
        tables = self._store.freeze() if is_due else None
        if self._has_gap and self._snapshot is None:
            self._unsent = []
        else:
            self._unsent += self._batches
        self._batches = []
        self._pending_bytes = sum(map(len, self._unsent))
        return PreparedFlush(tuple(self._unsent), self._warc_number, tables)

    def upload(self, prepared: PreparedFlush) -> None:
        """Upload; when it returns, everything is durable that was committed before the prepare."""
        with ExitStack() as undo:
            if prepared.tables is not None:
                undo.callback(prepared.tables.close)
            self._warc.upload_pieces()
            self._end_snapshot()
            if prepared.batches and not self._has_gap:
                self._write_segment(prepared.batches)
                self._unsent = []
            undo.pop_all()
        if prepared.tables is not None:
            self._bytes_before_snapshot = self._segment_bytes
            self._snapshot = self._background.submit(
                self._upload_snapshot, prepared.tables, self._next_snapshot()
            )
            self._end_snapshot()
        if self._has_gap:
            self._check_not_closed()
            raise StorageError(
                f"partition {self._partition}: commits were dropped while uploads failed; "
                "the snapshot that has them is not uploaded yet"
            )
        if self._files is None and self._warc.has_complete_files(prepared.warc_number):
            self._files = self._background.submit(self._warc.upload_files, prepared.warc_number)
        self._end_files()

    def finish(self, *, results: bool = True) -> None:
        """Make everything durable at the end, before or after the store is closed.

        ``results`` writes the partition's parts of the archive: its crawl is over.
        """
        if self._store.is_open:
            self._store.commit()
        self._wait(self._snapshot)
        self.flush()
        assert self._manifest is not None, "begin() was not called"
        self._write_manifest(replace(self._manifest, promised=self._confirmed))
        if not results:
            return
        self._wait(self._files)
        self._compose()
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
        enough = max(self._manifest.bytes, self._min_snapshot_bytes)
        is_worth_it = self._segment_bytes > enough or self._segments > _MAX_SEGMENTS
        return is_worth_it and self._segment >= self._next_try

    def _write_segment(self, batches: Sequence[bytes]) -> None:
        number, self._segment = self._segment, self._segment + 1
        content = encode_segment(number, self._confirmed, batches)
        self._storage.write(f"{self._home}/{_segment_name(number)}", content)
        self._check_not_closed()
        self._confirmed = number
        self._segments += 1
        self._segment_bytes += len(content)

    def _next_snapshot(self) -> Manifest:
        """Return the manifest of a snapshot after all segments so far; its object is missing."""
        self._snapshots += 1
        name = f"{self._token:010}/{_SNAPSHOT}{self._snapshots:010}"
        return Manifest(_FORMAT, name, 0, 0, first_segment=self._segment)

    def _upload_snapshot(self, tables: FrozenTables, manifest: Manifest) -> Manifest:
        """Upload the tables; return the manifest with their size and checksum."""
        try:
            with temporary_folder(self._folder) as folder:
                path = _compressed_copy(tables, folder / "snapshot")
                size, checksum = path.stat().st_size, _file_checksum(path)
                name = f"{_partition_folder(self._partition)}/{manifest.snapshot}"
                self._storage.upload(name, path)
        finally:
            tables.close()
        return replace(manifest, bytes=size, checksum=checksum)

    def _end_snapshot(self) -> None:
        """Write the manifest of a snapshot if one was uploaded."""
        if self._snapshot is None or not self._snapshot.done():
            return
        snapshot, self._snapshot = self._snapshot, None
        error = snapshot.exception()
        if error is None:
            self._confirm_snapshot(snapshot.result(), self._bytes_before_snapshot)
            return
        self._next_try = self._segment + _FLUSHES_UNTIL_RETRY
        logger.warning("partition %d: its snapshot failed: %s", self._partition, error)

    def _confirm_snapshot(self, manifest: Manifest, bytes_before: int) -> None:
        """Write the manifest, and delete what it supersedes."""
        self._write_manifest(replace(manifest, promised=self._confirmed))
        self._has_gap = False
        self._segments = self._segment - manifest.first_segment
        self._segment_bytes -= bytes_before
        self._delete_superseded(manifest)

    def _wait(self, job: Future[Any] | None) -> None:
        if job is not None:
            wait([job])

    def _compose(self) -> None:
        self._warc.compose(self._parts)
        self._parts = ()

    def _end_files(self) -> None:
        if self._files is not None and self._files.done():
            error, self._files = self._files.exception(), None
            if error is not None:
                logger.error("partition %d: %s", self._partition, error)

    def _write_manifest(self, manifest: Manifest) -> None:
        self._storage.write(f"{self._home}/{_MANIFEST}", _encode_manifest(manifest))
        self._check_not_closed()
        self._manifest = manifest

    def _check_not_closed(self) -> None:
        """Raise FencedError if a successor may have read the state before the last write."""
        folder = _partition_folder(self._partition)
        if self._storage.exists(f"{folder}/{_closed_name(self._token)}"):
            raise _fenced(self._partition, self._token)

    def _delete_superseded(self, manifest: Manifest) -> None:
        for token in _stored_tokens(self._storage, self._partition):
            home = _token_folder(self._partition, token)
            names = self._storage.entries(home) if token <= self._token else ()
            self._storage.delete(
                [
                    f"{home}/{name}"
                    for name in names
                    if token < self._token
                    or (name.startswith(_SEGMENT) and _number(name) < manifest.first_segment)
                    or (name.startswith(_SNAPSHOT) and not manifest.snapshot.endswith(name))
                ]
            )


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
        make_private_folder(folder)
        remove_local_files(folder, partition)
    except OSError as error:
        raise local_error(folder, error) from error
    source = _newest_manifest(storage, partition, below=token)
    if source is None:
        return
    home = _token_folder(partition, source)
    manifest = _read_manifest(storage, home)
    store = _restored_snapshot(storage, partition, manifest, folder)
    try:
        for run in manifest.runs:
            _replay(storage, _token_folder(partition, run.token), run.first, run.last, store, run)
        last, size = _replay(storage, home, manifest.first_segment, manifest.promised, store)
        _begin_next_warc_file(storage, partition, source, store)
        run = SegmentRun(source, manifest.first_segment, last)
        manifest = replace(
            manifest,
            runs=(*manifest.runs, run) if last >= run.first else manifest.runs,
            run_bytes=manifest.run_bytes + size,
            first_segment=1,
        )
        store.tables.put_meta(_RESTORED, _Restored(token, manifest))
    except BaseException:
        store.abandon()
        raise
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


def _restored_rows(store: StateStore) -> Sequence[tuple[str, Any]]:
    """Return the rows that :func:`restore` wrote, which no segment has."""
    rows = ((name, store.tables.get_meta(name)) for name in ("warc", "warc_parts"))
    return [(name, value) for name, value in rows if value is not None]


def _restored_from(store: StateStore, token: int) -> Manifest | None:
    row = store.tables.get_meta(_RESTORED)
    restored = None if row is None else msgspec.convert(row, _Restored)
    return None if restored is None or restored.token != token else restored.manifest


def _restored_snapshot(
    storage: SharedStorage, partition: int, manifest: Manifest, folder: Path
) -> StateStore:
    """Return the open state of a snapshot, restored into ``folder``."""
    name, state = f"{_partition_folder(partition)}/{manifest.snapshot}", folder / "state"
    try:
        state.mkdir(parents=True)
        with temporary_folder(folder) as temporary:
            packed = temporary / "snapshot"
            storage.download(name, packed)
            found = (packed.stat().st_size, _file_checksum(packed))
            if found != (manifest.bytes, manifest.checksum):
                raise _damaged(storage, name, "its checksum is wrong")
            _decompress(packed, state / "data.mdb")
        (state / "journal").touch()
    except OSError as error:
        raise local_error(folder, error) from error
    return StateStore.reopen(state)


def _replay(
    storage: SharedStorage,
    home: str,
    first: int,
    promised: int,
    store: StateStore,
    run: SegmentRun | None = None,
) -> tuple[int, int]:
    """Replay the segments of an owner; return the number of the last, and their bytes.

    Segments up to ``promised`` were durable. Each later one tells which one it follows, so that a
    missing one is noticed. One may be truncated if none follows: its upload was interrupted, and
    nobody relied on it.
    """
    listed = [_number(name) for name in storage.entries(home) if name.startswith(_SEGMENT)]
    numbers = sorted(n for n in listed if first <= n <= (run.last if run else n))
    names = [f"{home}/{_segment_name(number)}" for number in numbers]
    last, size, incomplete = first - 1, 0, None
    group: list[bytes] = []
    for number, name, content in zip(numbers, names, storage.read_many(names), strict=True):
        try:
            follows, batches = decode_segment(number, content)
        except _TruncatedError as error:
            logger.warning("%s %s; its upload was interrupted", storage.name_of(name), error)
            incomplete = name
            continue
        except ValueError as error:
            raise _damaged(storage, name, str(error)) from error
        if follows > last:
            raise _missing(storage, home, last, incomplete)
        last, size = number, size + len(content)
        group += batches
        if sum(map(len, group)) > _REPLAYED_AT_ONCE:
            store.replay(group)
            group = []
    if last < promised:
        raise _missing(storage, home, last, incomplete)
    store.replay(group)
    return last, size


def encode_segment(number: int, follows: int, batches: Sequence[bytes]) -> bytes:
    """Return commits as a segment; they follow on those of segment ``follows``."""
    raw = b"".join(part for each in batches for part in (_LENGTH.pack(len(each)), each))
    packed = pa.compress(raw, codec="zstd", asbytes=True)
    checksum = xxhash.xxh3_64_intdigest(packed)
    head = _HEAD.pack(_MAGIC, number, follows, len(raw), len(packed), checksum)
    return b"".join([head, _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)), packed])


def decode_segment(number: int, content: bytes) -> tuple[int, Sequence[bytes]]:
    """Return which segment this one follows, and its commits. Raises ValueError."""
    start = _HEAD.size + _CHECKSUM.size
    if len(content) < start:
        raise _TruncatedError("is truncated")
    head = content[: _HEAD.size]
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)) != content[_HEAD.size : start]:
        raise ValueError("its head's checksum is wrong")
    magic, stored, follows, raw_bytes, packed_bytes, checksum = _HEAD.unpack(head)
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
    return follows, batches


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
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _damaged(storage, name, str(error)) from error
    if manifest.format != _FORMAT:
        raise _damaged(storage, name, f"format {manifest.format} is unknown to this version")
    return manifest


def _compressed_copy(tables: FrozenTables, path: Path) -> Path:
    try:
        with path.open("wb") as target, pa.CompressedOutputStream(target, "zstd") as compressed:
            tables.copy(cast(BinaryIO, compressed))
    except OSError as error:
        raise local_error(path.parent, error) from error
    return path


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


def _missing(storage: SharedStorage, home: str, last: int, truncated: str | None) -> StorageError:
    """Return the error for the segment after ``last``."""
    if truncated is not None:
        return _damaged(storage, truncated, "it is truncated, and others follow it")
    name = f"{home}/{_segment_name(last + 1)}"
    return _damaged(storage, name, "it is missing, and others follow it")


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


def _segment_name(number: int) -> str:
    return f"{_SEGMENT}{number:010}"


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
