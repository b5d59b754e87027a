"""Bring the index of a search server up to date with a crawl.

The notes of :mod:`focused.search.index_update` follow the server's answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec
import xxhash

from focused.corpus.page_records import page_records
from focused.corpus.page_selection import PageFilter, SelectedPage, url_hash
from focused.corpus.stored_documents import StoredDocument
from focused.search.index_update import (
    ExtractedPage,
    IndexUpdate,
    Progress,
    open_update,
    page_version,
)
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
    name = xxhash.xxh3_64_hexdigest(f"{address.kind} {address}".encode())
    notes = crawl / "search" / "servers" / f"{name}.sqlite"
    if is_new or fresh:
        notes.unlink(missing_ok=True)
    sender = _Sender(server, page_filter, chunk_chars)
    with open_update(
        crawl,
        notes,
        page_filter,
        now,
        lambda note, page: note.partition(" ")[2] == sender.version(page),
    ) as update:
        for batch in update.batches(_PAGES_PER_BATCH, processes, progress):
            sender.send(batch, update)
        sender.remove(update)
        server.refresh()
    return sender.result


class _Sender:
    """Sends pages. A note is ``UNITS OPTIONS VERSION``; UNITS are the documents of the page."""

    def __init__(
        self, server: SearchServer, page_filter: PageFilter, chunk_chars: int | None
    ) -> None:
        self.result = ServerUpdateResult()
        self._server = server
        self._filter = page_filter
        self._chunk_chars = chunk_chars
        options = msgspec.json.encode([page_filter, chunk_chars])
        self._options = xxhash.xxh3_64_hexdigest(options)

    def version(self, page: SelectedPage, stored: StoredDocument | None = None) -> str:
        return f"{self._options} {page_version(page, stored)}"

    def send(self, batch: Sequence[ExtractedPage], update: IndexUpdate) -> None:
        is_chunk = self._chunk_chars is not None
        documents: list[Document] = []
        notes: dict[int, str] = {}
        stale: list[str] = []
        for page, stored, in_links in batch:
            key = url_hash(page.url)
            records = page_records(
                page, stored, in_links, self._filter, chunk_chars=self._chunk_chars
            )
            own = [document_of_record(record, is_chunk=is_chunk) for record in records]
            units = _WHOLE if own and not is_chunk else str(len(own))
            ids = {document["id"] for document in own}
            stale += (each for each in _ids(key, update.versions.get(key)) if each not in ids)
            notes[key] = f"{units} {self.version(page, stored)}"
            documents += own
            self.result.empty += not own
        rejected = self._server.send(documents) if documents else []
        self._delete(stale)
        for each in rejected:  # sent again by the next update
            notes.pop(int(each.id.partition("-")[0], 16), None)
        update.versions.put(notes)
        self.result.pages += len(batch)
        self.result.documents += len(documents)
        self.result.rejected += len(rejected)
        self.result.reasons += rejected[: _MAX_REASONS - len(self.result.reasons)]

    def remove(self, update: IndexUpdate) -> None:
        keys = iter(sorted(update.vanished))
        while batch := list(islice(keys, _DELETIONS_PER_BATCH)):
            self._delete([each for key in batch for each in _ids(key, update.versions.get(key))])
            update.versions.remove(set(batch))
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
