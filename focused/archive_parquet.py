"""Parquet files from an archive's rows: when the crawl ends, and whenever a report is asked for.

A crawl imports this at its end: pyarrow is slow to import.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive import LINK_COLUMNS, PAGE_COLUMNS, link_values, page_values
from focused.archive_schema import LINKS_SCHEMA, PAGES_SCHEMA
from focused.frontier.tables import Tables
from focused.whole_file import whole_file

_ROWS_PER_GROUP = 10_000


def export(tables: Tables, folder: Path) -> None:
    """Write ``pages.parquet`` and ``links.parquet`` anew, each replaced at once."""
    _write_parquet(folder / "pages.parquet", PAGES_SCHEMA, PAGE_COLUMNS, page_values(tables))
    _write_parquet(folder / "links.parquet", LINKS_SCHEMA, LINK_COLUMNS, link_values(tables))


def _write_parquet(
    path: Path, schema: pa.Schema, names: Sequence[str], rows: Iterator[list[Any]]
) -> None:
    """Write rows whose values stand in the order of ``names``, a group of them at a time."""
    with (
        whole_file(path) as part,
        pq.ParquetWriter(part, schema, write_page_checksum=True) as writer,
    ):
        while group := list(islice(rows, _ROWS_PER_GROUP)):
            columns = dict(zip(names, zip(*group, strict=True), strict=True))
            arrays = [_array(columns[field.name], field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_map(kind):
        return pa.array(values, kind)
    ends = [0, *accumulate(map(len, values))]
    keys = pa.array(chain.from_iterable(values), kind.key_type)
    items = pa.array(chain.from_iterable(map(dict.values, values)), kind.item_type)
    return pa.MapArray.from_arrays(ends, keys, items)
