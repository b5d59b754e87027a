"""Search the index of a crawl: BM25 over texts, mixed with relevance and link evidence.

Queries are in tantivy's language: ``cats dogs``, ``+cats -dogs``, ``"black cats"``,
``title:cats``, ``cats AND (dogs OR mice)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tantivy
from tantivy import FieldType, Occur, Query

from focused.errors import ConfigurationError, SearchError
from focused.search.index import make_schema, open_index

MAX_RESULTS = 1_000
_SNIPPET_CHARS = 240

# Words of title and anchors tell more of a page than those of its text (Manning, Raghavan, Schütze
# 2008, 6.1 and 21.1).
_BOOSTS = {"title": 4.0, "headings": 1.5, "anchors": 2.0, "url": 1.0, "text": 1.0}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for.

    ``plain`` ranks by words alone. ``since`` is the earliest fetch, in seconds since the
    epoch.
    """

    text: str
    limit: int = 10
    offset: int = 0
    on_topic: bool = False
    host: str = ""
    language: str = ""
    min_relevance: float | None = None
    since: float | None = None
    plain: bool = False


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found; ``highlights`` are ranges of ``snippet`` with words of the query."""

    url: str
    title: str
    host: str
    language: str
    published: str
    fetched_at: str
    relevance: float
    on_topic: bool
    score: float
    snippet: str
    highlights: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best hits, and the number of all pages that match."""

    total: int
    hits: tuple[SearchHit, ...]


class CrawlSearch:
    """Searches the index of one crawl; call :meth:`reload` after an update."""

    def __init__(self, crawl: Path) -> None:
        """Raises SearchError if the crawl has no index, or a damaged one."""
        folder = crawl / "search" / "index"
        if not (folder / "meta.json").is_file():
            raise SearchError(f"{crawl}: has no search index yet: focused search {crawl} QUERY")
        self._index = open_index(folder)
        self._schema = make_schema()

    def reload(self) -> None:
        """See what was committed since."""
        self._index.reload()

    @property
    def indexed(self) -> int:
        """The number of pages in the index."""
        return int(self._index.searcher().num_docs)

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best pages; raises ConfigurationError for a query that cannot be read."""
        if not (0 < query.limit <= MAX_RESULTS and query.offset >= 0):
            raise ConfigurationError(f"limit: must be 1 to {MAX_RESULTS}")
        words = self._parse(query.text)
        filters = [(Occur.Must, each) for each in self._filters(query)]
        whole = Query.boolean_query([(Occur.Must, words), *filters]) if filters else words
        searcher = self._index.searcher()
        found = searcher.search(
            whole,
            limit=query.limit,
            offset=query.offset,
            weight_by_field=None if query.plain else "weight",
        )
        snippets = tantivy.SnippetGenerator.create(searcher, words, self._schema, "text")
        snippets.set_max_num_chars(_SNIPPET_CHARS)
        hits = (
            _hit(searcher.doc(address), float(score), snippets) for score, address in found.hits
        )
        return SearchResult(found.count or 0, tuple(hits))  # type: ignore[attr-defined]  # not in its stubs

    def _parse(self, text: str) -> Query:
        try:
            return self._index.parse_query(text, list(_BOOSTS), field_boosts=_BOOSTS)
        except ValueError as error:
            raise ConfigurationError(
                f'the query cannot be read: {error}. Quote what is meant literally: "..."'
            ) from error

    def _filters(self, query: SearchQuery) -> Iterator[Query]:
        schema = self._schema
        if query.on_topic:
            yield Query.term_query(schema, "on_topic", True)
        if query.host:
            yield Query.term_query(schema, "host", query.host)
        if query.language:
            yield Query.term_query(schema, "language", query.language)
        if query.min_relevance is not None:
            yield Query.range_query(schema, "relevance", FieldType.Float, query.min_relevance, None)
        if query.since is not None:
            yield Query.range_query(schema, "fetched_at", FieldType.Integer, int(query.since), None)


def _hit(document: Any, score: float, snippets: Any) -> SearchHit:
    def first(name: str) -> Any:
        return document.get_first(name)

    snippet = snippets.snippet_from_doc(document)
    text = str(snippet.fragment())
    # tantivy counts bytes of UTF-8.
    raw = text.encode()
    ranges = tuple(
        (len(raw[: each.start].decode()), len(raw[: each.end].decode()))
        for each in snippet.highlighted()
    )
    at = datetime.fromtimestamp(first("fetched_at") or 0, UTC)
    return SearchHit(
        url=first("url"),
        title=first("title") or "",
        host=first("host"),
        language=first("language") or "",
        published=first("published") or "",
        fetched_at=at.isoformat().replace("+00:00", "Z"),
        relevance=first("relevance"),
        on_topic=first("on_topic"),
        score=score,
        snippet=text or (first("text") or "")[:_SNIPPET_CHARS],
        highlights=ranges,
    )
