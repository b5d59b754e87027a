"""Read a crawl's output folder: pages in memory, links looked up on disk.

The archive of a crawl of many partitions is read likewise: each table has a folder with a file per
partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.archive import HISTORY_COLUMNS
from focused.archive.crawl_tables import (
    open_tables,
    read_json,
    read_settings,
    readable_table,
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

    ``pages`` has the columns of :data:`PAGES_SCHEMA` except the large ``features``, in the order
    they were settled; ``visits`` those of :data:`VISITS_SCHEMA` in order of time, without rows if
    no page was visited again. Times are in seconds since the epoch. Of many partitions,
    ``partition`` names the part of each row, and ``seq`` is numbered in the order of
    ``fetched_at``. ``settings`` and ``stats`` are empty when their file is missing: a killed crawl
    leaves no ``stats.json``.
    """

    path: Path
    pages: pd.DataFrame
    settings: Mapping[str, Any]
    stats: Mapping[str, Any]
    visits: pd.DataFrame = field(default_factory=_no_visits)

    @property
    def topic(self) -> Mapping[str, Any]:
        """The topic that the crawl ran with; empty when unknown."""
        topic = self.settings.get("topic", {})
        return topic if isinstance(topic, dict) else {}


def read_crawl(folder: Path, tables: Path | None = None) -> CrawlFolder:
    """Read the crawl in ``folder``. Raises :class:`StateError` when it cannot be read.

    Pass ``tables`` from :func:`open_tables` when you read further tables.
    """
    if tables is None:
        with open_tables(folder) as found:
            return read_crawl(folder, found)
    pages = _read_table(
        tables, "pages", PAGES_SCHEMA, columns=_PAGE_COLUMNS, optional=HISTORY_COLUMNS, added=True
    ).to_pandas()
    for verdict in ("on_topic", "training"):
        pages[verdict] = pages[verdict].eq(True)
    visits = _read_visits(tables)
    if "partition" in pages:
        pages, visits = _renumbered(pages, visits)
    return CrawlFolder(
        path=folder,
        pages=pages.sort_values("seq", kind="stable", ignore_index=True),
        settings=read_settings(folder),
        stats=read_json(folder / "stats.json"),
        visits=visits,
    )


def _read_visits(tables: Path) -> pd.DataFrame:
    visits: pd.DataFrame = (
        _read_table(tables, "visits", VISITS_SCHEMA, columns=VISITS_SCHEMA.names).to_pandas()
        if any(path.exists() for path in table_files(tables, "visits"))
        else _no_visits()
    )
    return visits


def _renumbered(pages: pd.DataFrame, visits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Number the pages of all partitions as one crawl; each partition numbers its own from 0."""
    pages = pages.sort_values(["fetched_at", "partition", "seq"], ignore_index=True)
    if not visits.empty:
        own = pages[["partition", "seq"]].reset_index(names="whole")
        visits = visits.merge(own, left_on=["partition", "page"], right_on=["partition", "seq"])
        visits = visits.assign(page=visits["whole"]).drop(columns=["whole", "seq"])
        visits = visits.sort_values("at", kind="stable", ignore_index=True)
    return pages.assign(seq=pages.index), visits


def read_features(tables: Path, urls: Collection[str]) -> dict[str, dict[str, float]]:
    """The features that each settled URL of ``urls`` was scored by."""
    table = _read_table(
        tables,
        "pages",
        PAGES_SCHEMA,
        columns=["url", "features"],
        filters=[("url", "in", list(urls))],
    )
    return {row["url"]: dict(row["features"] or ()) for row in table.to_pylist()}


def read_links_to(tables: Path, url: str) -> list[dict[str, Any]]:
    """The rows of ``links.parquet`` with target ``url``; empty without that file."""
    if not any(path.exists() for path in table_files(tables, "links")):
        return []
    rows: list[dict[str, Any]] = _read_table(
        tables, "links", LINKS_SCHEMA, columns=LINKS_SCHEMA.names, filters=[("target", "==", url)]
    ).to_pylist()
    return rows


def _read_table(
    tables: Path,
    name: str,
    schema: pa.Schema,
    columns: list[str],
    filters: Any = None,
    optional: Collection[str] = (),
    *,
    added: bool = False,
) -> pa.Table:
    """Read columns of a table; of many partitions, with the column ``partition``."""
    files = table_files(tables, name)
    parts = [_read_file(path, schema, columns, filters, optional, added) for path in files]
    if files[0].parent == tables:
        return parts[0]
    named = zip(files, parts, strict=True)
    return pa.concat_tables(
        (
            part.append_column("partition", pa.array([path.stem] * len(part), pa.string()))
            for path, part in named
        ),
        promote_options="default",
    )


def _read_file(
    path: Path,
    schema: pa.Schema,
    columns: list[str],
    filters: Any,
    optional: Collection[str],
    added: bool,
) -> pa.Table:
    """Read columns of a file; ``optional`` ones that it lacks are null.

    ``added`` reads those, too, that features added.
    """
    with readable_table(path):
        names = pq.read_schema(path).names
        missing = sorted(set(columns) - set(names))
        if set(missing) <= set(optional):
            found = [name for name in columns if name not in missing]
            found += [name for name in names if added and name not in schema.names]
            table = pq.read_table(path, columns=found, filters=filters)
            for name in missing:
                nulls = pa.nulls(len(table), schema.field(name).type)
                table = table.append_column(name, nulls)
            return times_as_seconds(table)
    raise StateError(
        f"{path}: lacks the columns {', '.join(missing)}; it was written by another program or "
        f"version (expected are {len(schema.names)} columns from {schema.names[0]})"
    )
