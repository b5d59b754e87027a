"""Read JSON-LD scripts: what schema.org descriptions say of a page, and the pages they name.

https://www.w3.org/TR/json-ld11/, https://schema.org/. Contexts are not fetched: names are taken as
schema.org's. All values are untrusted and limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from html import unescape
from itertools import islice
from typing import Any, NamedTuple

MAX_LINKS = 1_000

_MAX_JSON_CHARS = 200_000
_MAX_JSON_SCRIPTS = 10
_MAX_JSON_NODES = 2_000
_MAX_NAME_CHARS = 300
_LINK_KEYS = (
    *("itemListElement", "hasPart", "isPartOf", "citation", "relatedLink", "significantLink"),
    *("dataset", "subjectOf", "workExample", "exampleOfWork"),
)
_PAGE_KEYS = ("@graph", "mainEntity", "mainEntityOfPage")
_PARTS = frozenset(
    {"answer", "comment", "usercomments", "review", "userreview", "rating", "aggregaterating"}
    | {"imageobject", "audioobject", "mediaobject", "imagegallery", "quotation"}
)
_SITES = frozenset(
    {"website", "organization", "newsmediaorganization", "corporation", "person", "breadcrumblist"}
    | {"sitenavigationelement", "searchaction"}
)
_TARGET = re.compile(r"https?://|/", re.IGNORECASE)


class NamedUrl(NamedTuple):
    """A URL as it is written, and the name of what is there."""

    url: str
    name: str


def json_ld_nodes(scripts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD scripts, breadth first; never raises."""
    for data in _read(scripts):
        yield from _nodes(data, lambda node: node.values())


def page_nodes(scripts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the objects of JSON-LD scripts that describe the page itself; never raises.

    Leaves out what the page shows: reviews, comments, images and the like, and the things that
    properties name. References to other objects (``{"@id": …}``) in their properties are resolved.
    """
    known: dict[str, dict[str, Any]] = {}
    found: list[dict[str, Any]] = []
    for data in _read(scripts):
        for node in _nodes(data, lambda node: node.values()):
            if isinstance(name := node.get("@id"), str) and len(node) > 1:
                known.setdefault(name, node)
        found += _nodes(data, lambda node: (node.get(key) for key in _PAGE_KEYS))
    own = [node for node in found if not is_part(*_types(node))]
    return [
        {key: _resolved(value, known) for key, value in node.items()}
        for node in (own if any(not _is_site(node) for node in own) else found)
    ]


def is_part(*types: str) -> bool:
    """Return whether types of schema.org are of things that a page shows besides its subject."""
    return any(name.rpartition("/")[2].lower() in _PARTS for name in types)


def _is_site(node: dict[str, Any]) -> bool:
    return any(name.rpartition("/")[2].lower() in _SITES for name in _types(node))


def _types(node: dict[str, Any]) -> list[str]:
    types = node.get("@type")
    return [each for each in (types if isinstance(types, list) else [types]) if type(each) is str]


def _resolved(value: Any, known: dict[str, dict[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_resolved(each, known) for each in value if not isinstance(each, list)]
    if isinstance(value, dict) and isinstance(name := value.get("@id"), str):
        return known.get(name, value) | value
    return value


def _read(scripts: Iterable[str]) -> Iterator[Any]:
    for text in islice(scripts, _MAX_JSON_SCRIPTS):
        if len(text) <= _MAX_JSON_CHARS:
            with suppress(ValueError, RecursionError):
                yield json.loads(text, strict=False)


def _nodes(
    data: Any, inner_of: Callable[[dict[str, Any]], Iterable[Any]]
) -> Iterator[dict[str, Any]]:
    waiting = [data]
    for node in waiting:
        if isinstance(node, dict):
            yield node
            inner = inner_of(node)
        else:
            inner = node if isinstance(node, list) else ()
        room = _MAX_JSON_NODES - len(waiting)
        waiting += [each for each in inner if isinstance(each, dict | list)][: max(room, 0)]


def headline(nodes: Iterable[dict[str, Any]]) -> str:
    """Return the first headline, or an empty text."""
    return next((text for node in nodes if (text := _text(node.get("headline")))), "")


def named_urls(nodes: Iterable[dict[str, Any]]) -> Iterator[NamedUrl]:
    """Yield the pages that lists, parts, citations and related links name, in order."""
    for node in nodes:
        for key in _LINK_KEYS:
            value = node.get(key)
            for each in value if isinstance(value, list) else [value]:
                found = _named_url(each)
                if found is not None:
                    yield found


def _named_url(value: object) -> NamedUrl | None:
    """Return the URL of a text, a thing, or a list item with a thing."""
    if isinstance(value, str):
        return NamedUrl(value, "") if _TARGET.match(value) else None
    if not isinstance(value, dict):
        return None
    item = value.get("item")
    inner = item if isinstance(item, dict) else {}
    named = (inner.get("url"), value.get("url"), item, inner.get("@id"), value.get("@id"))
    url = next((each for each in named if isinstance(each, str) and _TARGET.match(each)), None)
    if url is None:
        return None
    names = (value.get("name"), inner.get("name"), inner.get("headline"), value.get("headline"))
    return NamedUrl(url, next(filter(None, map(_text, names)), ""))


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return " ".join(unescape(value[: 4 * _MAX_NAME_CHARS]).split())[:_MAX_NAME_CHARS]
