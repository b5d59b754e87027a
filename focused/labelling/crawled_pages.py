"""Read the pages of a running or finished crawl: rows and server responses."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from focused.archive.archive import page_rows
from focused.archive.warc_files import WARC_FILE, WarcPosition
from focused.errors import StateError
from focused.storage.state_store import StateStore
from focused.web.page import Fetched
from focused.web.warc_reader import read_response

_COLUMNS = [
    "url", "host", "title", "outcome", "score", "relevance", "on_topic", "training",
    "duplicate_of", "warc_offset", "warc_file", "fetched_at",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """A fetched and classified page that is no duplicate.

    ``score`` was predicted before the fetch, ``relevance`` is the classifier's, both in [0, 1].
    ``place`` is the position of its WARC record.
    """

    url: str
    host: str
    title: str
    score: float
    relevance: float
    on_topic: bool
    place: WarcPosition
    fetched_at: float


@dataclass(frozen=True, slots=True)
class FetchedPages:
    """The pages that a crawl has fetched so far, by URL, and its number of duplicates."""

    folder: Path
    pages: Mapping[str, CrawledPage]
    duplicates: int

    def response(self, page: CrawledPage) -> Fetched | None:
        """The server's response; None when the record cannot be read."""
        stored = read_response(self.folder / page.place.file, page.place.offset)
        if stored is None or stored.url != page.url:
            return None
        return Fetched(stored.url, stored.status, stored.headers, stored.body)


def read_fetched_pages(folder: Path) -> FetchedPages:
    """Read the pages of the crawl in ``folder``, which may be running.

    Training samples are left out. Raises :class:`StateError` when the folder is no crawl's, or its
    topic keeps no WARC.
    """
    if not folder.is_dir():
        raise StateError(f"{folder}: no such folder; pass a crawl's [output] folder")
    if not (folder / WARC_FILE).is_file():
        raise StateError(
            f"{folder}: has no {WARC_FILE}; it is no crawl's folder, or its topic sets "
            'warc = "off": there is nothing to show'
        )
    pages, duplicates = {}, 0
    for row in _read_rows(folder):
        if row["outcome"] != "fetched" or row["training"] or row["warc_offset"] is None:
            continue
        if row["duplicate_of"] is not None:
            duplicates += 1
        elif row["relevance"] is not None:
            pages[row["url"]] = CrawledPage(
                url=row["url"],
                host=row["host"],
                title=row["title"],
                score=row["score"],
                relevance=row["relevance"],
                on_topic=bool(row["on_topic"]),
                place=WarcPosition(row["warc_file"], row["warc_offset"]),
                fetched_at=row["fetched_at"],
            )
    return FetchedPages(folder, pages, duplicates)


def _read_rows(folder: Path) -> list[dict[str, Any]]:
    state = folder / "state"
    if state.is_dir():
        # Recover the last rows of a killed crawl; a running one holds the lock.
        with suppress(StateError):
            StateStore.reopen(state).close()
        store = StateStore.view(state)
        try:
            return list(page_rows(store.tables))
        finally:
            store.close()
    try:
        rows: list[dict[str, Any]] = pq.read_table(
            folder / "pages.parquet", columns=_COLUMNS
        ).to_pylist()
    except (OSError, ValueError) as error:
        raise StateError(f"{folder}: its pages cannot be read: {error}") from error
    return rows
