"""``pages.parquet``, ``links.parquet`` and ``visits.parquet``: schemas and export.

``pages`` has a row for every settled URL that was requested, for URLs disallowed by robots.txt, and
for some links of dead hosts; ``links`` has one for every link found on a fetched page; ``visits``
one for every revisit. Times are UTC timestamps. pyarrow takes time and memory, so no crawl imports
this module while it fetches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.archive import (
    HISTORY_COLUMNS,
    LINK_COLUMNS,
    PAGE_COLUMNS,
    added_columns,
    link_values,
    page_values,
)
from focused.archive.page_history import (
    VISIT_COLUMNS,
    history_values,
    page_histories,
    visit_rows,
)
from focused.files import atomic_write_path
from focused.storage.arrow_columns import TIMESTAMP, arrow_table
from focused.storage.tables import Tables

PAGES_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),  # order of settling, from 0
        ("url", pa.string()),
        ("host", pa.string()),
        ("outcome", pa.string()),  # fetched | noindex | feed | redirected | failed
        ("status", pa.int32()),  # HTTP status, 0 when none came
        ("failure", pa.string()),  # FailureKind value, "" unless failed
        ("title", pa.string()),
        ("relevance", pa.float64()),  # computed after the fetch; null unless fetched
        ("on_topic", pa.bool_()),
        ("score", pa.float64()),  # predicted before the fetch
        ("features", pa.map_(pa.string(), pa.float64())),  # the features that made the score
        ("depth", pa.int32()),  # links from the nearest seed along the path taken
        ("parent", pa.string()),  # the page (or redirect) that led here; null for a seed
        ("anchor", pa.string()),
        ("language", pa.string()),
        ("content_type", pa.string()),
        ("bytes", pa.int64()),
        ("duplicate_of", pa.string()),  # URL of the earlier page that it repeats, or null
        ("duplicate_kind", pa.string()),  # exact | near | canonical; null: it repeats none
        ("points_to", pa.string()),  # where a redirect led; the canonical URL that a page names
        ("training", pa.bool_()),  # a training sample: never counts as harvest
        ("found_at", TIMESTAMP),
        ("fetched_at", TIMESTAMP),
        ("elapsed_s", pa.float64()),
        ("policy", pa.string()),  # the ordering policy that chose it
        ("model", pa.string()),  # the topic model's name: the beginning of its file's SHA-256
        ("warc_offset", pa.int64()),  # of the response or revisit record in warc_file, or null
        ("warc_file", pa.string()),
        # Null where the crawl does not visit the page again:
        ("first_seen", TIMESTAMP),  # the first fetch
        ("last_seen", TIMESTAMP),  # the last visit that told the page's content
        ("last_changed", TIMESTAMP),  # the last visit that found it changed, or null
        ("versions", pa.int32()),
        ("change_rate", pa.float64()),  # estimated changes a day; null before the first revisit
        ("gone_at", TIMESTAMP),  # null while the page is there
    ]
)

LINKS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("target", pa.string()),
        ("anchor", pa.string()),
        ("position", pa.float64()),
        ("nofollow", pa.bool_()),
        ("score", pa.float64()),  # null when not scored: out of scope, settled already
    ]
)

VISITS_SCHEMA = pa.schema(
    [
        ("page", pa.int64()),  # seq of the page's row
        ("url", pa.string()),
        ("at", TIMESTAMP),
        ("previous_at", TIMESTAMP),  # the visit before that told the page's content
        ("result", pa.string()),  # VisitResult value
        ("predicted", pa.float64()),  # probability of a change, before the response was compared
        ("status", pa.int32()),  # HTTP status, 0 when none came
        ("change", pa.float64()),  # share of the content that changed; null if not compared
        ("relevance", pa.float64()),  # of a new version; null without
        ("on_topic", pa.bool_()),
        ("new_links", pa.int32()),
        ("bytes", pa.int64()),
        ("warc_file", pa.string()),
        ("warc_offset", pa.int64()),  # of the response or revisit record in warc_file, or null
    ]
)


_ROWS_PER_BATCH, _BATCHES_PER_GROUP = 1_000, 10
_Value = TypeVar("_Value")


def write_parquet_files(tables: Tables, folder: Path) -> None:
    """Write the files, each replaced atomically; ``visits.parquet`` only if there are visits."""
    added = added_columns(tables)
    columns = (*PAGE_COLUMNS, *added, *HISTORY_COLUMNS)
    fields = [pa.field(name, _COLUMN_TYPES[kind]) for name, kind in added.items()]
    schema = pa.schema([*PAGES_SCHEMA, *fields])
    rows = _page_values(tables, list(added))
    _write_parquet(folder / "pages.parquet", schema, columns, rows)
    _write_parquet(folder / "links.parquet", LINKS_SCHEMA, LINK_COLUMNS, link_values(tables))
    if tables.count("visits"):
        visits = ([getattr(row, name) for name in VISIT_COLUMNS] for row in visit_rows(tables))
        _write_parquet(folder / "visits.parquet", VISITS_SCHEMA, VISIT_COLUMNS, visits)


def _page_values(tables: Tables, added: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the rows of pages with the columns that features added, and those of histories."""
    for (*row, own), history in _with_values(page_values(tables), page_histories(tables)):
        visited = history_values(history, row[_FETCHED_AT]) if history else _NEVER_VISITED
        yield [*row, *map(own.get, added), *visited]


def _with_values(
    rows: Iterator[list[Any]], numbered: Iterator[tuple[int, _Value]]
) -> Iterator[tuple[list[Any], _Value | None]]:
    """Yield each row of pages with the value of its number, None without; both are ascending."""
    nothing = sys.maxsize, None
    number, value = next(numbered, nothing)
    for row in rows:
        while number < row[_SEQ]:
            number, value = next(numbered, nothing)
        yield row, value if number == row[_SEQ] else None


_COLUMN_TYPES = {"text": pa.string(), "number": pa.float64(), "flag": pa.bool_()}
_NEVER_VISITED = [None] * len(HISTORY_COLUMNS)
_SEQ, _FETCHED_AT = PAGE_COLUMNS.index("seq"), PAGE_COLUMNS.index("fetched_at")


def _write_parquet(
    path: Path, schema: pa.Schema, names: Sequence[str], rows: Iterator[list[Any]]
) -> None:
    """Write rows with values in the order of ``names``, in row groups."""
    with (
        atomic_write_path(path) as part,
        pq.ParquetWriter(part, schema, write_page_checksum=True) as writer,
    ):
        while group := list(islice(_batches(schema, names, rows), _BATCHES_PER_GROUP)):
            writer.write_table(pa.concat_tables(group))


def _batches(
    schema: pa.Schema, names: Sequence[str], rows: Iterator[list[Any]]
) -> Iterator[pa.Table]:
    """Yield rows as tables. Larger batches take more time and memory: rows are many objects."""
    while batch := list(islice(rows, _ROWS_PER_BATCH)):
        columns = dict(zip(names, zip(*batch, strict=True), strict=True))
        yield arrow_table(columns, schema)
