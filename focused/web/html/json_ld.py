"""Read JSON-LD scripts: what schema.org descriptions say of a page, and the pages they name.

https://www.w3.org/TR/json-ld11/, https://schema.org/. Contexts are not fetched: names are taken as
schema.org's. All values are untrusted and limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, NamedTuple

MARKER = "ld+json"
"""A page without this text has no JSON-LD."""

SELECTOR = 'script[type="application/ld+json"]'
"""CSS selector of the scripts."""

MAX_LINKS = 1_000

_MAX_JSON_CHARS = 200_000
_MAX_JSON_SCRIPTS = 10
_MAX_JSON_NODES = 2_000
_MAX_NAME_CHARS = 300
_LINK_KEYS = (
    *("itemListElement", "hasPart", "isPartOf", "citation", "relatedLink", "significantLink"),
    *("dataset", "subjectOf", "workExample", "exampleOfWork"),
)
_TARGET = re.compile(r"https?://|/", re.IGNORECASE)


class NamedUrl(NamedTuple):
    """A URL as it is written, and the name of what is there."""

    url: str
    name: str


def json_ld_nodes(scripts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD scripts, breadth first; never raises."""
    for number, text in enumerate(scripts):
        if number >= _MAX_JSON_SCRIPTS:
            return
        if len(text) > _MAX_JSON_CHARS:
            continue
        try:
            waiting = [json.loads(text, strict=False)]
        except (ValueError, RecursionError):
            continue
        for node in waiting:
            if isinstance(node, dict):
                yield node
                inner: Iterable[Any] = node.values()
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
