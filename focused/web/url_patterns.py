"""Generalise URLs to patterns, and find the parts in which two URLs differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import xxhash

from focused.web.host_names import registered_domain

MAX_PARTS_PER_URL = 8
PARAMETER_ORDER = "order of parameters"
"""Ignorable part of all parameters together: their order."""
LETTER_CASE, INDEX_PAGE, TRAILING_SLASH = "letter case", "index page", "trailing slash"
"""Ignorable parts of the whole path."""
SPELLING_PARTS = (PARAMETER_ORDER, LETTER_CASE, INDEX_PAGE, TRAILING_SLASH)
"""Ignorable parts without a value: URLs that differ only in these are spelled differently."""

_DAY = r"(?:1[5-9]|2[0-9])\d\d(?P<by>[-/_.]?)(?:0?[1-9]|1[0-2])(?:(?P=by)(?:0?[1-9]|[12]\d|3[01]))?"
_DATE = re.compile(rf"(?<![0-9A-Za-z]){_DAY}(?![0-9A-Za-z])")
_LAST_DATE = re.compile(r"\{date\}/?(?:\.[a-z]{2,5})?")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])", re.I)
_NUMBER = re.compile(r"\d+")
_MAX_VALUE_CHARS = 100
_ROOT_SEGMENTS = 4  # of "https://host/"
_TOKEN = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[0-9A-Za-z_()~-]{12,}")
_INDEX = re.compile(
    r"(?:index|default|home|welcome)\.(?:x?html?|shtml|php\d?|aspx?|jsp|cfm|cgi|pl)", re.IGNORECASE
)
_CAPITAL = re.compile(r"(?<!%)(?<!%[0-9A-F])[A-Z]")  # escapes are normalised already
_DATE_NAMES = frozenset({"date", "day", "month", "year", "week", "y", "yr", "mon", "mm", "yyyy"})
_DATE_VALUE = re.compile(rf"{_DAY}(?:T.*)?")


class UrlPatternKind(StrEnum):
    """What the URLs of a pattern have in common."""

    CALENDAR = "calendar"
    QUERY = "query"
    NUMBERED = "numbered"
    SCRIPT = "script"
    DIRECTORY = "directory"
    HOST = "host"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A set of URLs; ``name`` is unique among all patterns."""

    kind: UrlPatternKind
    name: str


def patterns_of_url(url: str) -> tuple[UrlPattern, ...]:
    """Return the patterns of a normalised URL, from the most specific to its domain.

    - *calendar*, *query* or *numbered*: the path with ``{date}``, ``{hex}`` and ``{n}`` for what
      varies, and the sorted names of the parameters; only if something varies. The path of a
      calendar ends in a date, or a parameter is a date.
    - *script*: the same path with any parameters.
    - *directory*: everything below the first folder of the path.
    - *host*, and *domain* as registered.
    """
    head, _, query = url.partition("?")
    _, _, rest = head.partition("://")
    host, _, path = rest.partition("/")
    general = _generalise(f"/{path}")
    places = []
    if query:
        names = "&".join(sorted({part.partition("=")[0] for part in query.split("&")}))
        kind = UrlPatternKind.CALENDAR if _has_date(query) else UrlPatternKind.QUERY
        places.append(UrlPattern(kind, f"{host}{general}?{names or '='}"))
        places.append(UrlPattern(UrlPatternKind.SCRIPT, f"{host}{general}?"))
    elif "{" in general:
        dated = _LAST_DATE.search(general)
        is_last = dated is not None and dated.end() == len(general)
        places.append(
            UrlPattern(
                UrlPatternKind.CALENDAR if is_last else UrlPatternKind.NUMBERED, f"{host}{general}"
            )
        )
    top = path.partition("/")[0] + "/" if "/" in path else ""
    places.append(UrlPattern(UrlPatternKind.DIRECTORY, f"{host}/{top}*"))
    places.append(UrlPattern(UrlPatternKind.HOST, host))
    places.append(UrlPattern(UrlPatternKind.DOMAIN, f"*.{registered_domain(host)}"))
    return tuple(places)


@lru_cache(maxsize=1_024)
def ignorable_parts(url: str) -> tuple[str, ...]:
    """Return the names of at most eight parts of a normalised URL that may not affect the content.

    These are its spelling (:data:`SPELLING_PARTS`), folders that look like a token, and parameters.
    """
    head, _, query = url.partition("?")
    spelled = [slot for slot in (LETTER_CASE, INDEX_PAGE, TRAILING_SLASH) if _has_part(slot, head)]
    folders = [f"folder {n}" for n, each in _folders(head) if _TOKEN.fullmatch(each)]
    names = [part.partition("=")[0] for part in query.split("&") if part]
    order = [PARAMETER_ORDER] if len(names) > 1 else []
    parts = (*order, *spelled, *folders, *(f"?{name}" for name in names))
    return tuple(dict.fromkeys(parts))[:MAX_PARTS_PER_URL]


def without_parts(url: str, slots: Collection[str]) -> str:
    """Return the URL without these parts, as a key for URLs that differ only in them.

    A part may be a parameter with its value, ``"?sort=up"``. The result is never a URL: without any
    part, a "?" is appended to a URL that has none.
    """
    head, mark, query = url.partition("?")
    if not slots:
        return url if mark else f"{url}?"
    segments = head.split("/")
    for n, each in _folders(head):
        if f"folder {n}" in slots and _TOKEN.fullmatch(each):
            segments[n] = "{}"
    if INDEX_PAGE in slots and _INDEX.fullmatch(segments[-1]):
        segments[-1] = ""
    if TRAILING_SLASH in slots and segments[-1] == "" and len(segments) > _ROOT_SEGMENTS:
        segments.pop()
    path = "/".join(segments)
    parts = []
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if f"?{name}" not in slots and f"?{name}={value}" not in slots:
            parts.append(part)
    if PARAMETER_ORDER in slots:
        parts.sort()
    return (path.lower() if LETTER_CASE in slots else path) + "?" + "&".join(parts)


def part_with_value(url: str, slot: str) -> str:
    """Return a parameter's part with its value in ``url`` (``"?sort=up"``); any other part
    unchanged.

    A hash replaces long values and several values.
    """
    if not slot.startswith("?"):
        return slot
    parts = [part.partition("=") for part in url.partition("?")[2].split("&")]
    values = [value for name, _, value in parts if name == slot[1:]]
    if len(values) == 1 and len(values[0]) <= _MAX_VALUE_CHARS:
        return f"{slot}={values[0]}"
    return f"{slot}={xxhash.xxh3_64_hexdigest('&'.join(values).encode())}"


def part_name(slot: str) -> str:
    """Return a part without the value that :func:`part_with_value` added."""
    return slot.partition("=")[0]


def differing_parts(one: str, other: str) -> tuple[str, ...]:
    """Return the parts in which two normalised URLs differ; else none."""
    left = list(dict.fromkeys((*ignorable_parts(one), *ignorable_parts(other))))
    if one == other or without_parts(one, left) != without_parts(other, left):
        return ()
    # Drop equal parameters first: without one of them no order would be left to compare.
    for slot in reversed(tuple(left)):
        fewer = [each for each in left if each != slot]
        if without_parts(one, fewer) == without_parts(other, fewer):
            left = fewer
    return tuple(left)


def looks_like_token(value: str) -> bool:
    """Whether a parameter's value or a folder looks machine-generated."""
    return _TOKEN.fullmatch(value) is not None


def _has_part(slot: str, head: str) -> bool:
    """Whether removing a part of the whole path changes scheme, host and path."""
    last = head[head.rindex("/") + 1 :]
    if slot == INDEX_PAGE:
        return _INDEX.fullmatch(last) is not None
    if slot == TRAILING_SLASH:
        return not last and head.count("/") >= _ROOT_SEGMENTS
    return _CAPITAL.search(head, len("https://")) is not None


def _folders(head: str) -> list[tuple[int, str]]:
    """Return the folders of scheme, host and path with their indices."""
    return list(enumerate(head.split("/")))[3:-1]


def _generalise(path: str) -> str:
    for pattern, name in ((_DATE, "{date}"), (_HEX, "{hex}")):
        path = pattern.sub(name, path)
    return _NUMBER.sub("{n}", path)


def _has_date(query: str) -> bool:
    parts = [part.partition("=") for part in query.split("&")]
    return any(
        (name.lower() in _DATE_NAMES and any(map(str.isdigit, value)))
        or _DATE_VALUE.fullmatch(value)
        for name, _, value in parts
    )


MAX_PREFIX_FOLDERS = 8
"""Folders of a prefix at most, which bounds the work for one URL."""


def prefixes_and_suffixes(url: str) -> Iterator[tuple[str, str]]:
    """Yield each (prefix, suffix) of a normalised URL, beginning with its host.

    A suffix begins with a slash of the path and includes the query.
    """
    path_ends = url.find("?")
    at = url.index("/", url.index("//") + 2)
    for _ in range(MAX_PREFIX_FOLDERS + 1):
        yield url[:at], url[at:]
        at = url.find("/", at + 1, None if path_ends < 0 else path_ends)
        if at < 0:
            return


def common_suffix(url: str, other: str) -> tuple[str, str, str] | None:
    """Return the prefixes of two different URLs before their longest common suffix.

    The result is (prefix of ``url``, prefix of ``other``, suffix). None if the URLs have no common
    suffix, or a prefix has more than :data:`MAX_PREFIX_FOLDERS` folders.
    """
    head, query, values = url.partition("?")
    other_head, other_query, other_values = other.partition("?")
    if (query, values) != (other_query, other_values) or url == other:
        return None
    here, there = _path_segments(head), _path_segments(other_head)
    shared = 0
    while shared < min(len(here), len(there)) and here[-1 - shared] == there[-1 - shared]:
        shared += 1
    if shared == 0 or max(len(here), len(there)) - shared > MAX_PREFIX_FOLDERS:
        return None
    ending = "/" + "/".join(here[-shared:])
    return head[: -len(ending)], other_head[: -len(ending)], ending + query + values


def _path_segments(head: str) -> list[str]:
    return head.split("/")[3:]
