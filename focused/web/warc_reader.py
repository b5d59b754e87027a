"""Read HTTP responses from WARC files, and continue after damage.

Our records are gzip members of their own (WARC 1.1, annex D) and can be read from their offset.
Bodies are decoded: ``Content-Encoding`` and ``Transfer-Encoding`` are removed, and
``Content-Length`` is adjusted. Our ``revisit`` records are returned with the payload of the record
that they refer to.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from fastwarc.stream_io import BrotliReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from focused.files import open_regular_file
from focused.web.http_response import SINGLE_HEADERS
from focused.web.page import RENDERED_TYPE
from focused.web.warc_records import (
    PAYLOAD_DIGEST,
    REFERS_TO_FILE,
    REFERS_TO_OFFSET,
    SERVER_NOT_MODIFIED,
    OriginalRecord,
)

GZIP_MAGIC = b"\x1f\x8b\x08"
WARC_MAGIC = b"WARC/1."
MAX_BODY_BYTES = 100_000_000
"""Largest decoded body; a larger one counts as damage."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READING_ERRORS = (OSError, ValueError, EOFError)
_HEAD_BYTES = 512  # of a gzip member: its header and a record's first line
_CHUNK_BYTES = 1 << 16
_TRANSFER_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
# zlib window sizes: gzip; deflate with zlib header (RFC) and without.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
_SMALLEST_PIECE = 128
_STREAMS = {"br": BrotliReader, "zstd": ZstdReader}


@dataclass(frozen=True, slots=True)
class WarcResponse:
    """A response in a WARC file; ``offset`` is in bytes, ``recorded_at`` EPOCH without a date."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    recorded_at: datetime
    offset: int


@dataclass(frozen=True, slots=True)
class DamagedRecord:
    """A part of a WARC file without a readable record."""

    offset: int
    reason: str


def read_responses(path: Path) -> Iterator[WarcResponse | DamagedRecord]:
    """Yield all HTTP responses of a WARC file, gzipped or not, in order.

    Damage is yielded, not raised; reading continues at the next record. Other records are skipped,
    and so are ``revisit`` records of responses with status 304, or without file and offset of the
    original.
    """
    with open_regular_file(path) as file:
        starts = _gzip_starts if _is_gzip(file) else _plain_starts
        position = _first_readable(file, starts(file, 0))
        if position != 0:
            yield DamagedRecord(0, "no record begins here")
        while position >= 0:
            last = _ReadPosition(position)
            reason = ""
            try:
                yield from _read_from(file, path, position, last)
            except _READING_ERRORS as error:
                reason = str(error)
            # The iterator may also stop at damage without an error.
            beyond = next(starts(file, last.offset + 1), -1)
            if not reason and beyond < 0:
                return
            if not last.damaged:
                yield DamagedRecord(max(beyond, last.offset + 1), reason or "a record is cut short")
            position = _first_readable(file, starts(file, last.offset + 1))


@dataclass(slots=True)
class _ReadPosition:
    """Offset of the last record, and whether it was damaged."""

    offset: int
    damaged: bool = False


def read_response(path: Path, offset: int) -> WarcResponse | None:
    """Return the response whose record begins at ``offset``, or None.

    A page that a browser rendered has the rendered HTML as its body.
    """
    try:
        with open_regular_file(path) as file:
            file.seek(offset)
            records = iter(ArchiveIterator(file, auto_decode="transfer"))
            record = next(records, None)
            if record is None:
                return None
            record_id = record.headers.get("WARC-Record-ID")
            found = parse_response_record(record, path)
            html = None if found is None else _read_conversion(records, record_id)
    except _READING_ERRORS:
        return None
    if found is None or html is None:
        return found
    headers = {**found.headers, "content-type": RENDERED_TYPE, "content-length": str(len(html))}
    return replace(found, headers=headers, body=html)


def _read_conversion(records: Iterator[WarcRecord], record_id: str | None) -> bytes | None:
    """Return the rendered HTML of the response that was read last, or None."""
    try:
        record = next(records, None)
        if (
            record is None
            or record.record_type != WarcRecordType.conversion
            or record.headers.get("WARC-Refers-To") != record_id
        ):
            return None
        html = bytes(record.reader.read(MAX_BODY_BYTES))
    except _READING_ERRORS:
        return None
    return html if len(html) == record.content_length else None


def read_original_record(path: Path, offset: int) -> tuple[OriginalRecord, str] | None:
    """Return the record at ``offset`` for a ``revisit`` record, and its payload digest.

    For a ``revisit`` record, that is the response that it refers to. None without a readable
    response.
    """
    return _read_original(path, offset, is_followed=True)


def _read_original(
    path: Path, offset: int, *, is_followed: bool
) -> tuple[OriginalRecord, str] | None:
    """``is_followed``: whether a ``revisit`` record is followed to its original."""
    try:
        with open_regular_file(path) as file:
            file.seek(offset)
            record = next(iter(ArchiveIterator(file, parse_http=False)), None)
            if record is None:
                return None
            refers_to = record.headers.get(REFERS_TO_OFFSET) or ""
            is_revisit = record.record_type == WarcRecordType.revisit
            if is_revisit and is_followed and refers_to.isdecimal():
                name = Path(record.headers.get(REFERS_TO_FILE) or path.name).name
                return _read_original(path.with_name(name), int(refers_to), is_followed=False)
            if record.record_type != WarcRecordType.response:
                return None
            fields = {name: record.headers.get(name) or "" for name in _ORIGINAL_FIELDS}
    except _READING_ERRORS:
        return None
    record_id, url, date, digest = fields.values()
    return OriginalRecord(record_id.strip("<>"), url, date, path.name, offset), digest


_PROFILE = "WARC-Profile"
_ORIGINAL_FIELDS = ("WARC-Record-ID", "WARC-Target-URI", "WARC-Date", PAYLOAD_DIGEST)


def _read_from(
    file: BinaryIO, path: Path, start: int, last: _ReadPosition
) -> Iterator[WarcResponse | DamagedRecord]:
    file.seek(start)
    for record in ArchiveIterator(file, auto_decode="transfer"):
        last.offset = record.stream_pos
        last.damaged = False
        found = _parse_or_damage(record, path)
        last.damaged = isinstance(found, DamagedRecord)
        if found is not None:
            yield found


def _is_gzip(file: BinaryIO) -> bool:
    """Whether gzip members come before plain records."""
    file.seek(0)
    head = file.read(_CHUNK_BYTES)
    zipped, plain = head.find(GZIP_MAGIC), head.find(WARC_MAGIC)
    return zipped >= 0 and not 0 <= plain < zipped


def _first_readable(file: BinaryIO, starts: Iterable[int]) -> int:
    """Return the first of ``starts`` where a record header can be read, or -1."""
    for start in starts:
        file.seek(start)
        try:
            if next(iter(ArchiveIterator(file)), None) is not None:
                return start
        except _READING_ERRORS:
            continue
    return -1


def _gzip_starts(file: BinaryIO, position: int) -> Iterator[int]:
    """Yield offsets of gzipped records, and of a truncated one at the end of the file."""
    for start in _find_offsets(file, GZIP_MAGIC, position):
        file.seek(start)
        packed = file.read(_HEAD_BYTES)
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(packed, 16)
        except zlib.error:
            continue  # inside compressed data
        breaks_off = not beginning and len(packed) < _HEAD_BYTES
        if breaks_off or beginning.startswith(WARC_MAGIC):
            yield start


def _plain_starts(file: BinaryIO, position: int) -> Iterator[int]:
    """Yield offsets that look like a record's first line."""
    for start in _find_offsets(file, WARC_MAGIC, position):
        file.seek(max(start - 4, 0))
        if start == 0 or file.read(4).endswith(b"\n"):
            yield start


def _find_offsets(file: BinaryIO, magic: bytes, position: int) -> Iterator[int]:
    """Yield offsets of ``magic`` from ``position`` on."""
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


def _parse_or_damage(record: WarcRecord, path: Path) -> WarcResponse | DamagedRecord | None:
    try:
        # The iterator returns records with a truncated header.
        if not (record.headers.get("Content-Length") or "").strip().isdecimal():
            raise ValueError("the record's header ends early")
        stored = parse_response_record(record, path)
        has_body = record.content_length and record.record_type != WarcRecordType.revisit
        if stored is None and has_body and not record.reader.read(1):
            raise ValueError("the record ends early")
        return stored
    except _READING_ERRORS as error:
        return DamagedRecord(record.stream_pos, str(error))


def parse_response_record(record: WarcRecord, path: Path) -> WarcResponse | None:
    """Return a record as data; None unless it is an HTTP response.

    ``record`` must have been read from ``path`` with ``auto_decode="transfer"``. Raises ValueError
    or OSError for a truncated, damaged or too large record, and for an unreadable original.
    """
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    is_revisit = record.record_type == WarcRecordType.revisit
    if is_revisit and (
        REFERS_TO_OFFSET not in record.headers
        or record.headers.get(_PROFILE) == SERVER_NOT_MODIFIED
    ):
        return None
    is_response = (is_revisit or record.record_type == WarcRecordType.response) and record.is_http
    if not is_response or not url.lower().startswith(("http://", "https://")):
        return None
    offset = record.stream_pos
    status = record.http_headers.status_code
    if status is None:
        raise ValueError("no HTTP status line")
    headers: dict[str, str] = {}
    for name, value in record.http_headers.to_tuples():
        key = name.lower()
        joins = key in headers and key not in SINGLE_HEADERS
        headers[key] = f"{headers[key]}, {value}" if joins else value
    if is_revisit:
        body = _revisited_body(record, path)
    else:
        body = record.reader.read(MAX_BODY_BYTES + 1)
        if _is_cut_short(record, headers, body):
            raise ValueError("the record ends early")
        body = _decode_content(body, headers.get("content-encoding", ""))
    for name in _TRANSFER_HEADERS:
        headers.pop(name, None)
    headers["content-length"] = str(len(body))
    return WarcResponse(url, status, headers, body, record.record_date or EPOCH, offset)


def _revisited_body(record: WarcRecord, path: Path) -> bytes:
    """Return the decoded payload of the record that a ``revisit`` record refers to."""
    name = Path(record.headers.get(REFERS_TO_FILE) or path.name).name
    offset = record.headers[REFERS_TO_OFFSET]
    digest = record.headers.get(PAYLOAD_DIGEST)
    if offset.isdecimal():
        # The record's own file may have been renamed.
        for file in dict.fromkeys((path.with_name(name), path)):
            found = read_original_record(file, int(offset))
            if found is not None and found[1] == digest:
                original = read_response(file, int(offset))
                if original is not None:
                    return original.body
    raise ValueError(f"the record at byte {offset} of {name} that it refers to cannot be read")


def _decode_content(body: bytes, codings: str) -> bytes:
    """Remove known content codings. Raises ValueError or OSError."""
    for coding in reversed(codings.lower().split(",")):
        name = coding.strip()
        if name in _WINDOWS:
            body = _inflate(body, _WINDOWS[name])
        elif name in _STREAMS:
            body = _STREAMS[name](io.BytesIO(body)).read(MAX_BODY_BYTES + 1)
        elif name not in ("", "identity"):
            break  # such as "utf-8": the crawl takes the body as it is, too
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"a body of more than {MAX_BODY_BYTES // 10**6} MB")
    return body


def _inflate(packed: bytes, windows: Iterable[int]) -> bytes:
    """Decompress; like browsers, keep what precedes a truncation or garbage."""
    if not packed:
        return b""
    for window in windows:
        text, position = bytearray(), 0
        try:
            while position < len(packed) and len(text) <= MAX_BODY_BYTES:
                most = MAX_BODY_BYTES + 1 - len(text)
                member, position = _inflate_member(packed, position, window, most)
                text += member
        except zlib.error:
            if not text:
                continue
        return bytes(text)
    raise ValueError("its body does not match its Content-Encoding")


def _inflate_member(packed: bytes, start: int, window: int, most: int) -> tuple[bytearray, int]:
    """Decompress the member at ``start``; return at most ``most`` bytes, and where it ends.

    In pieces that grow, because zlib copies all that follows the end of a member: megabytes for
    each of many small ones.
    """
    stream = zlib.decompressobj(window)
    text, position, size = bytearray(), start, _SMALLEST_PIECE
    while not stream.eof and position < len(packed) and len(text) < most:
        piece = packed[position : position + size]
        text += stream.decompress(piece, most - len(text))
        position += len(piece) - len(stream.unused_data)
        size *= 2
    return text, position


def _is_cut_short(record: WarcRecord, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether fewer bytes came than announced; unknown for chunked bodies."""
    if "transfer-encoding" in headers:
        return False
    return len(body) < record.content_length
