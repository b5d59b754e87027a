"""From a raw HTTP response to an :data:`~focused.web.page.Outcome`.

Scrapy's side and the simulator both come through here, so that the same
response means the same to both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from focused.web.page import Failed, FailureKind, Fetched, Outcome, Redirected
from focused.web.url import normalise

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})


def outcome_of(
    status: int,
    headers: Mapping[str, str],
    url: str,
    body: bytes,
    elapsed_s: float,
    now: float,
) -> Outcome:
    """Return what a response is: a page, a pointer elsewhere, or a failure.

    ``headers`` has lower-case names; ``now`` (seconds since the epoch) is
    when it came. 2xx is Fetched; 3xx with a
    Location is Redirected, without a usable one BAD_REDIRECT; 404 and 410
    are GONE, 429 THROTTLED, other 4xx CLIENT_ERROR, and 5xx SERVER_ERROR.
    A status outside of HTTP's ranges is OTHER. Never raises.
    """
    if 200 <= status < 300:
        return Fetched(url, status, headers, body, elapsed_s, came_at=now)
    if status in _REDIRECTS:
        return _redirect(status, headers, url, elapsed_s, now)
    return Failed(
        url,
        _kind_of(status),
        status,
        f"HTTP {status}",
        retry_after_s(headers, now),
        elapsed_s,
    )


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that Retry-After asks for (RFC 9110, section 10.2.3).

    None when there is no such header or it cannot be read; never negative.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _until(value, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(date: str, now: float) -> float | None:
    try:
        when = parsedate_to_datetime(date)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, when.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _redirect(
    status: int, headers: Mapping[str, str], url: str, elapsed_s: float, now: float
) -> Redirected | Failed:
    location = headers.get("location", "").strip()
    target = normalise(_as_text(location), url) if location else None
    wait_s = retry_after_s(headers, now)
    if target is None:
        detail = f"Location {location[:200]!r} is no http(s) URL" if location else "no Location"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    if target == normalise(url):
        detail = "redirects to itself"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    return Redirected(url, status, target, elapsed_s, retry_after_s=wait_s)


def _as_text(location: str) -> str:
    """Read a header's bytes, which came as ISO-8859-1, as UTF-8 when they are that."""
    if location.isascii():
        return location
    try:
        raw = location.encode("latin-1")
    except UnicodeEncodeError:  # a recorded web keeps headers as text
        return location
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)


def _kind_of(status: int) -> FailureKind:
    if status in _GONE:
        return FailureKind.GONE
    if status == 429:
        return FailureKind.THROTTLED
    if 300 <= status < 400:
        return FailureKind.BAD_REDIRECT
    if 400 <= status < 500:
        return FailureKind.CLIENT_ERROR
    if 500 <= status < 600:
        return FailureKind.SERVER_ERROR
    return FailureKind.OTHER
