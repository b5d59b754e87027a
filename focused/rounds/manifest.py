"""Manifests: what has happened in a crawl, round by round.

A manifest is written atomically and holds all that its successor needs. Files that no manifest
names never happened: nobody reads them, and whoever wrote them writes the same again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import xxhash

from focused.errors import StateError
from focused.rounds.round_files import RoundFile, StoredState, list_round_files
from focused.rounds.storage import SharedStorage

MANIFEST_FORMAT = 1
_FOLDER = "rounds/manifests"
_KEPT = 2
_DIGEST_BYTES = 16


class PartitionRecord(msgspec.Struct, frozen=True):
    """What is known of a partition after a round.

    ``round`` is the last one whose file counts, ``delivered`` the last one whose links it has,
    ``granted`` what it may have fetched in all, ``state`` what is stored of it.
    """

    round: int = 0
    delivered: int = 0
    granted: int = 0
    counters: Mapping[str, Any] = {}
    state: StoredState | None = None


class Manifest(msgspec.Struct, frozen=True):
    """The state of a crawl after ``round``.

    ``inbox`` has the files with sections that some partition has not got yet. ``active_s`` is the
    running time so far. ``drivers`` counts those of a crawl on several machines, ``driver`` names
    the one that wrote this, under which a partition may fetch for ``round_s``; 0 when it has ended.
    """

    topic: str
    policy: str
    partitions: int
    unit: str
    round: int = 0
    records: Mapping[int, PartitionRecord] = {}
    inbox: tuple[RoundFile, ...] = ()
    addresses: Mapping[str, tuple[int, ...]] = {}
    learned: int = 0
    active_s: float = 0.0
    end_reason: str = ""
    drivers: int = 0
    driver: str = ""
    round_s: float = 0.0
    format: int = MANIFEST_FORMAT

    def record(self, partition: int) -> PartitionRecord:
        """Return what is known of a partition."""
        return self.records.get(partition, PartitionRecord())

    def inboxes(self) -> Mapping[int, Sequence[RoundFile]]:
        """Return by partition the files that it has not got, oldest first, with its sections."""
        delivered = [self.record(number).delivered for number in range(self.partitions)]
        found: dict[int, list[RoundFile]] = {number: [] for number in range(self.partitions)}
        for file in self.inbox:
            for number, own in file.inboxes(self.partitions):
                if file.round > delivered[number]:
                    found[number].append(own)
        return found


def check_driver(storage: SharedStorage, manifest: Manifest, driver: str) -> None:
    """Raise StateError if another driver wrote a manifest after this one. Raises StorageError."""
    newest = last_manifest(storage)
    found = (0, "") if newest is None else (newest.round, newest.driver)
    if found[1] != driver and found != (manifest.round, manifest.driver):
        raise StateError(
            f"{storage.url}: another command runs this crawl, since round {found[0]}; this one ends"
        )


def commit_manifest(storage: SharedStorage, manifest: Manifest) -> None:
    """Write a manifest: from then on its round has happened. Raises StorageError."""
    data = msgspec.msgpack.encode(manifest)
    storage.write(_name(manifest.round), xxhash.xxh3_128_digest(data) + data)


def last_manifest(storage: SharedStorage) -> Manifest | None:
    """Return the newest manifest; None for a new crawl.

    Raises StorageError, and StateError if it is damaged or of another version.
    """
    names = [name for name in storage.entries(_FOLDER) if name.isdecimal()]
    if not names:
        return None
    name = f"{_FOLDER}/{max(names)}"
    where, data = storage.name_of(name), storage.read(name)
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if xxhash.xxh3_128_digest(content) != digest:
        raise StateError(
            f"{where}: its checksum is wrong; restore it from a copy, or delete it: the crawl then "
            "goes on from the round before"
        )
    try:
        found = msgspec.msgpack.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise StateError(f"{where}: was written by another version: {error}") from error
    if found.format != MANIFEST_FORMAT:
        raise StateError(f"{where}: has format {found.format}, not {MANIFEST_FORMAT}")
    return found


def delete_outdated(storage: SharedStorage, manifest: Manifest) -> None:
    """Delete older manifests, and the files that neither this one nor a next round needs.

    The round before this one is kept, with its files. Raises StorageError.
    """
    oldest = manifest.round - _KEPT + 1
    names = [name for name in storage.entries(_FOLDER) if name.isdecimal()]
    storage.delete([f"{_FOLDER}/{name}" for name in names if int(name) < oldest])
    needed = {file.name for file in manifest.inbox}
    storage.delete(
        [
            name
            for name in list_round_files(storage)
            if name not in needed and _round_of(name) < oldest
        ]
    )


def _name(number: int) -> str:
    return f"{_FOLDER}/{number:08}"


def _round_of(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0
