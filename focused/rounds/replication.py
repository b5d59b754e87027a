"""Replicate the state of a partition to shared storage, and restore it there.

Each process of a partition is an *attempt* with a number of its own. It stores a snapshot of the
tables and the commits since then, in segments, below its number:
``state/partition-0007/0000000012/``. A :class:`StoredState` names the objects of one state. The
manifest of a round has that of each partition, and the next attempt restores exactly this one: what
no manifest names never happened.

So there are no leases. An attempt that lost its connection to the driver may go on writing, below
its own number; nobody reads that. It deletes and replaces only what a state no longer needs that a
manifest named before: whoever comes after it restores that state or a newer one.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import struct
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import xxhash
from msgspec.structs import replace

from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.errors import StateError, StorageError
from focused.files import make_private_folder
from focused.rounds.archive_parts import (
    WarcParts,
    download_warc_files,
    local_error,
    partition_name,
    remove_local_files,
    restore_warc_files,
    temporary_folder,
    upload_tables,
    warc_end,
)
from focused.rounds.manifest import (
    STATE_FORMAT,
    Manifest,
    SegmentRun,
    StoredState,
    last_manifest,
)
from focused.rounds.storage import MissingObjectError, SharedStorage
from focused.storage.state_store import FrozenTables, StateStore

logger = logging.getLogger(__name__)

MIN_SNAPSHOT_BYTES = 4_000_000
_MAX_SEGMENTS = 5_000
"""A snapshot is due when its segments are larger than it, or as many as this."""
_UPLOADS_UNTIL_RETRY = 30
_REPLAYED_AT_ONCE = 16_000_000
_CHUNK_BYTES = 1 << 20
_DOWNLOADS = 5
_SEGMENT, _SNAPSHOT = "segment-", "snapshot-"
_MAGIC = b"focused segment 2\n"
_HEAD = struct.Struct(">18sQQQQ")
"""Magic, number, bytes of the commits, of them compressed, checksum of those."""
_LENGTH = struct.Struct(">I")
_CHECKSUM = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class PreparedUpload:
    """What :meth:`Replica.upload` uploads.

    That is the first ``commits`` of the attempt, as far as they are not uploaded, the WARC files up
    to the number ``warc``, and the tables for a snapshot if one is due.
    """

    commits: int
    warc: int
    tables: FrozenTables | None


class Replica:
    """The copy of one partition's state in shared storage, as one attempt writes it.

    It collects the commits of ``store``; ``folder`` holds the WARC files. Use it from the store's
    thread; only :meth:`upload` may run in another one. Methods raise StorageError, and after that
    may be called again: nothing is lost.
    """

    def __init__(
        self,
        storage: SharedStorage,
        partition: int,
        attempt: int,
        store: StateStore,
        folder: Path,
        *,
        restored: StoredState | None = None,
        background: Executor,
        min_snapshot_bytes: int = MIN_SNAPSHOT_BYTES,
        has_tables: bool = True,
    ) -> None:
        """``restored`` is what :func:`restore` restored into ``store``.

        ``background`` uploads what is large: snapshots and whole WARC files. Without ``has_tables``
        the partition's tables are not written at its end.
        """
        self._storage = storage
        self._partition = partition
        self._attempt = attempt
        self._store = store
        self._folder = folder
        self._background = background
        self._min_snapshot_bytes = min_snapshot_bytes
        self._has_tables = has_tables
        self._state = restored
        self._confirmed = restored
        self._batches: list[bytes] = []
        """Commits that are not uploaded."""
        self._committed = self._uploaded = 0
        """The numbers of commits so far."""
        self._segment = 1
        """The number of the next segment. None is written twice: it may be stored although its
        upload failed."""
        self._snapshots = 0
        self._is_snapshot_running = False
        self._snapshot: tuple[Future[StoredState], StoredState] | None = None
        """A snapshot that is being uploaded, and the state that it will replace."""
        self._next_try = 0
        self._is_outdated = False
        """Whether the storage has objects that no state needs."""
        self._files: Future[None] | None = None
        number, length = warc_end(store.tables)
        if length:
            number += 1
            store.tables.put_meta("warc", [number, 0])
            store.tables.put_meta("warc_parts", [])
        self._warc = WarcParts(storage, partition, attempt, folder, number)
        self._first_warc = number
        store.on_commit(self._collect)

    @property
    def pending_bytes(self) -> int:
        """The bytes of commits that are not uploaded."""
        return sum(map(len, self._batches))

    def begin(self) -> None:
        """Commit what was written to the store so far, and store what later states build upon.

        That is what an earlier attempt left in pieces, and the first snapshot. A restored state has
        one already, unless that is of an earlier format.
        """
        self._store.commit()
        self._warc.upload_files(self._first_warc)
        if self._state is None or self._state.format != STATE_FORMAT:
            # Commits of this version cannot follow those of an earlier format.
            tables = self._store.freeze()
            self._batches.clear()
            self._uploaded = self._committed
            self._state = self._upload_snapshot(tables, self._next_snapshot())

    def prepare(self) -> PreparedUpload:
        """Collect what is to be uploaded; calls of :meth:`upload` come in the same order.

        Call it after :meth:`StateStore.sync`.
        """
        tables = None
        if not self._store.tables.steps and not self._is_snapshot_running and self._is_due():
            tables, self._is_snapshot_running = self._store.freeze(), True
        return PreparedUpload(self._committed, warc_end(self._store.tables)[0], tables)

    def upload(self, prepared: PreparedUpload) -> StoredState:
        """Upload everything that was committed before the prepare; return the state's name."""
        try:
            self._warc.upload_pieces()
            if count := prepared.commits - self._uploaded:
                self._write_segment(self._batches[:count])
                del self._batches[:count]
                self._uploaded = prepared.commits
        except BaseException:
            if prepared.tables is not None:
                prepared.tables.close()
                self._is_snapshot_running = False
            raise
        self._end_snapshot()
        assert self._state is not None, "begin() was not called"
        self._state = state = replace(
            self._state, attempt=self._attempt, next_segment=self._segment, warc=prepared.warc
        )
        if prepared.tables is not None and prepared.tables.is_open:
            result = self._background.submit(
                self._upload_snapshot, prepared.tables, self._next_snapshot()
            )
            self._snapshot = result, state
        return state

    def confirm(self, state: StoredState) -> None:
        """Note that a manifest names a state.

        In the background, delete what neither it nor the one before it needs, and store WARC files
        that are complete whole.
        """
        before, self._confirmed = self._confirmed, state
        self._is_outdated |= before is None or before.snapshot != state.snapshot
        if self._files is not None:
            if not self._files.done():
                return  # the next one does it
            if (error := self._files.exception()) is not None:
                logger.error("partition %d: %s", self._partition, error)
            self._files = None
        if self._is_outdated or self._warc.has_complete_files(state.warc):
            self._is_outdated = False
            self._files = self._background.submit(self._tidy, state, before)

    def finish(self) -> None:
        """Store the WARC files whole and write the partition's tables, after the store's close.

        Then nothing is left in the folder that is in the storage, too. The last :meth:`upload` came
        after the last commit.
        """
        if self._files is not None:
            wait([self._files])
        if self._snapshot is not None:
            wait([self._snapshot[0]])
        with StateStore.open_for_reading(self._folder / "state") as (store, _):
            self._warc.upload_files(warc_end(store.tables)[0] + 1)
            if self._has_tables:
                upload_tables(self._storage, self._partition, self._folder, store.tables)
        try:
            remove_local_files(self._folder, self._partition)
        except OSError as error:
            logger.warning("%s", local_error(self._folder, error))

    def _collect(self, batch: bytes) -> None:
        self._batches.append(batch)
        self._committed += 1

    def _is_due(self) -> bool:
        """Whether the segments since the last snapshot are larger than it, or many."""
        assert self._state is not None, "begin() was not called"
        enough = max(self._state.bytes, self._min_snapshot_bytes)
        segments = sum(run.last + 1 - run.first for run in self._state.runs)
        is_worth_it = self._state.segment_bytes > enough or segments > _MAX_SEGMENTS
        return is_worth_it and self._segment >= self._next_try

    def _write_segment(self, batches: Sequence[bytes]) -> None:
        number, self._segment = self._segment, self._segment + 1
        content = encode_segment(number, batches)
        self._storage.write(
            f"{_folder(self._partition)}/{_segment_path(self._attempt, number)}", content
        )
        assert self._state is not None, "begin() was not called"
        *runs, last = self._state.runs or (SegmentRun(self._attempt, number, number - 1),)
        if last.attempt != self._attempt or last.last + 1 != number:
            runs.append(last)
            last = SegmentRun(self._attempt, number, number - 1)
        self._state = replace(
            self._state,
            runs=(*runs, last._replace(last=number)),
            segment_bytes=self._state.segment_bytes + len(content),
        )

    def _next_snapshot(self) -> StoredState:
        """Return the state of a snapshot after all segments so far; its object is missing."""
        self._snapshots += 1
        name = f"{self._attempt:010}/{_SNAPSHOT}{self._snapshots:010}"
        return StoredState(self._attempt, name, 0, 0, next_segment=self._segment)

    def _upload_snapshot(self, tables: FrozenTables, state: StoredState) -> StoredState:
        """Upload the tables; return the state with their size and checksum."""
        try:
            with temporary_folder(self._folder) as folder:
                path = _compressed_copy(tables, folder / "snapshot")
                size, checksum = path.stat().st_size, _file_checksum(path)
                self._storage.upload(f"{_folder(self._partition)}/{state.snapshot}", path)
        finally:
            tables.close()
        return replace(state, bytes=size, checksum=checksum)

    def _end_snapshot(self) -> None:
        """Use a snapshot if one was uploaded, with the segments that came after it."""
        if self._snapshot is None or not self._snapshot[0].done():
            return
        (result, replaced), self._snapshot = self._snapshot, None
        error = result.exception()
        if error is None:
            assert self._state is not None
            found = result.result()
            runs = [
                run._replace(first=max(run.first, found.next_segment))
                for run in self._state.runs
                if run.attempt == self._attempt and run.last >= found.next_segment
            ]
            size = self._state.segment_bytes - replaced.segment_bytes
            self._state = replace(found, runs=tuple(runs), segment_bytes=size)
        else:
            self._next_try = self._segment + _UPLOADS_UNTIL_RETRY
            logger.warning("partition %d: its snapshot failed: %s", self._partition, error)
        # At last: prepare() may run in another thread, and must not take the old state as due.
        self._is_snapshot_running = False

    def _tidy(self, state: StoredState, before: StoredState | None) -> None:
        """Delete all objects that are older than a state, unless it or the one before needs them.

        Complete WARC files are stored whole.
        """
        folder = _folder(self._partition)
        needed = {*_objects(state), *(() if before is None else _objects(before))}
        next_segment = _segment_path(state.attempt, state.next_segment)
        outdated = [
            f"{folder}/{home}/{name}"
            for home, size in self._storage.entries(folder).items()
            if size is None and home.isdecimal()
            for name in self._storage.entries(f"{folder}/{home}")
            if (path := f"{home}/{name}") not in needed
            and _age(path) < _age(next_segment if name.startswith(_SEGMENT) else state.snapshot)
        ]
        self._storage.delete(outdated)
        if self._warc.has_complete_files(state.warc):
            self._warc.upload_files(state.warc)


def restore(
    storage: SharedStorage, partition: int, folder: Path, state: StoredState | None
) -> None:
    """Restore a partition's stored state into ``folder``; of None there is nothing to restore.

    WARC files that are in the storage in pieces only are restored, too. What ``folder`` held of the
    partition is removed. Raises StorageError.
    """
    try:
        make_private_folder(folder)
        remove_local_files(folder, partition)
    except OSError as error:
        raise local_error(folder, error) from error
    if state is None:
        return
    if not 1 <= state.format <= STATE_FORMAT:
        where = storage.name_of(f"{_folder(partition)}/{state.snapshot}")
        raise StorageError(f"{where}: format {state.format} is unknown to this version")
    store = _restored_snapshot(storage, partition, state, folder)
    try:
        for run in state.runs:
            _replay(storage, partition, run, store)
        restore_warc_files(storage, partition, state.attempt, store.tables, folder)
    except BaseException:
        store.abandon()
        raise
    store.close()


def download_crawl(url: str, folder: Path) -> Manifest:
    """Write all that a crawl has committed to a new local folder; return its manifest.

    ``url`` is the crawl's folder in shared storage; the crawl may run. The folder is like that of a
    crawl by processes of one machine, and all commands read it. Raises StateError and StorageError.
    """
    storage = SharedStorage.at(url)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StateError(f"{folder}: is not empty; name a new folder")
    for _ in range(_DOWNLOADS - 1):
        # The crawl goes on, and deletes what the next two manifests don't need.
        with suppress(MissingObjectError):
            return _download(storage, folder)
    return _download(storage, folder)


def _download(storage: SharedStorage, folder: Path) -> Manifest:
    """Download a crawl; leave nothing behind if that fails."""
    manifest = last_manifest(storage)
    states = {} if manifest is None else {n: each.state for n, each in manifest.records.items()}
    if manifest is None or not any(states.values()):
        raise StateError(f"{storage.url}: no round of a crawl on several machines is stored there")
    try:
        for partition, state in states.items():
            if state is not None:
                home = folder / PARTITIONS_FOLDER / partition_name(partition)
                restore(storage, partition, home, state)
                with StateStore.open_for_reading(home / "state") as (store, _):
                    download_warc_files(storage, partition, store.tables, home)
        # The statistics are those of the last stop.
        for name in ("settings.json",) if manifest.round_s else ("settings.json", "stats.json"):
            if storage.exists(name):
                storage.download(name, folder / name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return manifest


def _restored_snapshot(
    storage: SharedStorage, partition: int, stored: StoredState, folder: Path
) -> StateStore:
    """Return the open state of a snapshot, restored into ``folder``."""
    name, state = f"{_folder(partition)}/{stored.snapshot}", folder / "state"
    try:
        state.mkdir(parents=True)
        with temporary_folder(folder) as temporary:
            packed = temporary / "snapshot"
            storage.download(name, packed)
            found = (packed.stat().st_size, _file_checksum(packed))
            if found != (stored.bytes, stored.checksum):
                raise _damaged(storage, name, "its checksum is wrong")
            _decompress(packed, state / "data.mdb")
        (state / "journal").touch()
    except OSError as error:
        raise local_error(folder, error) from error
    # All commits are in one format; the next who opens the state migrates it.
    return StateStore.reopen(state, migrates=False)


def _replay(storage: SharedStorage, partition: int, run: SegmentRun, store: StateStore) -> None:
    """Replay segments of an attempt."""
    numbers = range(run.first, run.last + 1)
    names = [f"{_folder(partition)}/{_segment_path(run.attempt, number)}" for number in numbers]
    group: list[bytes] = []
    for number, name, content in zip(numbers, names, storage.read_many(names), strict=True):
        try:
            group += decode_segment(number, content)
        except ValueError as error:
            raise _damaged(storage, name, str(error)) from error
        if sum(map(len, group)) > _REPLAYED_AT_ONCE:
            store.replay(group)
            group = []
    store.replay(group)


def encode_segment(number: int, batches: Sequence[bytes]) -> bytes:
    """Return commits as a segment."""
    raw = b"".join(part for each in batches for part in (_LENGTH.pack(len(each)), each))
    packed = pa.compress(raw, codec="zstd", asbytes=True)
    checksum = xxhash.xxh3_64_intdigest(packed)
    head = _HEAD.pack(_MAGIC, number, len(raw), len(packed), checksum)
    return b"".join([head, _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)), packed])


def decode_segment(number: int, content: bytes) -> Sequence[bytes]:
    """Return the commits of a segment. Raises ValueError."""
    start = _HEAD.size + _CHECKSUM.size
    head = content[: _HEAD.size]
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head)) != content[_HEAD.size : start]:
        raise ValueError("its head's checksum is wrong")
    magic, stored, raw_bytes, packed_bytes, checksum = _HEAD.unpack(head)
    if magic != _MAGIC or stored != number:
        raise ValueError("it is another program's, or another segment")
    packed = content[start:]
    if len(packed) != packed_bytes or xxhash.xxh3_64_intdigest(packed) != checksum:
        raise ValueError("its checksum is wrong")
    try:
        raw = pa.decompress(packed, raw_bytes, codec="zstd", asbytes=True)
    except (OSError, MemoryError, OverflowError) as error:
        raise ValueError("it does not have the length that its head states") from error
    batches, at = [], 0
    while at < len(raw):
        if at + _LENGTH.size > len(raw):
            raise ValueError("its last commit is cut")
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        batches.append(raw[at : at + length])
        at += length
    return batches


def _objects(state: StoredState) -> Iterable[str]:
    """Yield the names of a state's objects in the partition's folder."""
    yield state.snapshot
    for run in state.runs:
        for number in range(run.first, run.last + 1):
            yield _segment_path(run.attempt, number)


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
    with path.open("rb") as file:
        digest: Any = hashlib.file_digest(file, xxhash.xxh3_64)
    return int(digest.intdigest())


def _damaged(storage: SharedStorage, name: str, reason: str) -> StorageError:
    return StorageError(
        f"{storage.name_of(name)} is damaged: {reason}. Restore the object from a copy."
    )


def _folder(partition: int) -> str:
    return f"state/{partition_name(partition)}"


def _age(path: str) -> tuple[int, str]:
    """Return the order of an object among those of its kind: attempt, and name."""
    attempt, _, name = path.partition("/")
    return int(attempt), name  # from the thousandth driver on, attempts have more digits


def _segment_path(attempt: int, number: int) -> str:
    return f"{attempt:010}/{_SEGMENT}{number:010}"
