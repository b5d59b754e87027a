"""Parse robots directives of a page: meta robots and X-Robots-Tag.

They follow Google's "Robots meta tag" specification, and the stricter reading where it is silent:
directives for all robots and for this one are combined, and blanks separate directives like commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from focused.web.http_response import parse_date_time, timestamp_of

X_ROBOTS_SEPARATOR = "\n"
"""Separator between the values of several X-Robots-Tag headers."""

ALL_ROBOTS = "robots"

_MAX_CHARS = 10_000
_NAMED = re.compile(r"\s*+(?!unavailable_after|max-)([\w.-]++)\s*+:(.*)", re.DOTALL)
_UNTIL = re.compile(r"\s*+unavailable_after\s*+:(.*)", re.DOTALL)
# fmt: off
_KNOWN_WORDS = frozenset({
    "all", "index", "follow", "none", "noindex", "nofollow", "noarchive", "nocache", "nosnippet",
    "noimageindex", "notranslate", "indexifembedded", "max-snippet", "max-image-preview",
    "max-video-preview", "noai", "noimageai",
})
# fmt: on
_MAX_DATE_PARTS = 3  # "Saturday, 25-Jun-10 15:00:00 GMT" has two


@dataclass(frozen=True, slots=True)
class RobotsDirectives:
    """``unavailable_after`` is in seconds since the epoch; from then on the page is noindex."""

    noindex: bool = False
    nofollow: bool = False
    unavailable_after: float | None = None


def parse_robots_directives(header: str, metas: Iterable[str], robot: str = "") -> RobotsDirectives:
    """Return the directives for ``robot``, a product token; ``""``: those for all robots.

    ``header`` joins the X-Robots-Tag values with :data:`X_ROBOTS_SEPARATOR`. A name before a
    directive (``googlebot: noindex, nofollow``) applies up to the next name. ``metas`` are the
    contents of the matching meta elements. Never raises.
    """
    words, ends = _read_directives(header, metas, robot)
    return RobotsDirectives(
        noindex=not words.isdisjoint(("noindex", "none")),
        nofollow=not words.isdisjoint(("nofollow", "none")),
        unavailable_after=min(ends, default=None),
    )


def robots_words(header: str, metas: Iterable[str]) -> frozenset[str]:
    """Return all known directives for all robots, without their arguments; see RobotsDirectives.

    ``none`` stands for noindex and nofollow, as the page has it.
    """
    words, ends = _read_directives(header, metas, "")
    known = {word.partition(":")[0] for word in words} & _KNOWN_WORDS
    return frozenset(known | ({"unavailable_after"} if ends else set()))


def _read_directives(header: str, metas: Iterable[str], robot: str) -> tuple[set[str], list[float]]:
    """Return the words that apply to ``robot``, and the times of ``unavailable_after``."""
    words: set[str] = set()
    ends: list[float] = []
    for value in header[:_MAX_CHARS].lower().split(X_ROBOTS_SEPARATOR):
        _parse_value(value, robot.lower(), words, ends)
    for content in metas:
        _parse_value(content[:_MAX_CHARS].lower(), None, words, ends)
    return words, ends


def _parse_value(value: str, robot: str | None, words: set[str], ends: list[float]) -> None:
    """Add the directives of one value; it contains no names if ``robot`` is None."""
    ours = True
    parts = value.split(",")
    for place, part in enumerate(parts):
        named = _NAMED.fullmatch(part) if robot is not None else None
        if named:
            ours, part = named[1] in (robot, ALL_ROBOTS), named[2]
        if not ours:
            continue
        until = _UNTIL.fullmatch(part)
        if until is None:
            words.update(part.replace(";", " ").split())
            continue
        rest = [until[1], *parts[place + 1 : place + _MAX_DATE_PARTS]]
        ends.extend(_first_date(rest))


def _first_date(parts: list[str]) -> list[float]:
    """Return the date at the beginning of the comma-separated parts, if any."""
    for count in range(1, len(parts) + 1):
        when = parse_date_time(",".join(parts[:count]).strip().upper())
        if (seconds := timestamp_of(when)) is not None:
            return [seconds]
    return []
