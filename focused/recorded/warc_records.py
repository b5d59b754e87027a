"""HTTP responses out of WARC files, reading on behind damage.

Every record we write is a gzip member of its own (WARC 1.1, annex D), so it
can be read alone from its offset; :mod:`focused.web.warc` writes them. Bodies
are handed out decoded: ``Content-Encoding`` and ``Transfer-Encoding`` of
foreign records are undone, and ``Content-Length`` is that of the decoded body.
"""

from __future__ import annotations

import io
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

GZIP_MAGIC = b"\x1f\x8b\x08"
WARC_MAGIC = b"WARC/1."
MAX_BODY_BYTES = 100_000_000
"""Of a decoded body; a larger one is damage, or was made to fill the memory."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READING_ERRORS = (OSError, ValueError, EOFError)
_HEAD_BYTES = 512  # of a gzip member: more than its own header and a record's first line
_CHUNK_BYTES = 1 << 16
_TRANSFER_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A response as a WARC file holds it; ``offset`` in bytes from the file's start."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    recorded_at: datetime
    offset: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a WARC file that holds no readable record."""

    offset: int
    reason: str


def warcinfo_record(fields: Mapping[str, str], recorded_at: datetime) -> bytes:
    """The gzip member of a ``warcinfo`` record, which opens a file."""
    record = WarcRecord()
    record_id = uuid.uuid5(uuid.NAMESPACE_OID, repr(sorted(fields.items())))
    record.init_headers(WarcRecordType.warcinfo, record_urn=f"uuid:{record_id}".encode())
    record.record_date = recorded_at
    record.headers["Content-Type"] = "application/warc-fields"
    record.set_bytes_content("".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode())
    buffer = io.BytesIO()
    with GzipWriter(buffer) as writer:
        record.write(writer)
        writer.finish()
        return buffer.getvalue()


def read_responses(path: Path) -> Iterator[StoredRecord | Damage]:
    """All HTTP responses of a WARC file, gzipped or not, in their order.

    Damage is yielded, not raised: reading goes on at the next place where a
    record begins. Other record types are passed over.
    """
    with path.open("rb") as file:
        starts = _gzip_starts if _is_gzip(file) else _plain_starts
        position = _first_readable(file, starts(file, 0))
        if position != 0:
            yield Damage(0, "no record begins here")
        while position >= 0:
            last = _Last(position)
            reason = ""
            try:
                yield from _read_on(file, position, last)
            except _READING_ERRORS as error:
                reason = str(error)
            # The iterator may also end without a word, as if the file did.
            beyond = next(starts(file, last.offset + 1), -1)
            if not reason and beyond < 0:
                return
            if not last.damaged:
                yield Damage(max(beyond, last.offset + 1), reason or "a record is cut short")
            position = _first_readable(file, starts(file, last.offset + 1))


@dataclass(slots=True)
class _Last:
    """How far reading came: offset of the last record seen, whether it was damaged."""

    offset: int
    damaged: bool = False


def _read_on(file: BinaryIO, start: int, last: _Last) -> Iterator[StoredRecord | Damage]:
    file.seek(start)
    for record in ArchiveIterator(file, auto_decode="all"):
        last.offset = record.stream_pos
        last.damaged = False
        found = _stored_or_damage(record)
        last.damaged = isinstance(found, Damage)
        if found is not None:
            yield found


def _is_gzip(file: BinaryIO) -> bool:
    """Whether gzip members come before plain records, however the file begins."""
    file.seek(0)
    head = file.read(_CHUNK_BYTES)
    zipped, plain = head.find(GZIP_MAGIC), head.find(WARC_MAGIC)
    return zipped >= 0 and not 0 <= plain < zipped


def _first_readable(file: BinaryIO, starts: Iterable[int]) -> int:
    """The first of ``starts`` where a record's header can be read, or -1."""
    for start in starts:
        file.seek(start)
        try:
            if next(iter(ArchiveIterator(file)), None) is not None:
                return start
        except _READING_ERRORS:
            continue
    return -1


def _gzip_starts(file: BinaryIO, position: int) -> Iterator[int]:
    """Offsets from ``position`` on where a gzipped record begins, or the file breaks off."""
    for start in _places(file, GZIP_MAGIC, position):
        file.seek(start)
        packed = file.read(_HEAD_BYTES)
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(packed, 16)
        except zlib.error:
            continue  # the three bytes stand inside compressed data
        breaks_off = not beginning and len(packed) < _HEAD_BYTES
        if breaks_off or beginning.startswith(WARC_MAGIC):
            yield start


def _plain_starts(file: BinaryIO, position: int) -> Iterator[int]:
    """Offsets from ``position`` on of what looks like a record's first line."""
    for start in _places(file, WARC_MAGIC, position):
        file.seek(max(start - 4, 0))
        if start == 0 or file.read(4).endswith(b"\n"):
            yield start


def _places(file: BinaryIO, magic: bytes, position: int) -> Iterator[int]:
    """Offsets of ``magic`` from ``position`` on; the file may be moved meanwhile."""
    while True:
        file.seek(position)
        chunk = file.read(_CHUNK_BYTES)
        at = chunk.find(magic)
        while at >= 0:
            yield position + at
            at = chunk.find(magic, at + 1)
        if len(chunk) < _CHUNK_BYTES:
            return
        position += len(chunk) - len(magic) + 1


def _stored_or_damage(record: WarcRecord) -> StoredRecord | Damage | None:
    try:
        # Of a record cut inside its header the iterator gives what there is.
        if "Content-Length" not in record.headers:
            raise ValueError("the record's header ends early")
        return stored_record(record)
    except _READING_ERRORS as error:
        return Damage(record.stream_pos, str(error))


def stored_record(record: WarcRecord) -> StoredRecord | None:
    """The record as data; None when it isn't an HTTP response over http(s).

    ``record`` must have been read with ``auto_decode="all"``. Raises ValueError
    or OSError when it is cut short, damaged or too large.
    """
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    is_response = record.record_type == WarcRecordType.response and record.is_http
    if not is_response or not url.lower().startswith(("http://", "https://")):
        return None
    offset = record.stream_pos
    status = record.http_headers.status_code
    body = record.reader.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"a body of more than {MAX_BODY_BYTES // 10**6} MB")
    if status is None:
        raise ValueError("no HTTP status line")
    headers: dict[str, str] = {}
    for name, value in record.http_headers.to_tuples():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    if _is_cut_short(record, headers, body):
        raise ValueError("the record ends early")
    for name in _TRANSFER_HEADERS:
        headers.pop(name, None)
    headers["content-length"] = str(len(body))
    return StoredRecord(url, status, headers, body, record.record_date, offset)


def _is_cut_short(record: WarcRecord, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether fewer bytes came than announced (only known for plain bodies)."""
    if "content-encoding" in headers or "transfer-encoding" in headers:
        return False
    return len(body) < record.content_length
