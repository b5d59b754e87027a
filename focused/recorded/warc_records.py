"""HTTP responses out of WARC files, reading on behind damage.

Every record we write is a gzip member of its own (WARC 1.1, annex D), so it
can be read alone from its offset; :mod:`focused.web.warc` writes them. Bodies
are handed out decoded: ``Content-Encoding`` and ``Transfer-Encoding`` of
foreign records are undone, and ``Content-Length`` is that of the decoded body.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

GZIP_MAGIC = b"\x1f\x8b\x08"
WARC_MAGIC = b"WARC/1."
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


def read_responses(path: Path, start: int = 0) -> Iterator[StoredRecord | Damage]:
    """All HTTP responses of a WARC file, gzipped or not, from offset ``start`` on.

    Damage is yielded, not raised: reading goes on at the next place where a
    record can begin. Other record types are passed over.
    """
    with path.open("rb") as file:
        magic = _record_magic(file)
        while start >= 0:
            last_offset = None
            last_was_damaged = False
            file.seek(start)
            try:
                for record in ArchiveIterator(
                    file, record_types=WarcRecordType.response, auto_decode="all"
                ):
                    last_offset = record.stream_pos
                    found = _stored_or_damage(record)
                    last_was_damaged = isinstance(found, Damage)
                    if found is not None:
                        yield found
                return
            except (OSError, ValueError, EOFError) as error:
                if last_offset is None:
                    broken_at = start
                elif last_was_damaged:
                    broken_at = last_offset
                else:
                    broken_at = _next_start(file, magic, last_offset + 1)
                if not last_was_damaged:
                    yield Damage(max(broken_at, 0), str(error))
                start = _next_start(file, magic, broken_at + 1) if broken_at >= 0 else -1


def _record_magic(file: io.BufferedReader) -> bytes:
    return GZIP_MAGIC if file.peek(3)[:3] == GZIP_MAGIC else WARC_MAGIC


def _next_start(file: io.BufferedReader, magic: bytes, position: int) -> int:
    """Offset of the next ``magic`` at or after ``position``, or -1."""
    file.seek(position)
    tail = b""
    while chunk := file.read(1 << 20):
        window = tail + chunk
        at = window.find(magic)
        if at >= 0:
            return position - len(tail) + at
        position += len(chunk)
        tail = window[-(len(magic) - 1) :]
    return -1


def _stored_or_damage(record: WarcRecord) -> StoredRecord | Damage | None:
    try:
        return stored_record(record)
    except (OSError, ValueError, EOFError) as error:
        return Damage(record.stream_pos, str(error))


def stored_record(record: WarcRecord) -> StoredRecord | None:
    """The record as data; None when it isn't an HTTP response over http(s).

    ``record`` must have been read with ``auto_decode="all"``. Raises ValueError
    or OSError when it is cut short or damaged.
    """
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    if not record.is_http or not url.lower().startswith(("http://", "https://")):
        return None
    offset = record.stream_pos
    status = record.http_headers.status_code
    body = record.reader.read()
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
