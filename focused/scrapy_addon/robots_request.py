"""Requests for robots.txt: 500 KiB are read, whatever the topic's limit for pages is.

RFC 9309 (section 2.5) has at least that much parsed, so a larger file is cut
off and counts; ``DOWNLOAD_MAXSIZE`` would make a failure of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload

from focused.web.robots import MAX_ROBOTS_BYTES

_READ_BYTES = "focused_robots_read_bytes"
# What a server announces, and what a compressed file may swell to.
_MAX_WHOLE_BYTES = 16_000_000


def robots_request(url: str, meta: Mapping[str, Any]) -> Request:
    """A request for the robots.txt at ``url``; Scrapy's cookies and cache have no part in it."""
    own = {
        "dont_merge_cookies": True,
        "dont_cache": True,
        "download_maxsize": _MAX_WHOLE_BYTES,
        _READ_BYTES: 0,
    }
    return Request(url, meta={**meta, **own}, dont_filter=True)


def stop_when_enough(crawler: Crawler) -> None:
    """End the download of every :func:`robots_request` when what counts of it has come."""
    crawler.signals.connect(_count, signals.bytes_received)


def _count(data: bytes, request: Request) -> None:
    read = request.meta.get(_READ_BYTES)
    if read is None:
        return
    request.meta[_READ_BYTES] = read + len(data)
    # One byte more than is parsed tells that the last line may be cut.
    if request.meta[_READ_BYTES] > MAX_ROBOTS_BYTES:
        raise StopDownload(fail=False)
