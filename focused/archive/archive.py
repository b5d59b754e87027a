"""The archive of a crawl: rows of pages and links.

Rows are stored in the crawl's state and committed with the transaction that settles their link;
WARC records (:mod:`focused.archive.warc_files`) are written before. :mod:`focused.archive.parquet`
exports the rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from isal import isal_zlib

from focused.archive.warc_files import WarcFiles, WarcPosition
from focused.errors import ConfigurationError
from focused.storage.rows import pack, unpack
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.web.page import Fetched, NotModified, Outcome
from focused.web.warc_records import WarcCapture, WarcRecordBuilder

_LENGTH_PREFIX = struct.Struct(">I")
_ZLIB_HEADER = 0x78
"""The first byte of compressed links (RFC 1950); as that of a length it would mean 2 GB."""


class PageRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of ``pages.parquet``; see :data:`focused.archive.parquet.PAGES_SCHEMA`.

    A new column stands here, in that schema, and in :mod:`focused.crawl.archive_writer`. ``added``
    has the values of the columns that features add, by name.
    """

    seq: int
    url: str
    host: str
    outcome: str
    score: float
    features: Mapping[str, float]
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
    model: str = ""
    points_to: str | None = None
    warc_file: str | None = None
    added: Mapping[str, str | float | bool | None] = {}


decode_page_row = msgspec.msgpack.Decoder(PageRow).decode
"""Decodes a row of the table ``pages``."""
PAGE_COLUMNS = PageRow.__struct_fields__[:-1]
"""The columns that each crawl has, in storage order; behind them are those of features."""
HISTORY_COLUMNS = (
    "first_seen",
    "last_seen",
    "last_changed",
    "versions",
    "change_rate",
    "gone_at",
)
"""The columns of ``pages.parquet`` that tell of later visits."""
_FETCHED_AT = PAGE_COLUMNS.index("fetched_at")


class LinkRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of ``links.parquet``; its source is the page that it is stored with."""

    target: str
    anchor: str
    position: float
    nofollow: bool
    score: float | None


LINK_COLUMNS = ("source", *LinkRow.__struct_fields__)
"""The columns of ``links.parquet``."""


COLUMN_KINDS = ("text", "number", "flag")
"""The types of columns that features add to ``pages.parquet``."""
_COLUMNS_META = "page_columns"


class Archive:
    """Append-only rows over a :class:`StateStore`; the caller commits."""

    def __init__(
        self, store: StateStore, *, warc: WarcFiles | None = None, links: bool = True
    ) -> None:
        """``links`` False stores no link rows, which are most of what a crawl writes."""
        self.stores_links = links
        self._tables = store.tables
        self._warc = warc
        if warc is not None:
            store.before_sync(warc.force)

    def __len__(self) -> int:
        return self._tables.count("pages")

    def row(self, seq: int) -> PageRow | None:
        """Return the row of that number, or None."""
        raw = self._tables.get("pages", seq.to_bytes(8, "big"))
        return None if raw is None else decode_page_row(raw)

    def amend(self, row: PageRow) -> None:
        """Replace the columns of a row; its links and WARC records stay."""
        self._tables.put("pages", row.seq.to_bytes(8, "big"), pack(row))

    def add_columns(self, kinds: Mapping[str, str]) -> None:
        """Add columns to ``pages.parquet``, by name; their kinds are :data:`COLUMN_KINDS`.

        Raises ConfigurationError for a kind that does not exist, and for a name that is taken.
        """
        if not kinds:
            return
        known = added_columns(self._tables)
        for name, kind in kinds.items():
            if kind not in COLUMN_KINDS:
                raise ConfigurationError(
                    f"the column {name} of a feature: {kind!r} must be one of "
                    f"{', '.join(COLUMN_KINDS)}"
                )
            if name in PAGE_COLUMNS or name in HISTORY_COLUMNS or known.get(name, kind) != kind:
                raise ConfigurationError(f"the column {name} of a feature exists already")
        self._tables.put_meta(_COLUMNS_META, {**known, **kinds})

    @property
    def last_activity_at(self) -> float:
        """When the last row or visit was settled; 0.0 without rows."""
        key = self._tables.last_key("pages")
        if key is None:
            return 0.0
        fetched_at = float(unpack(self._tables.get("pages", key) or b"")[_FETCHED_AT])
        last_visit = self._tables.last_key("visits")
        if last_visit is None:
            return fetched_at
        from focused.archive.page_history import decode_visit  # only for a continuous crawl

        return max(fetched_at, decode_visit(self._tables.get("visits", last_visit) or b"").at)

    @property
    def record_builder(self) -> WarcRecordBuilder | None:
        """Builds the WARC records of fetched pages; None without a WARC."""
        return None if self._warc is None else self._warc.writer

    def capture(self, outcome: Outcome, now: float) -> WarcCapture | None:
        """Build the WARC records of an outcome without a page.

        None when no response came, or the WARC holds pages alone.
        """
        exchange = outcome.exchange
        if self._warc is None or not self._warc.holds_all or exchange is None:
            return None
        body = outcome.body if isinstance(outcome, Fetched) else b""
        return self._warc.writer.capture_exchange(outcome.url, exchange, body, now, outcome.address)

    def record(self, outcome: Outcome, now: float) -> None:
        """Write the WARC records of an outcome without a row."""
        capture = self.capture(outcome, now)
        if self._warc is not None and capture is not None:
            self._warc.append(capture)

    def record_unchanged(
        self, outcome: Outcome, capture: WarcCapture | None, row: PageRow, now: float
    ) -> WarcPosition | None:
        """Write the WARC record of a revisit that found the version of ``row`` unchanged.

        ``capture`` holds the records of a page that came; otherwise those of ``outcome`` are made.
        """
        capture = capture or self.capture(outcome, now)
        if self._warc is None or capture is None or not self._warc.holds_all:
            return None
        version = None
        if isinstance(outcome, NotModified) and row.warc_file and row.warc_offset is not None:
            version = WarcPosition(row.warc_file, row.warc_offset)
        return self._warc.append(capture, version)

    def replace(
        self, row: PageRow, links: Sequence[LinkRow], capture: WarcCapture | None
    ) -> PageRow:
        """Replace the row of a page by its new version; return it with its WARC position.

        The position is None if the WARC has no record of the version.
        """
        return self.append(
            msgspec.structs.replace(row, warc_file=None, warc_offset=None), links, capture
        )

    def append(
        self, row: PageRow, links: Sequence[LinkRow] = (), capture: WarcCapture | None = None
    ) -> PageRow:
        """Write the row of one URL, its links and its WARC records, as :meth:`replace`."""
        if self._warc is not None and capture is not None:
            position = self._warc.append(capture)
            row = msgspec.structs.replace(row, warc_file=position.file, warc_offset=position.offset)
        key = row.seq.to_bytes(8, "big")
        self._tables.put("pages", key, pack(row))
        if links and self.stores_links:
            self._tables.put("page_links", key, _compress_links(row.url, links))
        return row

    def close(self) -> None:
        """Sync and close the WARC."""
        if self._warc is not None:
            self._warc.close()


def added_columns(tables: Tables) -> Mapping[str, str]:
    """Return the kinds of the columns that features added, by name."""
    return tables.get_meta(_COLUMNS_META) or {}


def page_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield all page rows in the order of settling, with the columns of features."""
    for *row, added in page_values(tables):
        yield {**dict(zip(PAGE_COLUMNS, row, strict=True)), **added}


def page_values(tables: Tables) -> Iterator[list[Any]]:
    """Yield all page rows in the order of settling: values of :data:`PAGE_COLUMNS`, and added ones.

    The last value has the columns of features by name.
    """
    for _, raw in tables.scan("pages"):
        yield unpack(raw)


def link_values(tables: Tables) -> Iterator[list[Any]]:
    """Yield all link rows as values of :data:`LINK_COLUMNS`."""
    for _, raw in tables.scan("page_links"):
        source, links = _decompress_links(raw)
        for link in links:
            yield [source, *link]


def decode_page_links(raw: bytes) -> list[LinkRow]:
    """Decode a row of the table ``page_links``: the links of one page."""
    return [LinkRow(*link) for link in _decompress_links(raw)[1]]


def _compress_links(url: str, links: Sequence[LinkRow]) -> bytes:
    # Links of a page are repetitive: two fifths are left, in a tenth of zlib's time.
    packed: bytes = isal_zlib.compress(pack([url, links]), 0)
    return packed


def _decompress_links(row: bytes) -> Any:
    if row[0] == _ZLIB_HEADER:
        return unpack(isal_zlib.decompress(row))
    # Rows of states before format 20: their length, and LZ4.
    (length,) = _LENGTH_PREFIX.unpack_from(row)
    return unpack(_lz4_codec().decompress(row[_LENGTH_PREFIX.size :], length, asbytes=True))


@cache
def _lz4_codec() -> Any:
    import pyarrow  # slow to import

    return pyarrow.Codec("lz4_raw")
