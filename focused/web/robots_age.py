"""How long a robots.txt may be kept: RFC 9309 section 2.4, by RFC 9111's headers, within bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

MAX_AGE_S = 86_400.0  # RFC 9309, section 2.4
MIN_AGE_S = 600.0  # many servers forbid caching by default; this is kind enough to them

_DIRECTIVE = re.compile(r"([a-z-]+)\s*(?:=\s*(?:\"([^\"]*)\"|([^\s,;\"]*)))?")
_NOT_KEPT = frozenset({"no-cache", "no-store"})


def max_age_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that an answer with these headers stays good, 600 to 86,400.

    ``headers`` has lower-case names. no-store and no-cache, then max-age, then
    Expires are heard, each less Age; without any of them a day it is. s-maxage
    is for caches that many share, and is passed over. Never raises.
    """
    return min(MAX_AGE_S, max(MIN_AGE_S, _told_s(headers)))


def _told_s(headers: Mapping[str, str]) -> float:
    directives: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(headers.get("cache-control", "").lower()):
        directives.setdefault(name, quoted or plain)
    if not _NOT_KEPT.isdisjoint(directives):
        return 0.0
    told = _whole(directives.get("max-age", ""))
    if told is None:
        told = _until_expiry_s(headers)
    if told is None:
        return MAX_AGE_S
    return told - (_whole(headers.get("age", "")) or 0.0)


def _until_expiry_s(headers: Mapping[str, str]) -> float | None:
    """Expires less Date; one that is no date has passed (RFC 9111, section 5.3)."""
    expires = headers.get("expires", "").strip()
    if not expires:
        return None
    try:
        ends_at = parsedate_to_datetime(expires).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    try:
        return ends_at - parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _whole(value: str) -> float | None:
    return float(value) if re.fullmatch(r"\d{1,10}", value.strip(), re.ASCII) else None
