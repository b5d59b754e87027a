"""What URLs have in common: places on a host, and the parts in which two URLs may differ."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from focused.web.domain import registered_domain

MAX_SLOTS = 8
ORDER = "order of parameters"
"""The slot of all parameters together: in which order they stand."""

_DAY = r"(?:1[5-9]|2[0-9])\d\d(?P<by>[-/_.]?)(?:0?[1-9]|1[0-2])(?:(?P=by)(?:0?[1-9]|[12]\d|3[01]))?"
_DATE = re.compile(rf"(?<![0-9A-Za-z]){_DAY}(?![0-9A-Za-z])")
_LAST_DATE = re.compile(r"\{date\}/?(?:\.[a-z]{2,5})?")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])", re.I)
_NUMBER = re.compile(r"\d+")
_TOKEN = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[0-9A-Za-z_()~-]{12,}")
_DATE_NAMES = frozenset({"date", "day", "month", "year", "week", "y", "yr", "mon", "mm", "yyyy"})
_DATE_VALUE = re.compile(rf"{_DAY}(?:T.*)?")


class PlaceKind(StrEnum):
    """What holds a place's URLs together."""

    CALENDAR = "calendar"
    QUERY = "query"
    NUMBERED = "numbered"
    SCRIPT = "script"
    DIRECTORY = "directory"
    HOST = "host"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a URL stands, together with others: ``name`` is unique among all places."""

    kind: PlaceKind
    name: str


def places_of(url: str) -> tuple[Place, ...]:
    """Where a normalised URL stands, from its pattern outwards to its domain.

    - *calendar*, *query* or *numbered*: the path with ``{date}``, ``{hex}`` and
      ``{n}`` for what varies, and the sorted names of the parameters; only where
      something varies. A calendar's path ends in a date, or a parameter is one;
    - *script*: the same path with any parameters;
    - *directory*: all below the first folder of the path;
    - *host*; *domain*, as registered.
    """
    head, _, query = url.partition("?")
    _, _, rest = head.partition("://")
    host, _, path = rest.partition("/")
    general = _generalised(f"/{path}")
    places = []
    if query:
        names = "&".join(sorted({part.partition("=")[0] for part in query.split("&")}))
        kind = PlaceKind.CALENDAR if _tells_date(query) else PlaceKind.QUERY
        places.append(Place(kind, f"{host}{general}?{names}"))
        places.append(Place(PlaceKind.SCRIPT, f"{host}{general}?"))
    elif "{" in general:
        dated = _LAST_DATE.search(general)
        is_last = dated is not None and dated.end() == len(general)
        places.append(
            Place(PlaceKind.CALENDAR if is_last else PlaceKind.NUMBERED, f"{host}{general}")
        )
    top = path.partition("/")[0] + "/" if "/" in path else ""
    places.append(Place(PlaceKind.DIRECTORY, f"{host}/{top}*"))
    places.append(Place(PlaceKind.HOST, host))
    places.append(Place(PlaceKind.DOMAIN, f"*.{registered_domain(host)}"))
    return tuple(places)


def slots_of(url: str) -> tuple[str, ...]:
    """The parts of a normalised URL that may be a session's, each by name, eight at most.

    Parameters, folders that look like a token, and the order of the parameters.
    """
    head, _, query = url.partition("?")
    folders = [f"folder {n}" for n, each in _folders(head) if _TOKEN.fullmatch(each)]
    names = [part.partition("=")[0] for part in query.split("&") if part]
    order = [ORDER] if len(names) > 1 else []
    return tuple(dict.fromkeys([*order, *folders, *(f"?{name}" for name in names)]))[:MAX_SLOTS]


def without_slots(url: str, slots: Collection[str]) -> str:
    """The URL with those slots left out: what URLs have in common that differ in these alone."""
    head, _, query = url.partition("?")
    segments = head.split("/")
    for n, each in _folders(head):
        if f"folder {n}" in slots and _TOKEN.fullmatch(each):
            segments[n] = "{}"
    parts = [part for part in query.split("&") if f"?{part.partition('=')[0]}" not in slots]
    if ORDER in slots:
        parts.sort()
    return "/".join(segments) + "?" + "&".join(parts)


def _folders(head: str) -> list[tuple[int, str]]:
    """The segments of scheme, host and path that are folders, by their place."""
    return list(enumerate(head.split("/")))[3:-1]


def _generalised(path: str) -> str:
    for pattern, name in ((_DATE, "{date}"), (_HEX, "{hex}")):
        path = pattern.sub(name, path)
    return _NUMBER.sub("{n}", path)


def _tells_date(query: str) -> bool:
    parts = [part.partition("=") for part in query.split("&")]
    return any(
        (name.lower() in _DATE_NAMES and any(map(str.isdigit, value)))
        or _DATE_VALUE.fullmatch(value)
        for name, _, value in parts
    )
