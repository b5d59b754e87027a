"""Read a crawl's output folder: pages in memory, links looked up on disk.

The archive of a crawl of many partitions is read likewise: each table has a folder with a file per
partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.crawl_tables import (
    complete_columns,
    open_tables,
    read_settings,
    read_stats,
    readable_table,
    stored_columns,
    table_files,
)
from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA, VISITS_SCHEMA
from focused.errors import StateError
from focused.storage.arrow_columns import times_as_seconds

_PAGE_COLUMNS = [name for name in PAGES_SCHEMA.names if name != "features"]


def _no_visits() -> pd.DataFrame:
    visits: pd.DataFrame = times_as_seconds(VISITS_SCHEMA.empty_table()).to_pandas()
    return visits


@dataclass(frozen=True, slots=True)
class CrawlFolder:
    """The output of one crawl.

    ``pages`` has the columns of :data:`PAGES_SCHEMA` except the large ``features``, and those that
    features of the crawl added, in the order they were settled; ``visits`` those of
    :data:`VISITS_SCHEMA` in order of time, without rows if no page was visited again. Times are in
    seconds since the epoch. Of many partitions, ``partition`` names the part of each row, and
    ``seq`` is numbered in the order of ``fetched_at``. ``settings`` and ``stats`` are empty when
    their file is missing: a killed crawl leaves no ``stats.json``.
    """

    path: Path
    pages: pd.DataFrame
    settings: Mapping[str, Any]
    stats: Mapping[str, Any]
    visits: pd.DataFrame = field(default_factory=_no_visits)

    @property
    def topic(self) -> Mapping[str, Any]:
        """The topic that the crawl ran with; empty when unknown."""
        topic: Mapping[str, Any] = self.settings.get("topic", {})
        return topic


def read_crawl(folder: Path, tables: Path | None = None) -> CrawlFolder:
    """Read the crawl in ``folder``. Raises :class:`StateError` when it cannot be read.

    Pass ``tables`` from :func:`open_tables` when you read further tables.
    """
    if tables is None:
        with open_tables(folder) as found:
            return read_crawl(folder, found)
    pages = _read_table(tables, "pages", PAGES_SCHEMA, _PAGE_COLUMNS, is_whole=True).to_pandas()
    for verdict in ("on_topic", "training"):
        pages[verdict] = pages[verdict].eq(True)
    visits = _no_visits()
    if _has_table(tables, "visits"):
        visits = _read_table(tables, "visits", VISITS_SCHEMA, VISITS_SCHEMA.names).to_pandas()
    if "partition" in pages:
        pages, visits = _renumbered(pages, visits)
    if not pages["seq"].is_unique:
        raise StateError(
            f"{tables}: several pages have one number (seq); they were written by another program"
        )
    return CrawlFolder(
        path=folder,
        pages=pages.sort_values("seq", kind="stable", ignore_index=True),
        settings=read_settings(folder),
        stats=read_stats(folder),
        visits=visits,
    )


def _renumbered(pages: pd.DataFrame, visits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Number the pages of all partitions as one crawl; each partition numbers its own from 0."""
    pages = pages.sort_values(["fetched_at", "partition", "seq"], ignore_index=True)
    if not visits.empty:
        own = pages[["partition", "seq"]].reset_index(names="whole")
        visits = visits.merge(own, left_on=["partition", "page"], right_on=["partition", "seq"])
        visits = visits.assign(page=visits["whole"]).drop(columns=["whole", "seq"])
        visits = visits.sort_values("at", kind="stable", ignore_index=True)
    return pages.assign(seq=pages.index), visits


def read_links_to(tables: Path, url: str) -> list[dict[str, Any]]:
    """The rows of ``links.parquet`` with target ``url``; empty without that file."""
    if not _has_table(tables, "links"):
        return []
    chosen = [("target", "==", url)]
    rows: list[dict[str, Any]] = _read_table(
        tables, "links", LINKS_SCHEMA, LINKS_SCHEMA.names, chosen
    ).to_pylist()
    return rows


def _has_table(tables: Path, name: str) -> bool:
    return any(path.exists() for path in table_files(tables, name))


def _read_table(
    tables: Path,
    name: str,
    schema: pa.Schema,
    columns: list[str],
    filters: Any = None,
    *,
    is_whole: bool = False,
) -> pa.Table:
    """Read columns of a table; of many partitions, with the column ``partition``.

    The columns of later visits are null where a file lacks them. A table that ``is_whole`` has
    those, too, that features added.
    """
    parts = []
    for path in table_files(tables, name):
        found = stored_columns(path, name, columns)
        with readable_table(path):
            if is_whole:
                found += (each for each in pq.read_schema(path).names if each not in schema.names)
            table = pq.read_table(path, columns=found, filters=filters)
        table = complete_columns(table, path, name, columns)
        if path.parent != tables:
            partition = pa.array([path.stem] * len(table), pa.string())
            table = table.append_column("partition", partition)
        parts.append(table)
    return pa.concat_tables(parts, promote_options="default")
