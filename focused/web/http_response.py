"""From a raw HTTP response to an :data:`~focused.web.page.Outcome`.

Scrapy's side and the simulator both come through here, so that the same
response means the same to both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from focused.web.page import Failed, FailureKind, Fetched, Outcome, Redirected
from focused.web.urls import normalise

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})


def outcome_from_response(
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
        return Fetched(url, status, headers, body, elapsed_s, received_at=now)
    if status in _REDIRECTS:
        return _redirect_outcome(status, headers, url, elapsed_s, now)
    return Failed(
        url,
        _failure_kind(status),
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
        return _seconds_until(value, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        when = parsedate_to_datetime(date)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, when.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _redirect_outcome(
    status: int, headers: Mapping[str, str], url: str, elapsed_s: float, now: float
) -> Redirected | Failed:
    location = headers.get("location", "").strip()
    target = normalise(_decode_location(location), url) if location else None
    wait_s = retry_after_s(headers, now)
    if target is None:
        detail = f"Location {location[:200]!r} is no http(s) URL" if location else "no Location"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    if target == normalise(url):
        detail = "redirects to itself"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    return Redirected(url, status, target, elapsed_s, retry_after_s=wait_s)


def _decode_location(location: str) -> str:
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


def _failure_kind(status: int) -> FailureKind:
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


_MAX_CHARS = 16_000
# A quoted string, or a token: what may stand behind "name=".
_VALUE = r'(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+)'
_LINK = re.compile(rf"<([^<>]*)>((?:\s*+;\s*+[\w!#$&+.^`|~*-]*+(?:\s*+=\s*+{_VALUE})?+)*+)")
_PARAMETER = re.compile(rf";\s*+([\w!#$&+.^`|~*-]++)\s*+=\s*+({_VALUE})")


def parse_canonical(header: str) -> str | None:
    """Return the target of the first ``rel="canonical"`` in a Link header, as it stands there.

    The header's values may be joined by commas. A link with an ``anchor``
    speaks of another page and is passed over. Of several ``rel`` the first
    counts. Never raises.
    """
    if "canonical" not in header.lower():
        return None
    for target, parameters in _LINK.findall(header[:_MAX_CHARS]):
        told: dict[str, str] = {}
        for name, value in _PARAMETER.findall(parameters):
            told.setdefault(name.lower(), value.strip('"'))
        if "canonical" in told.get("rel", "").lower().split() and "anchor" not in told:
            return str(target).strip() or None
    return None


_SPACE = "\t\n\f\r "
_REFRESH = re.compile(
    rf"[{_SPACE}]*+(?:[0-9]++|(?=\.))[0-9.]*+(?:\Z|(?=[{_SPACE};,])[{_SPACE}]*+[;,]?[{_SPACE}]*+)"
)
_URL_EQUALS = re.compile(rf"url[{_SPACE}]*+=[{_SPACE}]*+", re.IGNORECASE)


def parse_refresh(value: str) -> str | None:
    """Return the URL of a Refresh header or meta element as it stands there.

    ``""`` when the page itself is meant, None when the value has no effect.
    These are the HTML standard's shared declarative refresh steps (section
    4.2.5.3). Never raises.
    """
    time = _REFRESH.match(value)
    if time is None:
        return None
    rest = value[time.end() :]
    if equals := _URL_EQUALS.match(rest):
        rest = rest[equals.end() :]
    quote = rest[:1]
    return rest[1:].partition(quote)[0] if quote and quote in "\"'" else rest
