"""The pages that a corpus takes from a crawl, with their in-links and clusters of duplicates.

:func:`select_pages` reads the crawl's tables once and writes what it selects to a file. An export
that is interrupted reads the same file again, even if the crawl went on meanwhile, and finds the
documents there that it has extracted. Memory holds a few numbers a page, never texts.
:class:`PageFilter` has the conditions, on rows and on extracted documents.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray

from focused.archive.crawl_tables import (
    complete_columns,
    open_tables,
    readable_table,
    stored_columns,
    table_files,
)
from focused.corpus.records import TRAIN, VALIDATION, InLink
from focused.errors import ConfigurationError, StateError
from focused.files import atomic_write_path


class PageFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions that all hold for a page; times are in seconds since the epoch, UTC dates ISO.

    ``min_relevance`` None keeps the pages on topic, by the model's threshold. ``hosts`` are hosts,
    or domains with all hosts below; empty keeps all. ``languages`` are ISO 639-1 codes.
    ``published_*`` and ``languages`` leave out pages of which they are unknown. ``robots`` are
    directives, of which a page may have none. ``good_quality`` keeps pages that fail no rule of
    :mod:`focused.corpus.page_records`.
    """

    min_relevance: float | None = None
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    fetched_since: float | None = None
    fetched_until: float | None = None
    published_since: str | None = None
    published_until: str | None = None
    duplicates: bool = False
    samples: bool = True
    robots: tuple[str, ...] = ()
    min_words: int = 1
    good_quality: bool = False

    def keeps_page(self, page: SelectedPage) -> bool:
        """Whether a page passes the conditions on its row."""
        if self.min_relevance is None:
            is_relevant = page.on_topic
        else:
            is_relevant = page.relevance is not None and page.relevance >= self.min_relevance
        return (
            is_relevant
            and (self.duplicates or page.duplicate_of is None)
            and (self.samples or not page.training)
            and (not self.languages or page.language in self.languages)
            and (self.fetched_since is None or page.fetched_at >= self.fetched_since)
            and (self.fetched_until is None or page.fetched_at < self.fetched_until)
            and (not self.hosts or is_below(page.host, self.hosts))
            and not is_below(page.host, self.not_hosts)
        )

    def keeps_document(
        self, *, published: str, robots: Sequence[str], words: int, failed_rules: Sequence[str]
    ) -> bool:
        """Whether a page passes the conditions on its content."""
        if (self.published_since or self.published_until) and not published:
            return False
        return (
            words >= self.min_words
            and (self.published_since is None or published >= self.published_since)
            and (self.published_until is None or published < self.published_until)
            and set(self.robots).isdisjoint(robots)
            and not (self.good_quality and failed_rules)
        )


def is_below(host: str, domains: Sequence[str]) -> bool:
    """Whether a host (with or without port) is one of ``domains`` or below one."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return any(host == each or name == each or name.endswith(f".{each}") for each in domains)


class ExportOptions(msgspec.Struct, frozen=True):
    """What an export writes.

    ``chunk_chars`` None writes pages whole. ``validation`` in [0, 1) is the share of registered
    domains that go to the validation split, by a hash seeded with ``seed``. ``graph`` is the folder
    of the crawl's link graph, which gives the columns ``authority`` and ``hub``. ``guess_dates``
    searches the texts of pages for days of publication.
    """

    form: str
    pages: PageFilter = PageFilter()
    chunk_chars: int | None = None
    validation: float = 0.0
    seed: int = 0
    compression: str = "none"
    graph: str | None = None
    guess_dates: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return (TRAIN, VALIDATION) if self.validation else (TRAIN,)


MAX_IN_LINKS = 20
"""In-links stored for a page: the first ones."""

_BATCH_ROWS = 4_096


class SelectedPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One page of the corpus, as its row tells it; ``cluster`` is the hash of its original's URL.

    ``on_topic`` of a duplicate is that of its original. ``fetched_at`` is when the version came
    that the WARC record at ``warc_offset`` holds.
    """

    url: str
    host: str
    title: str
    relevance: float | None
    on_topic: bool
    score: float
    depth: int
    parent: str | None
    anchor: str
    language: str
    duplicate_of: str | None
    training: bool
    fetched_at: float
    gone: bool
    model: str
    warc_file: str
    warc_offset: int
    cluster: str
    cluster_size: int


_COLUMNS = [
    name
    for name in SelectedPage.__struct_fields__
    if name not in ("gone", "cluster", "cluster_size")
]


_EMPTY = {"title": "", "score": 0.0, "depth": 0, "anchor": "", "language": "", "model": ""}
"""What is not told in tables of other programs."""


class SelectionTotals(msgspec.Struct, frozen=True):
    """Numbers for the data card; times are in seconds since the epoch, 0.0 without pages.

    ``fetched`` counts the crawl's pages that were fetched, ``duplicates`` those among them;
    ``noindex`` the pages that the crawl left out itself; ``unrecorded`` the pages that pass the
    filter but have no WARC record; ``selected`` the others that pass it.
    """

    fetched: int
    duplicates: int
    noindex: int
    unrecorded: int
    selected: int
    first_at: float
    last_at: float
    created_at: float


_encode = msgspec.msgpack.Encoder().encode
_decode_page = msgspec.msgpack.Decoder(SelectedPage).decode


def url_hash(url: str) -> int:
    """Return 64 bits of a URL's hash."""
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass"))


def select_pages(crawl: Path, file: Path, page_filter: PageFilter, now: float) -> None:
    """Write the selection of a crawl to ``file``, atomically.

    Raises StateError when the crawl cannot be read or the disk is full, ConfigurationError when it
    kept no WARC.
    """
    with (
        _full_disk_as_state_error(file),
        open_tables(crawl) as tables,
        atomic_write_path(file) as part,
        closing(sqlite3.connect(part)) as database,
    ):
        database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE pages (position INTEGER PRIMARY KEY, page BLOB);"
            "CREATE TABLE in_links (position INTEGER, source TEXT, anchor TEXT);"
            "CREATE TABLE totals (totals BLOB);"
        )
        hashes, totals = _write_pages(database, tables, page_filter, now)
        if totals.unrecorded and not totals.selected:
            raise ConfigurationError(
                f'{crawl}: has no WARC records of pages, because output.warc was "off"; crawl '
                "again with it"
            )
        _write_in_links(database, tables, hashes)
        database.execute("INSERT INTO totals VALUES (?)", (_encode(totals),))
        database.execute("CREATE INDEX in_links_by_position ON in_links (position)")
        database.commit()


class _Clusters:
    """The original of each duplicate, and the sizes of the clusters, by hashes of URLs."""

    def __init__(self, tables: Path) -> None:
        self._original: dict[int, int] = {}
        on_topic = array("Q")
        for row in _rows(tables, ["url", "outcome", "duplicate_of", "on_topic"]):
            if row["outcome"] == "fetched" and row["duplicate_of"]:
                self._original[url_hash(row["url"])] = url_hash(row["duplicate_of"])
            elif row["on_topic"]:
                on_topic.append(url_hash(row["url"]))
        originals = set(self._original.values())
        self._on_topic = {key for key in on_topic if key in originals}
        self._sizes = Counter(map(self.root, self._original))

    def root(self, key: int) -> int:
        """Return the original that a page duplicates, over several steps; else the page."""
        seen = set()
        while key in self._original and key not in seen:
            seen.add(key)
            key = self._original[key]
        self._original.update(dict.fromkeys(seen, key))  # the next way from there is one step
        return key

    def page(self, row: dict[str, Any], key: int) -> SelectedPage:
        """Return the page of a row, whose URL has the hash ``key``."""
        root = self.root(key)
        is_on_topic = bool(row["on_topic"]) or (root != key and root in self._on_topic)
        return SelectedPage(
            **{name: _EMPTY.get(name) if row[name] is None else row[name] for name in _COLUMNS}
            | {
                "on_topic": is_on_topic,
                "training": bool(row["training"]),
                "fetched_at": row["last_changed"] or row["fetched_at"],
                "gone": row["gone_at"] is not None,
                "cluster": f"{root:016x}",
                "cluster_size": 1 + self._sizes[root],
            }
        )


def _write_pages(
    database: sqlite3.Connection, tables: Path, page_filter: PageFilter, now: float
) -> tuple[NDArray[np.uint64], SelectionTotals]:
    """Write the selected pages; return the hashes of their URLs in order, and the totals."""
    clusters = _Clusters(tables)
    hashes = array("Q")
    counts: Counter[str] = Counter()
    first_at, last_at = float("inf"), 0.0
    for row in _rows(tables, ["outcome", *_COLUMNS, "last_changed", "gone_at"]):
        counts[row["outcome"]] += 1
        if row["outcome"] != "fetched":
            continue
        key = url_hash(row["url"])
        page = clusters.page(row, key)
        counts["duplicates"] += page.duplicate_of is not None
        if not page_filter.keeps_page(page):
            continue
        if row["warc_file"] is None or row["warc_offset"] is None:
            counts["unrecorded"] += 1
            continue
        first_at, last_at = min(first_at, page.fetched_at), max(last_at, page.fetched_at)
        database.execute("INSERT INTO pages VALUES (?, ?)", (len(hashes), _encode(page)))
        hashes.append(key)
    totals = SelectionTotals(
        fetched=counts["fetched"],
        duplicates=counts["duplicates"],
        noindex=counts["noindex"],
        unrecorded=counts["unrecorded"],
        selected=len(hashes),
        first_at=first_at if hashes else 0.0,
        last_at=last_at,
        created_at=now,
    )
    return np.frombuffer(hashes, np.uint64) if hashes else np.empty(0, np.uint64), totals


def _write_in_links(database: sqlite3.Connection, tables: Path, hashes: NDArray[np.uint64]) -> None:
    """Write the first in-links of each selected page, in the order of the links' table."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    counts = np.zeros(len(hashes), np.uint8)
    if not len(hashes) or not any(path.exists() for path in table_files(tables, "links")):
        return
    for batch in _batches(tables, "links", ["source", "target", "anchor"]):
        targets = batch.column("target").to_pylist()
        keys = np.fromiter(map(url_hash, targets), np.uint64, len(targets))
        places = np.minimum(ordered.searchsorted(keys), len(ordered) - 1)
        for row in np.flatnonzero(ordered[places] == keys):
            position = int(order[places[row]])
            if counts[position] < MAX_IN_LINKS:
                counts[position] += 1
                link = (position, batch["source"][row].as_py(), batch["anchor"][row].as_py() or "")
                database.execute("INSERT INTO in_links VALUES (?, ?, ?)", link)


def _rows(tables: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for batch in _batches(tables, "pages", columns):
        yield from batch.to_pylist()


def _batches(tables: Path, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield a table in parts, file by file, as :func:`complete_columns` returns them."""
    for path in table_files(tables, name):
        found = stored_columns(path, name, columns)
        with readable_table(path), pq.ParquetFile(path, memory_map=True) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=found):
                yield complete_columns(batch, path, name, columns)


class Selection:
    """Reads a selection; see :func:`open_selection`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS documents (position INTEGER PRIMARY KEY, document BLOB)"
        )
        (raw,) = database.execute("SELECT totals FROM totals").fetchone()
        self.totals = msgspec.msgpack.decode(raw, type=SelectionTotals)

    def pages(self, start: int = 0) -> Iterator[tuple[int, SelectedPage]]:
        """Yield positions and pages from position ``start`` on."""
        rows = self._database.execute(
            "SELECT position, page FROM pages WHERE position >= ? ORDER BY position", (start,)
        )
        for position, raw in rows:
            yield position, _decode_page(raw)

    def in_links(self, position: int) -> tuple[InLink, ...]:
        """Return the first :data:`MAX_IN_LINKS` in-links of a page."""
        rows = self._database.execute(
            "SELECT source, anchor FROM in_links WHERE position = ? ORDER BY rowid", (position,)
        )
        return tuple(InLink(source, anchor) for source, anchor in rows)

    def store_documents(self, documents: Iterable[tuple[int, bytes]]) -> None:
        """Store the documents of pages durably: all of them or, after a crash, none."""
        rows = ((position, zlib.compress(raw, 1)) for position, raw in documents)
        with self._database:
            self._database.executemany("INSERT INTO documents VALUES (?, ?)", rows)

    def documents(self) -> Iterator[bytes]:
        """Yield the stored documents in the order of the pages."""
        for (raw,) in self._database.execute("SELECT document FROM documents ORDER BY position"):
            yield zlib.decompress(raw)

    def next_position(self) -> int:
        """Return the position after the last stored document."""
        (last,) = self._database.execute("SELECT max(position) FROM documents").fetchone()
        return 0 if last is None else int(last) + 1

    def drop_documents(self) -> None:
        """Remove the stored documents."""
        with self._database:
            self._database.execute("DELETE FROM documents")


@contextmanager
def open_selection(file: Path) -> Iterator[Selection]:
    """Open a selection. Raises StateError when it is damaged or the disk is full."""
    try:
        with (
            _full_disk_as_state_error(file),
            closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)) as database,
        ):
            yield Selection(database)
    except (sqlite3.Error, TypeError, msgspec.MsgspecError, zlib.error) as error:
        raise StateError(f"{file}: is damaged ({error}); export again with --fresh") from error


@contextmanager
def _full_disk_as_state_error(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        raise StateError(f"{file} cannot be written: {os.strerror(errno.ENOSPC)}") from error
