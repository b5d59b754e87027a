"""Bring the index of a search server up to date with a crawl.

A table beside the crawl notes the version of each page whose documents the server has. The note
follows the server's answer, so an interrupted update repeats a batch at most, whose documents
replace themselves. The next update sends only what is new or changed, and deletes what vanished.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec
import xxhash

from focused.corpus.page_records import page_records
from focused.corpus.page_selection import (
    PageFilter,
    SelectedPage,
    Selection,
    open_selection,
    select_pages,
    url_hash,
)
from focused.corpus.stored_documents import (
    EXTRACTION_LIMITS,
    EXTRACTOR_FAILED,
    StoredDocument,
    extract_documents,
)
from focused.errors import ExtractionError
from focused.search.indexed_versions import IndexedVersions, page_version
from focused.search.search_servers import (
    Document,
    RejectedDocument,
    SearchServer,
    ServerAddress,
    document_id,
    document_of_record,
)

_PAGES_PER_BATCH = 200
_DELETIONS_PER_BATCH = 1_000
_MAX_REASONS = 10
_WHOLE = "page"

Progress = Callable[[int, int], object]
"""Receives the number of pages that were sent, and of all to send."""


@dataclass(slots=True)
class ServerUpdateResult:
    """What an update did, in pages; ``documents`` were sent, ``rejected`` of them refused.

    ``empty`` pages have no text or fail a condition on it. ``reasons`` are the first rejections.
    """

    pages: int = 0
    documents: int = 0
    empty: int = 0
    removed: int = 0
    rejected: int = 0
    reasons: list[RejectedDocument] = field(default_factory=list)


def update_server(
    crawl: Path,
    server: SearchServer,
    address: ServerAddress,
    page_filter: PageFilter,
    *,
    now: float,
    chunk_chars: int | None = None,
    processes: int = 1,
    fresh: bool = False,
    progress: Progress = lambda done, of: None,
) -> ServerUpdateResult:
    """Send the pages of ``crawl`` that the server lacks, and delete those that vanished.

    A page that asks for other conditions or chunks than before is sent anew. ``fresh`` sends
    everything. ``now`` is in seconds since the epoch. Raises StateError when the crawl cannot be
    read, ConfigurationError if it kept no WARC, SearchError if the server does not answer,
    ExtractionError if no page could be extracted.
    """
    is_new = server.prepare()
    notes = _notes_file(crawl, address)
    notes.parent.mkdir(parents=True, exist_ok=True)
    if is_new or fresh:
        notes.unlink(missing_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="focused-") as scratch,
        closing(IndexedVersions(notes)) as versions,
    ):
        file = Path(scratch) / "selection"
        select_pages(crawl, file, page_filter, now)
        with open_selection(file) as selection:
            updating = _Update(server, selection, versions, page_filter, chunk_chars)
            updating.run(crawl, processes, progress)
            return updating.result


def _notes_file(crawl: Path, address: ServerAddress) -> Path:
    name = xxhash.xxh3_64_hexdigest(f"{address.kind} {address}".encode())
    return crawl / "search" / "servers" / f"{name}.sqlite"


class _Update:
    """One update. A note is ``UNITS OPTIONS VERSION``; UNITS are the documents of the page."""

    def __init__(
        self,
        server: SearchServer,
        selection: Selection,
        versions: IndexedVersions,
        page_filter: PageFilter,
        chunk_chars: int | None,
    ) -> None:
        self.result = ServerUpdateResult()
        self._server = server
        self._selection = selection
        self._versions = versions
        self._filter = page_filter
        self._chunk_chars = chunk_chars
        self._failed = 0
        options = msgspec.json.encode([page_filter, chunk_chars])
        self._options = xxhash.xxh3_64_hexdigest(options)

    def run(self, crawl: Path, processes: int, progress: Progress) -> None:
        vanished = self._versions.keys()
        missing: list[tuple[int, SelectedPage]] = []
        for position, page in self._selection.pages():
            if page.gone:
                continue
            key = url_hash(page.url)
            vanished.discard(key)
            note = self._versions.get(key)
            if note is None or note.partition(" ")[2] != self._version(page):
                missing.append((position, page))
        pages = dict(missing)
        documents = extract_documents(crawl, missing, processes=processes, limits=EXTRACTION_LIMITS)
        done = 0
        progress(done, len(missing))
        while batch := list(islice(documents, _PAGES_PER_BATCH)):
            self._send([(pages[stored.position], stored) for stored in batch])
            done += len(batch)
            progress(done, len(missing))
        self._remove(vanished)
        self._server.refresh()
        if self._failed and self._failed == done == self._versions.count():
            raise ExtractionError(f"{crawl}: no page could be extracted; none was sent")

    def _version(self, page: SelectedPage, stored: StoredDocument | None = None) -> str:
        return f"{self._options} {page_version(page, stored)}"

    def _send(self, batch: list[tuple[SelectedPage, StoredDocument]]) -> None:
        documents: list[Document] = []
        notes: dict[int, str] = {}
        stale: list[str] = []
        for page, stored in batch:
            key, own = url_hash(page.url), self._documents(page, stored)
            units = _WHOLE if self._chunk_chars is None and own else str(len(own))
            ids = {document["id"] for document in own}
            stale += (each for each in _ids(key, self._versions.get(key)) if each not in ids)
            notes[key] = f"{units} {self._version(page, stored)}"
            self._failed += stored.reason == EXTRACTOR_FAILED
            documents += own
            self.result.empty += not own
        rejected = self._server.send(documents) if documents else []
        self._delete(stale)
        for each in rejected:  # sent again by the next update
            notes.pop(int(each.id.partition("-")[0], 16), None)
        self._versions.put(notes)
        self.result.pages += len(batch)
        self.result.documents += len(documents)
        self.result.rejected += len(rejected)
        self.result.reasons += rejected[: _MAX_REASONS - len(self.result.reasons)]

    def _documents(self, page: SelectedPage, stored: StoredDocument) -> list[Document]:
        records = page_records(
            page,
            stored,
            self._selection.in_links(stored.position),
            self._filter,
            chunk_chars=self._chunk_chars,
        )
        is_chunk = self._chunk_chars is not None
        return [document_of_record(record, is_chunk=is_chunk) for record in records]

    def _remove(self, vanished: set[int]) -> None:
        keys = iter(sorted(vanished))
        while batch := list(islice(keys, _DELETIONS_PER_BATCH)):
            self._delete([each for key in batch for each in _ids(key, self._versions.get(key))])
            self._versions.remove(set(batch))
            self.result.removed += len(batch)

    def _delete(self, ids: list[str]) -> None:
        if ids:
            self._server.delete(ids)


def _ids(key: int, note: str | None) -> Iterator[str]:
    """Yield the ids of the documents that a note is about."""
    units = (note or "0").partition(" ")[0]
    if units == _WHOLE:
        yield document_id(key)
    else:
        yield from (document_id(key, chunk) for chunk in range(int(units)))
