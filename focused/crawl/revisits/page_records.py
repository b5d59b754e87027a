"""What a continuous crawl needs of each page to visit it again, by page number and by URL."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import msgspec

from focused.archive.archive import Archive, PageRow
from focused.archive.page_history import HistoryWriter, PageHistory, VisitRow
from focused.crawl.revisits.change_detection import VersionSignature
from focused.crawl.revisits.page_fate import PRESENT, Absence
from focused.crawl.revisits.validators import NO_VALIDATORS, Validators
from focused.frontier.queued_link import link_key
from focused.storage.tables import Tables

_NUMBER = struct.Struct(">Q")


class PageRecord(PageHistory, array_like=True, gc=False):
    """The state of one page of the collection, mutable: its history, and what revisits need.

    ``signature`` and ``validators`` are those of the latest version. ``tries`` counts all visits,
    ``absence`` those in a row that found no page, ``failures`` those in a row that told nothing.
    ``new_relevance`` is the expected relevance of the new links that one change brings.
    ``guiding_relevance`` is that of the latest version, None where it is the row's relevance.
    """

    signature: VersionSignature | None = None
    validators: Validators = NO_VALIDATORS
    absence: Absence = PRESENT
    tries: int = 0
    failures: int = 0
    new_relevance: float = 0.0
    guiding_relevance: float | None = None


_decode_record = msgspec.msgpack.Decoder(PageRecord).decode


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page of the collection: its archive row and its record."""

    row: PageRow
    record: PageRecord


class PageRecords:
    """The records of all pages, and their visits; persistent, the caller commits."""

    def __init__(self, tables: Tables, archive: Archive) -> None:
        self._tables = tables
        self._archive = archive
        self._histories = HistoryWriter(tables)

    def __len__(self) -> int:
        return self._tables.count("page_histories")

    def number_of(self, url: str) -> int | None:
        """Return the page number of a normalised URL, or None."""
        raw = self._tables.get("page_numbers", link_key(url))
        return None if raw is None else int(_NUMBER.unpack(raw)[0])

    def get(self, page: int) -> PageRecord | None:
        """Return the record of a page, or None."""
        raw = self._tables.get("page_histories", _NUMBER.pack(page))
        return None if raw is None else _decode_record(raw)

    def load(self, page: int) -> KnownPage:
        """Return a page of the collection; StateError if it is not stored."""
        row, record = self._archive.row(page), self.get(page)
        if row is None or record is None:
            raise self._tables.damaged("page_histories", f"page {page} lacks a row")
        return KnownPage(row, record)

    def load_url(self, url: str) -> KnownPage:
        """Return the page of a normalised URL; StateError if it is not stored."""
        number = self.number_of(url)
        if number is None:
            raise self._tables.damaged("page_numbers", f"{url} has no page")
        return self.load(number)

    def add(self, page: KnownPage) -> None:
        """Store the record of a new page."""
        self._tables.put("page_numbers", link_key(page.row.url), _NUMBER.pack(page.row.seq))
        self.put(page.row.seq, page.record)

    def put(self, page: int, record: PageRecord) -> None:
        """Replace a page's record."""
        self._histories.put(page, record)

    def append_visit(self, visit: VisitRow) -> None:
        """Store a visit after all earlier ones."""
        self._histories.append_visit(visit)
