"""The meaning of responses: outcome, dates, caching, conditional requests, Link, redirects in HTML.

The crawler and the simulator both use :func:`outcome_from_response`, so that a response has the
same effect in both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected
from focused.web.urls import normalize_url

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_NOT_MODIFIED = 304

SINGLE_HEADERS = frozenset({"content-type", "location", "retry-after", "etag", "last-modified"})
"""Headers with one value; if a server sends several, the last counts, as in Scrapy."""

CONDITIONAL_HEADERS = ("If-None-Match", "If-Modified-Since")
"""The headers of a conditional GET (RFC 9110, sections 13.1.2 and 13.1.3)."""

_MAX_DATE = 253_402_300_799  # the last second of the year 9999


def outcome_from_response(
    status: int,
    headers: Mapping[str, str],
    url: str,
    body: bytes,
    elapsed_s: float,
    now: float,
    *,
    conditional: bool = False,
) -> Outcome:
    """Return the outcome of a response: a page, a redirect or a failure.

    ``headers`` has lower-case names; ``now`` is the time of receipt in seconds since the epoch. 2xx
    is Fetched. 3xx with a usable Location is Redirected, without one BAD_REDIRECT. 404 and 410 are
    GONE, 429 THROTTLED, other 4xx CLIENT_ERROR, 5xx SERVER_ERROR, and a status outside of HTTP's
    ranges is OTHER. 304 is NotModified if the request had one of :data:`CONDITIONAL_HEADERS`
    (``conditional``), else BAD_REDIRECT. Never raises.
    """
    if 200 <= status < 300:
        return Fetched(url, status, headers, body, elapsed_s, received_at=now)
    if status == _NOT_MODIFIED and conditional:
        wait_s = retry_after_s(headers, now)
        return NotModified(url, status, headers, elapsed_s, received_at=now, retry_after_s=wait_s)
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
    """Return the seconds of a Retry-After header (RFC 9110, section 10.2.3).

    None without a readable header; never negative.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        date = parse_http_date(value)
        return None if date is None else max(0.0, date - now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def parse_http_date(text: str) -> int | None:
    """Return seconds since the epoch of an HTTP-date in any of its three formats, or None.

    See RFC 9110, section 5.6.7. Never raises.
    """
    seconds = timestamp_of(_parse_mail_date(text))
    return None if seconds is None or not 0 <= seconds <= _MAX_DATE else int(seconds)


def parse_date_time(text: str) -> datetime | None:
    """Return a time in ISO 8601 or as in mail headers (RFC 5322), or None. Never raises."""
    try:
        return datetime.fromisoformat(text[:100].strip())
    except ValueError:
        return _parse_mail_date(text)


def timestamp_of(when: datetime | None) -> float | None:
    """Return seconds since the epoch; a time without zone is UTC, one out of range None."""
    if when is None:
        return None
    try:
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _parse_mail_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text[:100])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


_DIRECTIVE = re.compile(r"([a-z-]+)\s*(?:=\s*(?:\"([^\"]*)\"|([^\s,;\"]*)))?")
_MAX_DELTA_S = 2.0**31
_UNCACHEABLE = frozenset({"no-cache", "no-store"})


def cache_lifetime_s(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds more a response may be cached as it says (RFC 9111), or None.

    ``headers`` has lower-case names. no-store and no-cache come first, then max-age, then Expires,
    each less Age. s-maxage is for shared caches and is ignored. Never raises.
    """
    directives: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(headers.get("cache-control", "").lower()):
        directives.setdefault(name, quoted or plain)
    if not _UNCACHEABLE.isdisjoint(directives):
        return 0.0
    lifetime_s = _parse_seconds(directives.get("max-age", ""))
    if lifetime_s is None:
        lifetime_s = _until_expiry_s(headers)
    if lifetime_s is None:
        return None
    return lifetime_s - (_parse_seconds(headers.get("age", "")) or 0.0)


def _until_expiry_s(headers: Mapping[str, str]) -> float | None:
    """Return Expires less Date; an invalid date has expired (RFC 9111, section 5.3)."""
    expires = headers.get("expires", "").strip()
    if not expires:
        return None
    ends_at, sent_at = parse_http_date(expires), parse_http_date(headers.get("date", ""))
    if ends_at is None:
        return 0.0
    return None if sent_at is None else float(ends_at - sent_at)


def _parse_seconds(value: str) -> float | None:
    """Return a number of seconds; one of more than 2**31 counts as that (RFC 9111, 1.2.2)."""
    whole = re.fullmatch(r"\d+", value.strip(), re.ASCII)
    return min(float(whole[0]), _MAX_DELTA_S) if whole else None


def _redirect_outcome(
    status: int, headers: Mapping[str, str], url: str, elapsed_s: float, now: float
) -> Redirected | Failed:
    location = headers.get("location", "").strip()
    target = normalize_url(_decode_location(location), url) if location else None
    wait_s = retry_after_s(headers, now)
    if target is None:
        detail = f"Location {location[:200]!r} is not an http(s) URL" if location else "no Location"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    if target == normalize_url(url):
        detail = "redirects to itself"
        return Failed(url, FailureKind.BAD_REDIRECT, status, detail, wait_s, elapsed_s)
    return Redirected(url, status, target, elapsed_s, retry_after_s=wait_s)


def _decode_location(location: str) -> str:
    """Decode a header value, read as ISO-8859-1, as UTF-8 if it is valid UTF-8."""
    if location.isascii():
        return location
    try:
        raw = location.encode("latin-1")
    except UnicodeEncodeError:  # headers of a recorded web are text
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
# A quoted string or a token.
_VALUE = r'(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+)'
_LINK = re.compile(rf"<([^<>]*)>((?:\s*+;\s*+[\w!#$&+.^`|~*-]*+(?:\s*+=\s*+{_VALUE})?+)*+)")
_PARAMETER = re.compile(rf";\s*+([\w!#$&+.^`|~*-]++)\s*+=\s*+({_VALUE})")


def linked_targets(header: str, relation: str) -> Iterator[str]:
    """Yield the targets of a Link header's links of a lower-case ``relation``, unresolved.

    Links with an ``anchor`` parameter are about another page and are ignored. The first ``rel``
    parameter counts. Never raises.
    """
    if relation not in header.lower():
        return
    for target, parameters in _LINK.findall(header[:_MAX_CHARS]):
        values: dict[str, str] = {}
        for name, value in _PARAMETER.findall(parameters):
            values.setdefault(name.lower(), value.strip('"'))
        if relation in values.get("rel", "").lower().split() and "anchor" not in values:
            yield str(target).strip()


def parse_canonical(header: str) -> str | None:
    """Return the target of the first ``rel="canonical"`` link of a Link header, or None."""
    return next(linked_targets(header, "canonical"), "") or None


_SPACE = "\t\n\f\r "
_REFRESH = re.compile(
    rf"[{_SPACE}]*+(?:[0-9]++|(?=\.))[0-9.]*+(?:\Z|(?=[{_SPACE};,])[{_SPACE}]*+[;,]?[{_SPACE}]*+)"
)
_URL_EQUALS = re.compile(rf"url[{_SPACE}]*+=[{_SPACE}]*+", re.IGNORECASE)


def parse_refresh(value: str) -> str | None:
    """Return the unresolved URL of a Refresh header or meta element.

    ``""`` means the page itself, None that the value has no effect (HTML standard, section
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
