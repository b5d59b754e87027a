"""Which version of which page is in a search index, in a table beside the crawl."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from focused.corpus.page_selection import SelectedPage
from focused.corpus.stored_documents import EXTRACTOR_FAILED, StoredDocument
from focused.errors import SearchError

INDEX_FORMAT = 2
_FORMAT_WITH_FAILURES = 1
"""Pages at which the extractor had failed were noted as others were."""


def page_version(page: SelectedPage, stored: StoredDocument | None = None) -> str:
    """Return what changes when a page's document changes.

    A ``stored`` document that the extractor failed to make gives no version, so that the next
    update tries again.
    """
    if stored is not None and stored.reason == EXTRACTOR_FAILED:
        return ""
    return f"{page.warc_file}:{page.warc_offset}:{page.model}"


class IndexedVersions:
    """The version of each page in the index, by the hash of its URL; each change is committed."""

    def __init__(self, file: Path) -> None:
        """Open or create; raises SearchError for a damaged file or an unknown format."""
        self._database = sqlite3.connect(file)
        try:
            found = self._database.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT_WITH_FAILURES, INDEX_FORMAT):
                raise SearchError(
                    f"{file}: format {found}, but this version reads {INDEX_FORMAT}; remove "
                    f"{file.parent}, and the index is built again"
                )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS pages (key INTEGER PRIMARY KEY, version TEXT)"
            )
            if found == _FORMAT_WITH_FAILURES:  # no version is equal any more: all are made again
                with self._database:
                    self._database.execute("UPDATE pages SET version = version || ' '")
            self._database.execute(f"PRAGMA user_version = {INDEX_FORMAT}")
        except sqlite3.Error as error:
            self._database.close()
            raise SearchError(
                f"{file}: is damaged ({error}); remove {file.parent}, and the index is built again"
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
        with self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO pages VALUES (?, ?)",
                [(_signed(key), version) for key, version in versions.items()],
            )

    def remove(self, keys: set[int]) -> None:
        """Note pages that were removed."""
        with self._database:
            self._database.executemany(
                "DELETE FROM pages WHERE key = ?", [(_signed(key),) for key in keys]
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _signed(key: int) -> int:
    # SQLite's integers have 63 bits and a sign.
    return key - (1 << 64) if key >= 1 << 63 else key
