"""HTTP responses out of WARC files, reading on behind damage.

Every record we write is a gzip member of its own (WARC 1.1, annex D), so it
can be read alone from its offset; :mod:`focused.web.warc_writer` writes them. Bodies
are handed out decoded: ``Content-Encoding`` and ``Transfer-Encoding`` are
undone, and ``Content-Length`` is that of the decoded body. A ``revisit``
record of ours is handed out with the payload of the record it refers to.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from fastwarc.stream_io import BrotliReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from focused.web.warc_writer import PAYLOAD_DIGEST, REFERS_TO_FILE, REFERS_TO_OFFSET, OriginalRecord

GZIP_MAGIC = b"\x1f\x8b\x08"
WARC_MAGIC = b"WARC/1."
MAX_BODY_BYTES = 100_000_000
"""Of a decoded body; a larger one is damage, or was made to fill the memory."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READING_ERRORS = (OSError, ValueError, EOFError)
_HEAD_BYTES = 512  # of a gzip member: more than its own header and a record's first line
_CHUNK_BYTES = 1 << 16
_TRANSFER_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
# zlib's window sizes: gzip; deflate with zlib's head, as the RFC has it, and without.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
_STREAMS = {"br": BrotliReader, "zstd": ZstdReader}


@dataclass(frozen=True, slots=True)
class WarcResponse:
    """A response as a WARC file holds it; ``offset`` in bytes from the file's start."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    recorded_at: datetime
    offset: int


@dataclass(frozen=True, slots=True)
class DamagedRecord:
    """A stretch of a WARC file that holds no readable record."""

    offset: int
    reason: str


def read_responses(path: Path) -> Iterator[WarcResponse | DamagedRecord]:
    """All HTTP responses of a WARC file, gzipped or not, in their order.

    Damage is yielded, not raised: reading goes on at the next place where a
    record begins. Records of other types are skipped, and so are ``revisit``
    records that don't tell the file and offset of what they refer to.
    """
    with path.open("rb") as file:
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
            # The iterator may also end without a word, as if the file did.
            beyond = next(starts(file, last.offset + 1), -1)
            if not reason and beyond < 0:
                return
            if not last.damaged:
                yield DamagedRecord(max(beyond, last.offset + 1), reason or "a record is cut short")
            position = _first_readable(file, starts(file, last.offset + 1))


@dataclass(slots=True)
class _ReadPosition:
    """How far reading came: offset of the last record seen, whether it was damaged."""

    offset: int
    damaged: bool = False


def read_response(path: Path, offset: int) -> WarcResponse | None:
    """The response whose record begins at ``offset``; None when there is no readable one."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            record = next(iter(ArchiveIterator(file, auto_decode="transfer")), None)
            return None if record is None else parse_response_record(record, path)
    except _READING_ERRORS:
        return None


def read_original_record(path: Path, offset: int) -> tuple[OriginalRecord, str] | None:
    """The record that begins at ``offset``, for a ``revisit`` record, and its payload's digest.

    None when there is no readable response.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            record = next(iter(ArchiveIterator(file, parse_http=False)), None)
            if record is None or record.record_type != WarcRecordType.response:
                return None
            fields = {name: record.headers.get(name) or "" for name in _ORIGINAL_FIELDS}
    except _READING_ERRORS:
        return None
    record_id, url, date, digest = fields.values()
    return OriginalRecord(record_id.strip("<>"), url, date, path.name, offset), digest


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
    for start in _find_offsets(file, GZIP_MAGIC, position):
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
    for start in _find_offsets(file, WARC_MAGIC, position):
        file.seek(max(start - 4, 0))
        if start == 0 or file.read(4).endswith(b"\n"):
            yield start


def _find_offsets(file: BinaryIO, magic: bytes, position: int) -> Iterator[int]:
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


def _parse_or_damage(record: WarcRecord, path: Path) -> WarcResponse | DamagedRecord | None:
    try:
        # Of a record cut inside its header the iterator gives what there is.
        if not (record.headers.get("Content-Length") or "").strip().isdecimal():
            raise ValueError("the record's header ends early")
        stored = parse_response_record(record, path)
        if stored is None and record.content_length and not record.reader.read(1):
            raise ValueError("the record ends early")
        return stored
    except _READING_ERRORS as error:
        return DamagedRecord(record.stream_pos, str(error))


def parse_response_record(record: WarcRecord, path: Path) -> WarcResponse | None:
    """The record as data; None when it isn't an HTTP response over http(s).

    ``record`` must have been read with ``auto_decode="transfer"`` from the
    file ``path``. Raises ValueError or OSError when it is cut short, damaged
    or too large, or refers to a record that cannot be read.
    """
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    is_revisit = record.record_type == WarcRecordType.revisit
    if is_revisit and REFERS_TO_OFFSET not in record.headers:
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
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
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
    return WarcResponse(url, status, headers, body, record.record_date, offset)


def _revisited_body(record: WarcRecord, path: Path) -> bytes:
    """The decoded payload of the record that a ``revisit`` record refers to."""
    name = Path(record.headers.get(REFERS_TO_FILE) or path.name).name
    offset = record.headers[REFERS_TO_OFFSET]
    digest = record.headers.get(PAYLOAD_DIGEST)
    if offset.isdecimal():
        # A file of its own may have been renamed.
        for file in dict.fromkeys((path.with_name(name), path)):
            found = read_original_record(file, int(offset))
            if found is not None and found[1] == digest:
                original = read_response(file, int(offset))
                if original is not None:
                    return original.body
    raise ValueError(f"the record at byte {offset} of {name} that it refers to cannot be read")


def _decode_content(body: bytes, codings: str) -> bytes:
    """``body`` without its content codings. Raises ValueError or OSError."""
    for coding in reversed(codings.lower().split(",")):
        name = coding.strip()
        if name in _WINDOWS:
            body = _inflate(body, _WINDOWS[name])
        elif name in _STREAMS:
            body = _STREAMS[name](io.BytesIO(body)).read(MAX_BODY_BYTES + 1)
        elif name not in ("", "identity"):
            raise ValueError(f"the content coding {name[:40]!r} is unknown")
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"a body of more than {MAX_BODY_BYTES // 10**6} MB")
    return body


def _inflate(packed: bytes, windows: Iterable[int]) -> bytes:
    """Return what can be unpacked, as browsers do: what ends early or in noise is kept."""
    if not packed:
        return b""
    for window in windows:
        text, rest = bytearray(), packed
        try:
            while rest and len(text) <= MAX_BODY_BYTES:
                stream = zlib.decompressobj(window)
                text += stream.decompress(rest, MAX_BODY_BYTES + 1 - len(text))
                rest = stream.unused_data
        except zlib.error:
            if not text:
                continue
        return bytes(text)
    raise ValueError("its body is not packed as its Content-Encoding says")


def _is_cut_short(record: WarcRecord, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether fewer bytes came than announced (not known for a body in chunks)."""
    if "transfer-encoding" in headers:
        return False
    return len(body) < record.content_length
