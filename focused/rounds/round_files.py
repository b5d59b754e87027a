"""What a manifest names: the file that a partition writes in a round, and its stored state.

A file has sections by receiver. It is immutable: its name has the round, the partition and the
attempt. Of its sections ``links/3`` is for partition 3, ``contents`` and ``examples`` are for the
driver. The driver writes a file with the contents of all partitions for each of them. Each has a
checksum in the manifest that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import xxhash
from msgspec import structs

from focused.errors import StorageError
from focused.rounds.storage import SharedStorage

CONTENTS = "contents"
EXAMPLES = "examples"
FILE_FORMAT = 1
STATE_FORMAT = 2
"""2: commits of format 20 of the state store; those of 19, with 1, are migrated once restored."""
_FOLDER = "rounds/files"
_LINKS = "links/"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


class DamagedFileError(StorageError):
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
        return f"{_FOLDER}/{self.round:08}-{self.partition:04}-{self.attempt}"

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
    raw = storage.read_range(file.name, section.offset, section.offset + section.length)
    if xxhash.xxh3_128_digest(raw) != section.checksum:
        raise DamagedFileError(f"{where}: its checksum is wrong; it is damaged or forged")
    try:
        return _decode(raw)
    except msgspec.MsgspecError as error:
        raise DamagedFileError(f"{where}: {error}") from error


def list_round_files(storage: SharedStorage) -> Sequence[str]:
    """Return the names of all files of rounds in storage. Raises StorageError."""
    return [f"{_FOLDER}/{name}" for name in storage.entries(_FOLDER)]
