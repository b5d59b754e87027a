"""What an index lacks of a crawl: a table beside it notes which version of which page it has.

A note follows what the index has committed, so an interrupted update repeats a batch at most, whose
pages replace themselves. The next update takes only what is new or changed, and what vanished.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from focused.corpus.page_selection import (
    PageFilter,
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

INDEX_FORMAT = 2

_RETRIED = (UNREADABLE, EXTRACTOR_FAILED)

Progress = Callable[[int, int], object]
"""Receives the number of pages that were handled, and of all to handle."""

ExtractedPage = tuple[SelectedPage, StoredDocument, tuple[InLink, ...]]


def page_version(page: SelectedPage, stored: StoredDocument | None = None) -> str:
    """Return what changes when a page's document changes.

    A ``stored`` document whose record could not be read, or which the extractor failed to make,
    gives no version, so that the next update tries again.
    """
    if stored is not None and stored.reason in _RETRIED:
        return ""
    return f"{page.warc_file}:{page.warc_offset}:{page.model}"


class IndexedVersions:
    """The version of each page in the index, by the hash of its URL; each change is committed."""

    def __init__(self, file: Path) -> None:
        """Open or create; raises SearchError for an unreadable file or an unknown format."""
        self._database = sqlite3.connect(file)
        try:
            if (fault := self._database.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(fault)
            found = self._database.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, INDEX_FORMAT):
                raise SearchError(
                    f"{file}: format {found}, but this version reads {INDEX_FORMAT}; remove "
                    f"{file.parent}, and the index is built again"
                )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS pages (key INTEGER PRIMARY KEY, version TEXT)"
            )
            self._database.execute(f"PRAGMA user_version = {INDEX_FORMAT}")
        except sqlite3.Error as error:
            self._database.close()
            raise SearchError(
                f"{file}: cannot be used ({error}); if it is damaged, remove {file.parent}, and "
                "the index is built again"
            ) from error

    def get(self, key: int) -> str | None:
        """Return the indexed version of a page, or None."""
        row = self._database.execute(
            "SELECT version FROM pages WHERE key = ?", (_signed(key),)
        ).fetchone()
        return None if row is None else str(row[0])

    def keys(self) -> set[int]:
        """Return the hashes of all pages in the index."""
        return {key % (1 << 64) for (key,) in self._database.execute("SELECT key FROM pages")}

    def count(self) -> int:
        """Return the number of pages in the index."""
        return int(self._database.execute("SELECT count(*) FROM pages").fetchone()[0])

    def put(self, versions: dict[int, str]) -> None:
        """Note versions that were indexed."""
        rows = [(_signed(key), version) for key, version in versions.items()]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?)", rows)

    def remove(self, keys: set[int]) -> None:
        """Note pages that were removed."""
        rows = [(_signed(key),) for key in keys]
        with self._database:
            self._database.executemany("DELETE FROM pages WHERE key = ?", rows)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _signed(key: int) -> int:
    # SQLite's integers have 63 bits and a sign.
    return key - (1 << 64) if key >= 1 << 63 else key


class IndexUpdate:
    """One update of an index, see :func:`open_update`.

    ``vanished`` are the keys of pages in the index that the crawl no longer has. ``done`` counts
    the pages that were extracted, ``failed`` those of them without a readable text.
    """

    def __init__(
        self,
        crawl: Path,
        selection: Selection,
        versions: IndexedVersions,
        is_current: Callable[[str, SelectedPage], bool],
    ) -> None:
        self.versions = versions
        self.vanished = versions.keys()
        self.done = self.failed = 0
        self._crawl = crawl
        self._selection = selection
        self._missing: list[tuple[int, SelectedPage]] = []
        for position, page in selection.pages():
            if page.gone:
                continue
            key = url_hash(page.url)
            self.vanished.discard(key)
            version = versions.get(key)
            if version is None or not is_current(version, page):
                self._missing.append((position, page))

    def batches(
        self, size: int, processes: int, progress: Progress
    ) -> Iterator[list[ExtractedPage]]:
        """Yield the pages that the index lacks with their documents and in-links."""
        total = len(self._missing)
        documents = extract_documents(
            self._crawl, self._missing, processes=processes, limits=EXTRACTION_LIMITS
        )
        pages = zip(self._missing, documents, strict=True)
        progress(0, total)
        while batch := list(islice(pages, size)):
            yield [
                (page, stored, self._selection.in_links(position))
                for (position, page), stored in batch
            ]
            self.done += len(batch)
            self.failed += sum(stored.reason in _RETRIED for _, stored in batch)
            progress(self.done, total)


@contextmanager
def open_update(
    crawl: Path,
    notes: Path,
    page_filter: PageFilter,
    now: float,
    is_current: Callable[[str, SelectedPage], bool],
) -> Iterator[IndexUpdate]:
    """Compare the pages of ``crawl`` with those that ``notes``, a file, says the index has.

    ``is_current`` tells whether a noted version is that of the page now. Raises ExtractionError at
    the end if the index has no page whose text could be extracted, StateError when the crawl cannot
    be read, ConfigurationError if it kept no WARC.
    """
    with tempfile.TemporaryDirectory(prefix="focused-") as scratch:
        file = Path(scratch) / "selection"
        select_pages(crawl, file, page_filter, now)
        notes.parent.mkdir(parents=True, exist_ok=True)
        with closing(IndexedVersions(notes)) as versions, open_selection(file) as selection:
            update = IndexUpdate(crawl, selection, versions, is_current)
            yield update
            if update.failed and update.failed == update.done == versions.count():
                raise ExtractionError(
                    f"{crawl}: no page could be extracted; the index has no texts until an update "
                    "succeeds"
                )
