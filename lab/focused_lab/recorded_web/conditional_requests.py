"""The server's side of conditional requests (RFC 9110, section 13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from focused.web.http_response import parse_http_date

_ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")')
_KEPT_HEADERS = frozenset(
    {"cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary"}
)


def is_conditional(request_headers: Mapping[str, str]) -> bool:
    """Whether a GET request with these headers may be answered with 304."""
    return "if-none-match" in request_headers or "if-modified-since" in request_headers


def is_not_modified(request_headers: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Whether 304 is the answer to a GET request, instead of a 200 with ``headers``.

    Header names are in lower case. Entity tags are compared weakly. If-Modified-Since counts only
    without If-None-Match.
    """
    tags = request_headers.get("if-none-match")
    if tags is not None:
        own = _ENTITY_TAG.fullmatch(headers.get("etag", "").strip())
        return tags.strip() == "*" or (own is not None and own[1] in _ENTITY_TAG.findall(tags))
    since = parse_http_date(request_headers.get("if-modified-since", ""))
    modified = parse_http_date(headers.get("last-modified", ""))
    return since is not None and modified is not None and modified <= since


def headers_of_not_modified(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers of a 200 that a 304 has too (RFC 9110, section 15.4.5)."""
    return {name: value for name, value in headers.items() if name.lower() in _KEPT_HEADERS}


def http_date(time: float) -> str:
    """Return seconds since the epoch as an HTTP date."""
    return format_datetime(datetime.fromtimestamp(int(time), UTC), usegmt=True)
