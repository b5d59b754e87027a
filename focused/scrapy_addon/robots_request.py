"""Requests for robots.txt: at least 500 KiB are read, whatever the limit for pages is.

RFC 9309 (section 2.5) requires to parse that much. A larger file is truncated, not failed, whatever
its announced or decoded size.
"""

from __future__ import annotations

import zlib

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response

from focused.scrapy_addon.outcomes import ContentDecodingError
from focused.scrapy_addon.request_state import (
    META_KEY,
    RequestState,
    state_of,
    update_state,
)
from focused.web.robots.robots_file import MAX_ROBOTS_BYTES, cut_to_whole_lines

ACCEPTED_CODINGS = "gzip, deflate"
"""Codings that :func:`decode_robots_response` decodes."""

_WINDOWS = {b"gzip": (31,), b"x-gzip": (31,), b"deflate": (15, -15)}
_NO_CODINGS = frozenset((b"", b"identity", b"none", b"utf-8", b"utf8", b"iso-8859-1"))


def robots_request(url: str, state: RequestState | None = None) -> Request:
    """Return a request for the robots.txt at ``url``, without cookies and cache."""
    meta = {
        META_KEY: msgspec.structs.replace(state or RequestState(), robots_bytes=0),
        "dont_merge_cookies": True,
        "dont_cache": True,
        # No limit: count_robots_bytes stops the download.
        "download_maxsize": 0,
        "download_warnsize": 0,
    }
    return Request(url, meta=meta, dont_filter=True)


def is_robots_request(request: Request) -> bool:
    """Whether :func:`robots_request` created it."""
    return state_of(request).robots_bytes is not None


def limit_robots_downloads(crawler: Crawler) -> None:
    """Stop the download of each :func:`robots_request` after 500 KiB."""
    crawler.signals.connect(count_robots_bytes, signals.bytes_received)


def decode_robots_response(response: Response) -> Response:
    """Decode the first 500 KiB of a robots.txt, which makes decompression bombs harmless.

    Raises ContentDecodingError for a wrong, truncated or unexpected coding.
    """
    header = b",".join(response.headers.getlist("Content-Encoding")).lower().split(b",")
    codings = [coding for each in header if (coding := each.strip()) not in _NO_CODINGS]
    if not codings:
        return response
    body, is_cut = response.body, "download_stopped" in response.flags
    for coding in reversed(codings):
        body = _inflate(body, coding, is_cut=is_cut)
        is_cut = is_cut or len(body) > MAX_ROBOTS_BYTES
    unpacked = response.replace(body=cut_to_whole_lines(body) if is_cut else body)
    del unpacked.headers["Content-Encoding"]
    return unpacked


def _inflate(packed: bytes, coding: bytes, *, is_cut: bool) -> bytes:
    """Return one byte more than is parsed at most.

    Truncation is not an error if the download was stopped (``is_cut``).
    """
    for window in _WINDOWS.get(coding, ()):
        text, rest = b"", packed
        try:
            while len(text) <= MAX_ROBOTS_BYTES:
                stream = zlib.decompressobj(window)
                text += stream.decompress(rest, MAX_ROBOTS_BYTES + 1 - len(text))
                rest = stream.unused_data
                if not rest.startswith(b"\x1f\x8b"):  # another member of a gzip file
                    break
        except zlib.error:
            continue
        if stream.eof or is_cut or len(text) > MAX_ROBOTS_BYTES:
            return text
    raise ContentDecodingError(
        f"robots.txt is not packed by {coding.decode('latin-1')}, or breaks off"
    )


def count_robots_bytes(data: bytes, request: Request) -> None:
    """Handle bytes_received: stop the download of a long robots.txt."""
    read = state_of(request).robots_bytes
    if read is None:
        return
    read += len(data)
    update_state(request, robots_bytes=read)
    # One byte more shows that the last line may be incomplete.
    if read > MAX_ROBOTS_BYTES:
        raise StopDownload(fail=False)
