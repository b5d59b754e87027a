"""The search index of a crawl, ``search/`` in its folder: build, update, query.

The index holds the fetched pages of a crawl, without duplicates: texts as an export of a corpus has
them, the anchors of links to them, and their metadata. It may be updated while the crawl runs and
afterwards: only pages and versions that it lacks are extracted.

After a crash the index has all of a batch of pages or none.

A search ranks by BM25 over texts, mixed with relevance and link evidence. Queries are in tantivy's
language: ``cats dogs``, ``+cats -dogs``, ``"black cats"``, ``title:cats``, ``cats AND (dogs OR
mice)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy
from tantivy import FieldType, Occur, Query

from focused.corpus.page_selection import PageFilter, SelectedPage, url_hash
from focused.corpus.records import InLink
from focused.corpus.stored_documents import StoredDocument
from focused.durations import iso_time
from focused.errors import ConfigurationError, SearchError
from focused.search.index_update import Progress, open_update, page_version
from focused.web.html.text_structure import HEADING, render_text

STEMMED = "stemmed"
"""The tokenizer of texts: lower case, without accents, English stems."""

_PAGES_PER_BATCH = 1_000
_WRITER_MEMORY = 128_000_000
_MAX_TOKEN_CHARS = 60
_TEXTS = ("title", "headings", "text", "anchors")


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What an update did: ``added`` (new or changed) and ``removed`` pages, and all ``indexed``.

    Pages without a readable text are indexed by title and anchors.
    """

    added: int
    removed: int
    indexed: int


def make_schema() -> tantivy.Schema:
    """Return the schema; ``weight`` multiplies the score of a page, see :func:`page_weight`."""
    builder = tantivy.SchemaBuilder()
    for name in ("key", "host", "language", "published"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", stored=True)
    for name in _TEXTS:
        builder.add_text_field(name, stored=name != "anchors", tokenizer_name=STEMMED)
    builder.add_boolean_field("on_topic", stored=True, indexed=True)
    builder.add_float_field("relevance", stored=True, fast=True)
    builder.add_float_field("weight", fast=True)
    builder.add_integer_field("fetched_at", stored=True, fast=True)
    return builder.build()


def page_weight(relevance: float, in_links: int) -> float:
    """Return the value of ``weight``: the score is multiplied by 1 + relevance + ln(1 + links) / 5.

    tantivy multiplies by log2(2 + value).
    """
    return float(2.0 ** (1.0 + relevance + math.log1p(in_links) / 5.0) - 2.0)


def open_index(folder: Path) -> tantivy.Index:
    """Open or create the index in ``folder``; raises SearchError if it is damaged."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        index = tantivy.Index(make_schema(), path=str(folder))
    except (OSError, ValueError) as error:
        raise SearchError(
            f"{folder}: the search index cannot be opened ({error}); if it is damaged, remove the "
            "folder, and it is built again"
        ) from error
    analyzer = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(_MAX_TOKEN_CHARS))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )
    index.register_tokenizer(STEMMED, analyzer)
    return index


def update_index(
    crawl: Path, *, now: float, processes: int = 1, progress: Progress = lambda done, of: None
) -> UpdateResult:
    """Index the pages of ``crawl`` that the index lacks, and remove those that vanished.

    ``now`` is in seconds since the epoch. Raises StateError when the crawl cannot be read,
    ConfigurationError if it kept no WARC, SearchError if the index is damaged or in use,
    ExtractionError if it has no page whose text could be extracted.
    """
    notes = crawl / "search/indexed.sqlite"
    if not (crawl / "search/index/meta.json").exists():
        notes.unlink(missing_ok=True)
    with open_update(
        crawl,
        notes,
        PageFilter(min_relevance=0.0),
        now,
        lambda version, page: version == page_version(page),
    ) as update:
        writer = open_writer(open_index(crawl / "search/index"))
        for batch in update.batches(_PAGES_PER_BATCH, processes, progress):
            noted = {}
            for page, stored, in_links in batch:
                key = url_hash(page.url)
                writer.delete_documents_by_term("key", _key(key))
                writer.add_document(page_document(page, stored, in_links))
                noted[key] = page_version(page, stored)
            writer.commit()
            update.versions.put(noted)
        for key in update.vanished:
            writer.delete_documents_by_term("key", _key(key))
        writer.commit()
        update.versions.remove(update.vanished)
        writer.wait_merging_threads()
        return UpdateResult(update.done, len(update.vanished), update.versions.count())


def open_writer(index: tantivy.Index) -> tantivy.IndexWriter:
    """Return the only writer of an index; raises SearchError while another process has it."""
    try:
        return index.writer(heap_size=_WRITER_MEMORY, num_threads=1)
    except ValueError as error:
        raise SearchError(
            f"the search index is being updated by another process: {error}"
        ) from error


def page_document(
    page: SelectedPage, stored: StoredDocument, in_links: Sequence[InLink]
) -> tantivy.Document:
    """Return the document that the index has of a page."""
    blocks, metadata = stored.document.blocks, stored.document.metadata
    document = tantivy.Document(
        key=_key(url_hash(page.url)),
        url=page.url,
        host=page.host,
        language=page.language,
        published=metadata.published or "",
        title=page.title,
        headings=" \n".join(block.text for block in blocks if block.kind == HEADING),
        text=" ".join(render_text(blocks).split()),  # snippets are one line
        anchors=" \n".join(dict.fromkeys(link.anchor for link in in_links)),
    )
    relevance = page.relevance or 0.0
    document.add_boolean("on_topic", page.on_topic)
    document.add_float("relevance", relevance)
    document.add_float("weight", page_weight(relevance, len(in_links)))
    document.add_integer("fetched_at", int(page.fetched_at))
    return document


def _key(hashed: int) -> str:
    return f"{hashed:016x}"


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
    """Searches the index of one crawl, as it was when this was made."""

    def __init__(self, crawl: Path) -> None:
        """Raises SearchError if the crawl has no index, or a damaged one."""
        folder = crawl / "search" / "index"
        if not (folder / "meta.json").is_file():
            raise SearchError(f"{crawl}: has no search index yet: focused search {crawl} QUERY")
        self._index = open_index(folder)
        self._schema = make_schema()

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
        for name, wanted in (("host", query.host), ("language", query.language)):
            if wanted:
                yield Query.term_query(schema, name, wanted.lower())
        if query.min_relevance is not None:
            yield Query.range_query(schema, "relevance", FieldType.Float, query.min_relevance, None)
        if query.since is not None:
            yield Query.range_query(schema, "fetched_at", FieldType.Integer, int(query.since), None)


_SHOWN = ("url", "title", "host", "language", "published", "relevance", "on_topic")


def _hit(document: Any, score: float, snippets: Any) -> SearchHit:
    stored = {name: values[0] for name, values in document.to_dict().items()}
    snippet = snippets.snippet_from_doc(document)
    text = str(snippet.fragment())
    # tantivy counts bytes of UTF-8.
    raw = text.encode()
    ranges = tuple(
        (len(raw[: each.start].decode()), len(raw[: each.end].decode()))
        for each in snippet.highlighted()
    )
    return SearchHit(
        **{name: stored[name] for name in _SHOWN},
        fetched_at=iso_time(stored["fetched_at"]),
        score=score,
        snippet=text or stored["text"][:_SNIPPET_CHARS],
        highlights=ranges,
    )
