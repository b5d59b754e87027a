"""WARC records (ISO 28500, WARC 1.1) of single responses, a gzip member each."""

from __future__ import annotations

import hashlib
import uuid
import zlib
from base64 import b32encode
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus

from focused.web.page import Fetched

_NAMESPACE = uuid.UUID("8f1d1b0e-5a3c-4b7e-9d52-0d6c1f0f7a11").bytes
# Of real pages a tenth larger than at level 4, for two thirds of the time.
_GZIP_LEVEL = 2
_GZIP = 16
"""Of zlib: with gzip's head and tail, the same bytes at any time."""
_SMALL_WINDOW = 14
# The body is stored decoded and whole: these would lie about it (WARC 1.1, section 6.3.2).
_TRANSFER_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})


def response_record(fetched: Fetched) -> bytes:
    """One gzip member holding the ``response`` record of a fetched page.

    The same response at the same time gives the same bytes.
    """
    now = fetched.came_at
    http_head = _http_head(fetched)
    digest = b32encode(hashlib.sha1(fetched.body, usedforsecurity=False).digest()).decode()
    head = (
        "WARC/1.1\r\n"
        "WARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:{_uuid5(f'{fetched.url} {now!r}')}>\r\n"
        f"WARC-Date: {_date(int(now // 1))}\r\n"
        f"WARC-Target-URI: {fetched.url}\r\n"
        f"WARC-Payload-Digest: sha1:{digest}\r\n"
        "Content-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(http_head) + len(fetched.body)}\r\n\r\n"
    )
    return _gzipped(b"".join((head.encode(), http_head, fetched.body, b"\r\n\r\n")))


def _gzipped(record: bytes) -> bytes:
    if len(record) > 1 << _SMALL_WINDOW:
        return zlib.compress(record, _GZIP_LEVEL, _GZIP + zlib.MAX_WBITS)
    # Half the time for a page of 10 kB, to the same size: most of it went into the tables of a
    # large window, which the system has to clear for each record anew.
    small = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP + _SMALL_WINDOW, 7)
    return small.compress(record) + small.flush()


def _uuid5(name: str) -> str:
    """What :func:`uuid.uuid5` says, without an object."""
    told = bytearray(hashlib.sha1(_NAMESPACE + name.encode(), usedforsecurity=False).digest()[:16])
    told[6] = told[6] & 0x0F | 0x50
    told[8] = told[8] & 0x3F | 0x80
    text = told.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@lru_cache(maxsize=64)
def _date(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _http_head(fetched: Fetched) -> bytes:
    try:
        phrase = HTTPStatus(fetched.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {fetched.status} {phrase}"]
    lines += [
        f"{name}: {' '.join(value.splitlines())}"
        for name, value in fetched.headers.items()
        if name not in _TRANSFER_HEADERS
    ]
    lines.append(f"content-length: {len(fetched.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
