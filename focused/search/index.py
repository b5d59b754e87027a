"""The search index of a crawl: ``search/`` in its folder.

The index holds the fetched pages of a crawl, without duplicates: texts as an export of a corpus has
them, the anchors of links to them, and their metadata. It may be updated while the crawl runs and
afterwards: only pages and versions that it lacks are extracted.

After a crash the index has all of a batch of pages or none. A table beside it notes which version
of which page is in it; the note follows the batch, so a batch may be indexed twice, and then
replaces itself.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import tantivy

from focused.corpus.page_filter import PageFilter
from focused.corpus.page_selection import (
    SelectedPage,
    Selection,
    open_selection,
    select_pages,
    url_hash,
)
from focused.corpus.records import InLink
from focused.corpus.stored_documents import (
    EXTRACTION_LIMITS,
    EXTRACTOR_FAILED,
    UNREADABLE,
    StoredDocument,
    extract_documents,
)
from focused.errors import ExtractionError, SearchError
from focused.search.indexed_versions import IndexedVersions, page_version
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

    ``failed`` pages have no readable text and are indexed by title and anchors.
    """

    added: int
    removed: int
    failed: int
    indexed: int


Progress = Callable[[int, int], object]
"""Receives the number of pages that were extracted, and of all to extract."""


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
            f"{folder}: the search index cannot be opened ({error}); remove the folder, and it is "
            "built again"
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
    folder = crawl / "search"
    index = open_index(folder / "index")
    with (
        tempfile.TemporaryDirectory(prefix="focused-") as scratch,
        closing(IndexedVersions(folder / "indexed.sqlite")) as versions,
    ):
        file = Path(scratch) / "selection"
        select_pages(crawl, file, PageFilter(min_relevance=0.0), now)
        with open_selection(file) as selection:
            return _update(crawl, index, selection, versions, processes, progress)


def _update(
    crawl: Path,
    index: tantivy.Index,
    selection: Selection,
    versions: IndexedVersions,
    processes: int,
    progress: Progress,
) -> UpdateResult:
    vanished = versions.keys()
    missing: list[tuple[int, SelectedPage]] = []
    for position, page in selection.pages():
        key = url_hash(page.url)
        if page.gone:
            continue
        vanished.discard(key)
        if versions.get(key) != page_version(page):
            missing.append((position, page))
    writer = open_writer(index)
    pages = dict(missing)
    documents = extract_documents(crawl, missing, processes=processes, limits=EXTRACTION_LIMITS)
    done = failed = 0
    while batch := list(islice(documents, _PAGES_PER_BATCH)):
        noted = {}
        for stored in batch:
            page = pages[stored.position]
            key = url_hash(page.url)
            writer.delete_documents_by_term("key", _key(key))
            writer.add_document(page_document(page, stored, selection.in_links(stored.position)))
            noted[key] = page_version(page, stored)
            failed += stored.reason in (UNREADABLE, EXTRACTOR_FAILED)
        writer.commit()
        versions.put(noted)
        done += len(batch)
        progress(done, len(missing))
    for key in vanished:
        writer.delete_documents_by_term("key", _key(key))
    writer.commit()
    versions.remove(vanished)
    writer.wait_merging_threads()
    indexed = versions.count()
    if failed and failed == done == indexed:
        raise ExtractionError(
            f"{crawl}: no page could be extracted; the index has titles and anchors alone, until "
            "an update succeeds"
        )
    return UpdateResult(done, len(vanished), failed, indexed)


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
