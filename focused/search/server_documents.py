"""The documents that search servers index: their fields, types and ids.

The id of a page's document is the hash of its URL, so a newer version of the page replaces it; a
chunk's id ends in its number. ``docs/how-to/search-servers.md`` lists the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focused.corpus.page_selection import url_hash
from focused.corpus.records import CorpusRecord

_COPIED = (
    *("url", "host", "domain", "title", "text", "language", "published", "modified", "fetched_at"),
    *("relevance", "on_topic", "score", "depth", "parent", "anchor", "chunk", "chunks", "words"),
    *("headings", "authors", "licences", "robots", "cluster", "training"),
)

_TYPES: Mapping[str, Sequence[str]] = {
    "keyword": (
        *("url", "host", "domain", "language", "parent", "authors", "licences", "robots"),
        "cluster",
    ),
    "text": ("title", "text", "headings", "anchor", "anchors"),
    "date": ("published", "modified", "fetched_at"),
    "float": ("relevance", "score"),
    "integer": ("depth", "chunk", "chunks", "words"),
    "boolean": ("on_topic", "training"),
}

MAPPINGS: Mapping[str, Any] = {
    "properties": {
        name: {"type": kind, **({"ignore_malformed": True} if kind == "date" else {})}
        for kind, names in _TYPES.items()
        for name in names
    }
}
"""The mappings of a new index in OpenSearch or Elasticsearch."""

Document = dict[str, Any]
"""A document; ``id`` is its id, and no value is None or empty."""


def document_id(url_key: int, chunk: int | None = None) -> str:
    """Return the id of the page with the hash ``url_key``, or of one of its chunks."""
    return f"{url_key:016x}" if chunk is None else f"{url_key:016x}-{chunk}"


def document_of_record(record: CorpusRecord, *, is_chunk: bool) -> Document:
    """Return the document of a page, or of a chunk of it."""
    chunk = record.chunk if is_chunk else None
    anchors = tuple(dict.fromkeys(link.anchor for link in record.in_links if link.anchor))
    return {
        "id": document_id(url_hash(record.url), chunk),
        **_without_empty({name: getattr(record, name) for name in _COPIED}),
        **_without_empty({"anchors": anchors}),
    }


def _without_empty(values: Mapping[str, Any]) -> Document:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value not in ("", (), [], {})
    }
