"""What was harvested: pages, judgements and the link graph, durable page by page.

Rows live in the crawl's own store and become true in the same transaction
that settles their link; the WARC is appended before it, and cut back to the
last recorded length when a crash left more. :mod:`focused.archive_parquet`
makes Parquet files from the rows.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from focused.frontier.rows import pack, unpack
from focused.frontier.store import StateStore
from focused.frontier.tables import Tables
from focused.recorded.warc_records import StoredRecord, read_responses
from focused.web.page import Fetched, Page
from focused.web.parse import parse_page

WARC_FILE = "pages.warc.gz"
_LENGTH = struct.Struct(">I")


class PageRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of ``pages.parquet``; see :data:`focused.archive_schema.PAGES_SCHEMA`."""

    seq: int
    url: str
    host: str
    outcome: str
    score: float
    evidence: Mapping[str, float]
    depth: int
    parent: str | None
    anchor: str
    found_at: float
    fetched_at: float
    policy: str
    status: int = 0
    failure: str = ""
    title: str = ""
    relevance: float | None = None
    on_topic: bool = False
    language: str = ""
    content_type: str = ""
    bytes: int = 0
    duplicate_of: str | None = None
    training: bool = False
    elapsed_s: float = 0.0
    warc_offset: int | None = None
    duplicate_kind: str | None = None
    judge: str = ""
    points_to: str | None = None


PAGE_COLUMNS = PageRow.__struct_fields__
"""Columns of :data:`focused.archive_schema.PAGES_SCHEMA`, in the order they are kept in."""


class LinkRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of ``links.parquet``; its source is the page it is stored with."""

    target: str
    anchor: str
    position: float
    nofollow: bool
    score: float | None


LINK_COLUMNS = ("source", *LinkRow.__struct_fields__)
"""Columns of :data:`focused.archive_schema.LINKS_SCHEMA`."""


class Archive:
    """Append-only rows over a :class:`StateStore`; the caller commits."""

    def __init__(self, store: StateStore, folder: Path, *, warc: bool, links: bool = True) -> None:
        """``links`` False keeps no link rows: they are most of what a crawl writes."""
        self.keeps_links = links
        self._tables = store.tables
        self._folder = folder
        self._warc = _open_warc(folder, store.tables) if warc else None
        self._warc_bytes = 0 if self._warc is None else self._warc.tell()
        store.before_sync(self._force)

    def __len__(self) -> int:
        return self._tables.count("pages")

    @property
    def keeps_responses(self) -> bool:
        """Whether there is a WARC."""
        return self._warc is not None

    def append_response(self, record: bytes | None) -> int | None:
        """Write a response's record to the WARC; return its offset, None without either."""
        if self._warc is None or record is None:
            return None
        offset = self._warc_bytes
        self._warc.write(record)
        self._warc.flush()
        self._warc_bytes += len(record)
        self._tables.put_meta("warc_length", self._warc_bytes)
        return offset

    def append(self, row: PageRow, links: Sequence[LinkRow] = ()) -> None:
        """Record what became of one URL, and the links found there."""
        key = row.seq.to_bytes(8, "big")
        self._tables.put("pages", key, pack(row))
        if links and self.keeps_links:
            self._tables.put("page_links", key, _packed_links(row.url, links))

    def _force(self) -> None:
        if self._warc is not None and not self._warc.closed:
            os.fsync(self._warc.fileno())

    def close(self) -> None:
        """Force the WARC to the disk, and close it."""
        if self._warc is not None:
            self._force()
            self._warc.close()


def page_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield all page rows in the order of settling."""
    for row in page_values(tables):
        yield dict(zip(PAGE_COLUMNS, row, strict=True))


def page_values(tables: Tables) -> Iterator[list[Any]]:
    """Yield all page rows in the order of settling, as values of :data:`PAGE_COLUMNS`."""
    for _, raw in tables.scan("pages"):
        yield unpack(raw)


def link_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield all link rows, page by page in the order of settling."""
    for values in link_values(tables):
        yield dict(zip(LINK_COLUMNS, values, strict=True))


def link_values(tables: Tables) -> Iterator[list[Any]]:
    """Yield all link rows as values of :data:`LINK_COLUMNS`, page by page in that order."""
    for _, raw in tables.scan("page_links"):
        source, links = _unpacked_links(raw)
        for link in links:
            yield [source, *link]


def _packed_links(url: str, links: Sequence[LinkRow]) -> bytes:
    # A page's links repeat each other: a third is left, for a tenth of what zlib takes.
    raw = pack([url, links])
    packed: bytes = _lz4().compress(raw, asbytes=True)
    return _LENGTH.pack(len(raw)) + packed


def _unpacked_links(row: bytes) -> Any:
    (length,) = _LENGTH.unpack_from(row)
    return unpack(_lz4().decompress(row[_LENGTH.size :], length, asbytes=True))


@cache
def _lz4() -> Any:
    import pyarrow  # slow to import: not before a crawl's first links

    return pyarrow.Codec("lz4_raw")


def harvested_pages(tables: Tables, folder: Path) -> dict[str, Page]:
    """Parse the crawl's WARC: pages by URL, and by the URLs that redirected to them."""
    pages: dict[str, Page] = {}
    for record in read_responses(folder / WARC_FILE):
        if isinstance(record, StoredRecord):
            page = parse_page(Fetched(record.url, record.status, record.headers, record.body))
            if isinstance(page, Page):
                pages[record.url] = page
    came_from = {row["url"]: row["parent"] for row in page_rows(tables)}
    for url, page in list(pages.items()):
        alias = came_from.get(url)
        while alias is not None and alias not in pages:
            pages[alias] = page
            alias = came_from.get(alias)
    return pages


def _open_warc(folder: Path, tables: Tables) -> Any:
    path = folder / WARC_FILE
    recorded = int(tables.get_meta("warc_length") or 0)
    file = path.open("ab")
    if file.tell() > recorded:
        file.truncate(recorded)
        file.seek(0, os.SEEK_END)
    return file
