"""WARC records (ISO 28500, WARC 1.1), each a gzip member of its own.

The one module that knows how records are written; FastWARC serialises them.
:mod:`focused.web.warc_reader` reads them.
"""

from __future__ import annotations

import hashlib
import io
import re
import uuid
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from focused.web.page import Fetched, HttpExchange

IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""Profile of a ``revisit`` record whose payload is that of an earlier record."""

REFERS_TO_FILE = "WARC-Refers-To-Filename"
REFERS_TO_OFFSET = "WARC-Refers-To-File-Offset"
"""Where the record that a ``revisit`` refers to begins; extensions that Heritrix writes, too."""

PAYLOAD_DIGEST = "WARC-Payload-Digest"

_NAMESPACE = uuid.UUID("8f1d1b0e-5a3c-4b7e-9d52-0d6c1f0f7a11")
# Of real pages a tenth larger than at level 4, for three quarters of the time.
_GZIP_LEVEL = 2
_RESPONSE = "application/http;msgtype=response"
_REQUEST = "application/http;msgtype=request"
_FIELDS = "application/warc-fields"
# A body stored decoded: these would lie about it (WARC 1.1, section 6.3.2).
_BODY_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})

_CREDENTIALS = re.compile(
    rb"^(authorization|cookie|proxy-authorization):[^\r\n]*", re.IGNORECASE | re.MULTILINE
)
_SESSION = re.compile(rb"^(set-cookie2?):[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_REDACTED = rb"\1: REDACTED"
_READ_ONLY = (b"GET ", b"HEAD ")
# The body is stored without transfer coding; readers would try to remove it once more.
_TRANSFER_CODING = re.compile(rb"^(?=transfer-encoding:)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WarcCapture:
    """One response as WARC records, ready to be appended to a file.

    ``digest`` is the SHA-1 of the payload; ``head`` the HTTP response's head
    as it is recorded; ``request`` is empty when the request is not recorded.
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


@dataclass(frozen=True, slots=True)
class OriginalRecord:
    """The record that a ``revisit`` record refers to, and where it begins."""

    record_id: str
    url: str
    date: str
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class WarcRecordBuilder:
    """Makes the records of responses.

    ``warcinfo_id`` names the ``warcinfo`` record of the file that they go
    into; ``requests`` tells whether ``request`` records are made, too. Can be
    sent to another process.
    """

    warcinfo_id: str = ""
    requests: bool = False

    def capture(self, fetched: Fetched) -> WarcCapture:
        """Return the records of a fetched page. The same page at the same time: the same bytes."""
        exchange = fetched.exchange
        if exchange is None:
            exchange = HttpExchange(b"", _response_head(fetched))
        return self.capture_exchange(
            fetched.url, exchange, fetched.body, fetched.received_at, fetched.address
        )

    def capture_exchange(
        self, url: str, exchange: HttpExchange, body: bytes, received_at: float, address: str
    ) -> WarcCapture:
        """Return the records of any exchange; ``body`` counts where the exchange has none."""
        payload = body if exchange.body is None else exchange.body
        record_id = _urn(f"{url} {received_at!r}")
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

    def revisit(self, capture: WarcCapture, original: OriginalRecord) -> bytes:
        """Return the record in place of a response whose payload was recorded before."""
        fields = {
            "WARC-Target-URI": capture.url,
            "WARC-IP-Address": capture.address,
            "WARC-Warcinfo-ID": _bracketed(self.warcinfo_id),
            "WARC-Profile": IDENTICAL_PAYLOAD,
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
            capture.digest,
        )

    def metadata(self, capture: WarcCapture, about: Mapping[str, str]) -> bytes:
        """Return the ``metadata`` record that tells ``about`` the captured response."""
        fields = {
            "WARC-Target-URI": capture.url,
            "WARC-Warcinfo-ID": _bracketed(self.warcinfo_id),
            "WARC-Concurrent-To": _bracketed(capture.record_id),
            "WARC-Refers-To": _bracketed(capture.record_id),
            "Content-Type": _FIELDS,
        }
        record_id = _urn(f"{capture.record_id} metadata")
        return _record(
            WarcRecordType.metadata, record_id, capture.date, fields, _warc_fields(about)
        )

    def _request(
        self, head: bytes, response_id: str, date: str, fields: Mapping[str, str]
    ) -> bytes:
        # The body of a POST may hold a password: a request's body is never recorded.
        has_body = not head.startswith(_READ_ONLY)
        return _record(
            WarcRecordType.request,
            _urn(f"{response_id} request"),
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
    """One gzip member holding the ``response`` record of a fetched page, for a file of pages.

    The same response at the same time gives the same bytes.
    """
    return WarcRecordBuilder().capture(fetched).response


def warcinfo_record(record_id: str, file: str, date: str, about: Mapping[str, str]) -> bytes:
    """The ``warcinfo`` record that begins the file named ``file``."""
    fields = {"WARC-Filename": file, "Content-Type": _FIELDS}
    return _record(WarcRecordType.warcinfo, record_id, date, fields, _warc_fields(about))


def record_id_from_name(name: str) -> str:
    """A record ID that follows from ``name`` alone."""
    return _urn(name)


def format_http_head(first_line: str, headers: Mapping[str, str] | list[tuple[str, str]]) -> bytes:
    """Return the bytes of a request's or response's head, for clients that don't keep them."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [first_line, *(f"{name}: {' '.join(value.splitlines())}" for name, value in pairs)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def status_line(status: int) -> str:
    """The first line of a response, with the standard's phrase for its status."""
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
    record.set_bytes_content(block)
    member = io.BytesIO()
    packed = GzipWriter(member, compression_level=_GZIP_LEVEL)
    if payload_digest is None:
        record.write(packed, checksum_data=True)
    else:
        record.write(packed, checksum_data=True, payload_digest=payload_digest)
    packed.finish()
    return member.getvalue()


def format_digest(digest: bytes) -> str:
    """A SHA-1 as WARC records have it."""
    return f"sha1:{b32encode(digest).decode()}"


def _urn(name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, name)}"


def _bracketed(urn: str) -> str:
    return f"<{urn}>" if urn else ""


def _warc_fields(about: Mapping[str, str]) -> bytes:
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in about.items() if value)
    return "".join(lines).encode("utf-8", "replace")


def warc_date(seconds: float) -> str:
    """Seconds since the epoch as WARC records have them."""
    return _date(int(seconds // 1))


@lru_cache(maxsize=64)
def _date(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _redact_response_head(exchange: HttpExchange) -> bytes:
    """The response's head; its cookies are redacted where they may be a user's session."""
    asked = exchange.request_head
    head = _TRANSFER_CODING.sub(b"X-Archive-Orig-", exchange.response_head)
    is_private = bool(asked) and (
        not asked.startswith(_READ_ONLY) or _CREDENTIALS.search(asked) is not None
    )
    return _SESSION.sub(_REDACTED, head) if is_private else head


def _response_head(fetched: Fetched) -> bytes:
    headers = [
        (name, value) for name, value in fetched.headers.items() if name not in _BODY_HEADERS
    ]
    headers.append(("content-length", str(len(fetched.body))))
    return format_http_head(status_line(fetched.status), headers)
