"""Create WARC records (ISO 28500, WARC 1.1), each as a gzip member of its own.

:mod:`focused.archive.warc_files` writes them.
"""

from __future__ import annotations

import hashlib
import io
import re
import uuid
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from fastwarc.warc import WarcRecord, WarcRecordType
from isal import isal_zlib

from focused.web.page import RENDERED_TYPE, Fetched, HttpExchange

IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""Profile of ``revisit`` records with the payload of an earlier record."""

SERVER_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
"""Profile of ``revisit`` records of responses with status 304."""

REFERS_TO_FILE = "WARC-Refers-To-Filename"
REFERS_TO_OFFSET = "WARC-Refers-To-File-Offset"
"""Where the record that a ``revisit`` refers to begins; Heritrix writes these extensions too."""

PAYLOAD_DIGEST = "WARC-Payload-Digest"

_NAMESPACE = uuid.UUID("8f1d1b0e-5a3c-4b7e-9d52-0d6c1f0f7a11")
# Of ISA-L's levels 0 to 3, which are not zlib's: as small as zlib's level 2, in half of its time.
_ISAL_LEVEL = 2
_GZIP_WINDOW_BITS = 31
_RESPONSE = "application/http;msgtype=response"
_REQUEST = "application/http;msgtype=request"
_FIELDS = "application/warc-fields"
# Wrong for a body that is stored decoded (WARC 1.1, section 6.3.2).
_BODY_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})

_CREDENTIALS = re.compile(
    rb"^(authorization|cookie|proxy-authorization):[^\r\n]*", re.IGNORECASE | re.MULTILINE
)
_SESSION = re.compile(rb"^(set-cookie2?):[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_REDACTED = rb"\1: REDACTED"
_READ_ONLY = (b"GET ", b"HEAD ")
# The body is stored without transfer coding; readers would try to remove it.
_TRANSFER_CODING = re.compile(rb"^(?=transfer-encoding:)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WarcCapture:
    """One response as WARC records.

    ``digest`` is the SHA-1 of the payload; ``head`` is the recorded head of the HTTP response;
    ``request`` is empty if the request is not recorded, ``conversion`` if the page was not
    rendered.
    """

    record_id: str
    url: str
    date: str
    address: str
    digest: bytes
    payload_bytes: int
    head: bytes
    response: bytes
    request: bytes
    conversion: bytes = b""


@dataclass(frozen=True, slots=True)
class OriginalRecord:
    """The record that a ``revisit`` record refers to, and its offset."""

    record_id: str
    url: str
    date: str
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class WarcRecordBuilder:
    """Builds the records of responses; picklable.

    ``warcinfo_id`` names the ``warcinfo`` record of the file; ``requests`` adds ``request``
    records.
    """

    warcinfo_id: str = ""
    requests: bool = False

    def capture(self, fetched: Fetched) -> WarcCapture:
        """Return the records of a fetched page; deterministic."""
        exchange = fetched.exchange
        if exchange is None:
            exchange = HttpExchange(b"", _response_head(fetched))
        capture = self.capture_exchange(
            fetched.url, exchange, fetched.body, fetched.received_at, fetched.address
        )
        if fetched.rendered is None:
            return capture
        return replace(capture, conversion=self._conversion(capture, fetched.rendered))

    def capture_exchange(
        self, url: str, exchange: HttpExchange, body: bytes, received_at: float, address: str
    ) -> WarcCapture:
        """Return the records of an exchange; ``body`` is used if the exchange has none."""
        payload = body if exchange.body is None else exchange.body
        record_id = record_id_from_name(f"{url} {received_at!r}")
        date = warc_date(received_at)
        digest = hashlib.sha1(payload, usedforsecurity=False).digest()
        head = _redact_response_head(exchange)
        fields = {
            "WARC-Target-URI": url,
            "WARC-IP-Address": address,
            "WARC-Warcinfo-ID": _bracketed(self.warcinfo_id),
        }
        response = _record(
            WarcRecordType.response,
            record_id,
            date,
            {**fields, "Content-Type": _RESPONSE, "WARC-Truncated": exchange.truncated},
            head + payload,
            digest,
        )
        request = b""
        if self.requests and exchange.request_head:
            request = self._request(exchange.request_head, record_id, date, fields)
        return WarcCapture(
            record_id, url, date, address, digest, len(payload), head, response, request
        )

    def revisit(
        self, capture: WarcCapture, original: OriginalRecord, profile: str = IDENTICAL_PAYLOAD
    ) -> bytes:
        """Return the record of a response whose payload was recorded before.

        ``profile`` is :data:`IDENTICAL_PAYLOAD` or :data:`SERVER_NOT_MODIFIED` (WARC 1.1, 6.7).
        """
        fields = {
            "WARC-Target-URI": capture.url,
            "WARC-IP-Address": capture.address,
            "WARC-Warcinfo-ID": _bracketed(self.warcinfo_id),
            "WARC-Profile": profile,
            "WARC-Refers-To": _bracketed(original.record_id),
            "WARC-Refers-To-Target-URI": original.url,
            "WARC-Refers-To-Date": original.date,
            REFERS_TO_FILE: original.file,
            REFERS_TO_OFFSET: str(original.offset),
            "Content-Type": _RESPONSE,
        }
        return _record(
            WarcRecordType.revisit,
            capture.record_id,
            capture.date,
            fields,
            capture.head,
            capture.digest if profile == IDENTICAL_PAYLOAD else None,
        )

    def _conversion(self, capture: WarcCapture, html: bytes) -> bytes:
        """Return the record of a page as a browser rendered it (WARC 1.1, 6.9)."""
        fields = {
            "WARC-Target-URI": capture.url,
            "WARC-Warcinfo-ID": _bracketed(self.warcinfo_id),
            "WARC-Refers-To": _bracketed(capture.record_id),
            "Content-Type": RENDERED_TYPE,
        }
        record_id = record_id_from_name(f"{capture.record_id} conversion")
        return _record(WarcRecordType.conversion, record_id, capture.date, fields, html)

    def _request(
        self, head: bytes, response_id: str, date: str, fields: Mapping[str, str]
    ) -> bytes:
        # Never record a request's body: it may hold a password.
        has_body = not head.startswith(_READ_ONLY)
        return _record(
            WarcRecordType.request,
            record_id_from_name(f"{response_id} request"),
            date,
            {
                **fields,
                "WARC-Concurrent-To": _bracketed(response_id),
                "Content-Type": _REQUEST,
                "WARC-Truncated": "unspecified" if has_body else "",
            },
            _CREDENTIALS.sub(_REDACTED, head),
        )


def response_record(fetched: Fetched) -> bytes:
    """Return the ``response`` record of a fetched page; deterministic."""
    return WarcRecordBuilder().capture(fetched).response


def warcinfo_record(record_id: str, file: str, date: str, about: Mapping[str, str]) -> bytes:
    """Return the ``warcinfo`` record that begins the file ``file``."""
    fields = {"WARC-Filename": file, "Content-Type": _FIELDS}
    return _record(WarcRecordType.warcinfo, record_id, date, fields, _warc_fields(about))


def format_http_head(first_line: str, headers: Mapping[str, str] | list[tuple[str, str]]) -> bytes:
    """Return the head of a request or response as bytes."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [first_line, *(f"{name}: {' '.join(value.splitlines())}" for name, value in pairs)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def status_line(status: int) -> str:
    """Return the first line of a response, with the standard phrase."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    return f"HTTP/1.1 {status} {phrase}"


def _record(
    kind: Any,
    record_id: str,
    date: str,
    fields: Mapping[str, str],
    block: bytes,
    payload_digest: bytes | None = None,
) -> bytes:
    record = WarcRecord()
    record.init_headers(kind, record_urn=record_id.removeprefix("urn:").encode())
    headers = record.headers
    headers["WARC-Date"] = date
    for name, value in fields.items():
        if value:
            headers[name] = value
    if payload_digest is not None:
        headers[PAYLOAD_DIGEST] = format_digest(payload_digest)
    record.set_bytes_content(block)
    plain = io.BytesIO()
    # A member of gzip has a checksum, so that another hash of the block would protect nothing.
    record.write(plain)
    return isal_zlib.compress(plain.getbuffer(), _ISAL_LEVEL, _GZIP_WINDOW_BITS)


def format_digest(digest: bytes) -> str:
    """Return a SHA-1 digest as in WARC headers."""
    return f"sha1:{b32encode(digest).decode()}"


def record_id_from_name(name: str) -> str:
    """Return a record ID derived from ``name``."""
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, name)}"


def _bracketed(urn: str) -> str:
    return f"<{urn}>" if urn else ""


def _warc_fields(about: Mapping[str, str]) -> bytes:
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in about.items() if value)
    return "".join(lines).encode("utf-8", "replace")


def warc_date(seconds: float) -> str:
    """Return seconds since the epoch as a WARC date."""
    return _date(int(seconds // 1))


@lru_cache(maxsize=64)
def _date(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _redact_response_head(exchange: HttpExchange) -> bytes:
    """Return the response's head; cookies are redacted if the request had credentials or a body."""
    request_head = exchange.request_head
    head = _TRANSFER_CODING.sub(b"X-Archive-Orig-", exchange.response_head)
    is_private = bool(request_head) and (
        not request_head.startswith(_READ_ONLY) or _CREDENTIALS.search(request_head) is not None
    )
    return _SESSION.sub(_REDACTED, head) if is_private else head


def _response_head(fetched: Fetched) -> bytes:
    headers = [
        (name, value) for name, value in fetched.headers.items() if name not in _BODY_HEADERS
    ]
    headers.append(("content-length", str(len(fetched.body))))
    return format_http_head(status_line(fetched.status), headers)
