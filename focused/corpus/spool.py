"""Documents that an export has extracted so far, in a file that only grows.

The file is a sequence of groups, each with a checksum. A group that was cut short by a crash is
removed when the export goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa
import xxhash

from focused.corpus.stored_documents import StoredDocument

GROUP_DOCUMENTS = 100
"""Documents of a group: what an interrupted export extracts again."""

_HEADER = struct.Struct(">IIQ")  # bytes, bytes unpacked, checksum
_MAX_GROUP_BYTES = 1 << 31
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[StoredDocument]).decode


def append_documents(
    path: Path, documents: Iterable[StoredDocument], done: Callable[[int], object]
) -> None:
    """Append documents in groups; ``done`` is called with the number of each group's documents."""
    documents = iter(documents)
    with path.open("ab") as file:
        while group := list(islice(documents, GROUP_DOCUMENTS)):
            raw = _encode(group)
            packed: bytes = _codec().compress(raw, asbytes=True)
            file.write(_HEADER.pack(len(packed), len(raw), xxhash.xxh3_64_intdigest(packed)))
            file.write(packed)
            file.flush()
            done(len(group))


def read_documents(path: Path) -> Iterator[StoredDocument]:
    """Yield the documents of all whole groups; none without the file."""
    if path.exists():
        with path.open("rb") as file:
            while group := _read_group(file):
                yield from group


def repair_spool(path: Path) -> int:
    """Remove what follows the last whole group; return the position after its last document."""
    following = end = 0
    if not path.exists():
        return following
    with path.open("r+b") as file:
        while group := _read_group(file):
            following, end = group[-1].position + 1, file.tell()
        file.truncate(end)
    return following


def _read_group(file: IO[bytes]) -> list[StoredDocument]:
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return []
    packed_bytes, raw_bytes, checksum = _HEADER.unpack(header)
    if max(packed_bytes, raw_bytes) > _MAX_GROUP_BYTES:
        return []
    packed = file.read(packed_bytes)
    if len(packed) < packed_bytes or xxhash.xxh3_64_intdigest(packed) != checksum:
        return []
    return _decode(_codec().decompress(packed, raw_bytes, asbytes=True))


def _codec() -> Any:
    return pa.Codec("zstd")
