"""Manifests: what has happened in a crawl, round by round, and the files that they name.

A manifest is written atomically and holds all that its successor needs. Files that no manifest
names never happened: nobody reads them, and whoever wrote them writes the same again.

The file that a partition writes in a round has sections by receiver. It is immutable: its name has
the round, the partition and the attempt. Of its sections ``links/3`` is for partition 3,
``contents`` and ``examples`` are for the driver. The driver writes a file with the contents of all
partitions for each of them. Each has a checksum in the manifest that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import xxhash
from msgspec import structs

from focused.errors import FocusedError, StateError
from focused.rounds.storage import SharedStorage, add_digest, checked
from focused.storage.state_store import FORMAT_VERSION

CONTENTS = "contents"
EXAMPLES = "examples"
FILE_FORMAT = 1
STATE_FORMAT = FORMAT_VERSION - 18
"""1: commits of format 19 of the state store; those of earlier ones are migrated once restored."""
_FILES = "rounds/files"
_LINKS = "links/"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


class DamagedFileError(FocusedError):
    """A section is not what its manifest says: it is damaged, forged or of another version."""


class Section(msgspec.Struct, frozen=True, array_like=True):
    """A section: where it is in its file, and its checksum."""

    name: str
    offset: int
    length: int
    checksum: bytes


class RoundFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a round and its sections."""

    round: int
    partition: int
    attempt: str
    sections: tuple[Section, ...]
    format: int = FILE_FORMAT

    @property
    def name(self) -> str:
        """The name of the file in the shared storage."""
        return f"{_FILES}/{self.round:08}-{self.partition:04}-{self.attempt}"

    def section(self, name: str) -> Section | None:
        """Return a section; None if there is nothing for that receiver."""
        return next((each for each in self.sections if each.name == name), None)

    def for_partitions(self) -> RoundFile:
        """Return the file without the sections for the driver."""
        links = tuple(each for each in self.sections if each.name.startswith(_LINKS))
        return structs.replace(self, sections=links)

    def inboxes(self, partitions: int) -> Iterator[tuple[int, RoundFile]]:
        """Yield the partitions that have something to read, with the file of their sections."""
        for section in self.sections:
            alone = structs.replace(self, sections=(section,))
            if section.name.startswith(_LINKS):
                yield int(section.name.removeprefix(_LINKS)), alone
            elif section.name == CONTENTS:
                yield from ((number, alone) for number in range(partitions))


class SegmentRun(NamedTuple):
    """Segments with consecutive numbers, written by one attempt."""

    attempt: int
    first: int
    last: int


class StoredState(msgspec.Struct, frozen=True):
    """A snapshot, and the segments of commits that follow it, oldest first.

    ``attempt`` is the process that stored it, ``snapshot`` a path in the partition's folder, with
    the object's ``bytes`` and ``checksum``. ``segment_bytes`` are those of the segments.
    ``next_segment`` is the number that the attempt uses next, ``warc`` that of the WARC file to
    which it appends.
    """

    attempt: int
    snapshot: str
    bytes: int
    checksum: int
    runs: tuple[SegmentRun, ...] = ()
    segment_bytes: int = 0
    next_segment: int = 1
    warc: int = 1
    format: int = STATE_FORMAT


def links_for(partition: int) -> str:
    """Return the name of the section with the links of a partition."""
    return f"{_LINKS}{partition}"


def write_round_file(
    storage: SharedStorage,
    number: int,
    partition: int,
    attempt: str,
    contents: Mapping[str, Sequence[bytes]],
) -> RoundFile:
    """Write the sections that are not empty as one file. Raises StorageError."""
    sections, data = [], b""
    for name, messages in contents.items():
        if messages:
            raw = _encode(tuple(messages))
            sections.append(Section(name, len(data), len(raw), xxhash.xxh3_128_digest(raw)))
            data += raw
    file = RoundFile(number, partition, attempt, tuple(sections))
    if data:
        storage.write(file.name, data)
    return file


def read_section(storage: SharedStorage, file: RoundFile, name: str) -> Sequence[bytes]:
    """Return the messages of a section; none if the file has no such section.

    Raises DamagedFileError, and StorageError if the storage does not answer.
    """
    section = file.section(name)
    if section is None:
        return ()
    where = f"{storage.name_of(file.name)}, section {name}"
    if file.format != FILE_FORMAT:
        raise DamagedFileError(f"{where}: has format {file.format}, not {FILE_FORMAT}")
    raw = storage.read(file.name, section.offset, section.offset + section.length)
    if xxhash.xxh3_128_digest(raw) != section.checksum:
        raise DamagedFileError(f"{where}: its checksum is wrong; it is damaged or forged")
    try:
        return _decode(raw)
    except msgspec.MsgspecError as error:
        raise DamagedFileError(f"{where}: {error}") from error


def list_round_files(storage: SharedStorage) -> Sequence[str]:
    """Return the names of all files of rounds in storage. Raises StorageError."""
    return [f"{_FILES}/{name}" for name in storage.entries(_FILES)]


MANIFEST_FORMAT = 1
_MANIFESTS = "rounds/manifests"
_KEPT = 2


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

    def needed_files(self) -> Iterator[RoundFile]:
        """Yield the files of the inbox that some partition has not got yet."""
        for file in self.inbox:
            receivers = (number for number, _ in file.inboxes(self.partitions))
            if any(self.record(number).delivered < file.round for number in receivers):
                yield file


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
    storage.write(_name(manifest.round), add_digest(msgspec.msgpack.encode(manifest)))


def last_manifest(storage: SharedStorage) -> Manifest | None:
    """Return the newest manifest; None for a new crawl.

    Raises StorageError, and StateError if it is damaged or of another version.
    """
    name = max(_manifest_names(storage), default=None)
    if name is None:
        return None
    where = storage.name_of(name)
    try:
        content = checked(storage.read(name))
    except ValueError as error:
        raise StateError(
            f"{where}: {error}; restore it from a copy, or delete it: the crawl then goes on from "
            "the round before"
        ) from error
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
    needed = {file.name for file in manifest.inbox}
    outdated = [
        name
        for name in (*_manifest_names(storage), *list_round_files(storage))
        if name not in needed and _round_of(name) < oldest
    ]
    storage.delete(outdated)


def _manifest_names(storage: SharedStorage) -> Sequence[str]:
    return [f"{_MANIFESTS}/{name}" for name in storage.entries(_MANIFESTS) if name.isdecimal()]


def _name(number: int) -> str:
    return f"{_MANIFESTS}/{number:08}"


def _round_of(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0
