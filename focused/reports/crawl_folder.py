"""A crawl's folder as data: pages in memory, links looked up on disk."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA, write_parquet_files
from focused.errors import StateError
from focused.storage.state_store import StateStore

_PAGE_COLUMNS = [name for name in PAGES_SCHEMA.names if name != "features"]


@dataclass(frozen=True, slots=True)
class CrawlFolder:
    """What one crawl left behind.

    ``pages`` has the columns of :data:`PAGES_SCHEMA` without ``features``
    (large, and asked for page by page), in the order of settling.
    ``settings`` and ``stats`` are empty when their file is missing: a crawl
    that was killed leaves no ``stats.json``. ``path`` is the crawl's own folder.
    """

    path: Path
    pages: pd.DataFrame
    settings: Mapping[str, Any]
    stats: Mapping[str, Any]

    @property
    def topic(self) -> Mapping[str, Any]:
        """The topic as it ran, or nothing."""
        topic = self.settings.get("topic", {})
        return topic if isinstance(topic, dict) else {}


@contextmanager
def open_tables(folder: Path) -> Iterator[Path]:
    """Yield the folder of the crawl's Parquet files: its own, or a temporary one.

    The latter where its own lack rows: the crawl was killed, runs, or writes no Parquet files.
    Nothing is written into ``folder``. Raises :class:`StateError` when it cannot be read.
    """
    if not folder.is_dir():
        raise StateError(f"{folder}: there is no such folder; name a crawl's [output] folder")
    with ExitStack() as stack:
        own = folder
        if (folder / "state" / "data.mdb").is_file():
            with StateStore.reading(folder / "state") as (store, _):
                if _count_rows(folder / "pages.parquet") != store.tables.count("pages"):
                    own = Path(stack.enter_context(TemporaryDirectory(prefix="focused-")))
                    write_parquet_files(store.tables, own)
        yield own


def _count_rows(path: Path) -> int | None:
    """Rows of a Parquet file; None when it cannot be read, and has to be made again."""
    try:
        rows: int = pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError):
        return None
    return rows


def read_crawl(folder: Path, tables: Path | None = None) -> CrawlFolder:
    """Read what the crawl in ``folder`` left; :class:`StateError` when it cannot be read.

    ``tables`` as of :func:`open_tables`, for callers that read further tables.
    """
    if tables is None:
        with open_tables(folder) as found:
            return read_crawl(folder, found)
    pages = _read_table(tables / "pages.parquet", PAGES_SCHEMA, columns=_PAGE_COLUMNS).to_pandas()
    for verdict in ("on_topic", "training"):
        pages[verdict] = pages[verdict].eq(True)
    return CrawlFolder(
        path=folder,
        pages=pages.sort_values("seq", kind="stable", ignore_index=True),
        settings=_read_json(folder / "settings.json"),
        stats=_read_json(folder / "stats.json"),
    )


def read_features(tables: Path, urls: Collection[str]) -> dict[str, dict[str, float]]:
    """For each of ``urls`` that was settled, the features that made its score."""
    table = _read_table(
        tables / "pages.parquet",
        PAGES_SCHEMA,
        columns=["url", "features"],
        filters=[("url", "in", list(urls))],
    )
    return {row["url"]: dict(row["features"] or ()) for row in table.to_pylist()}


def read_links_to(tables: Path, url: str) -> list[dict[str, Any]]:
    """The rows of ``links.parquet`` whose target is ``url``; none when that file is missing."""
    path = tables / "links.parquet"
    if not path.exists():
        return []
    rows: list[dict[str, Any]] = _read_table(
        path, LINKS_SCHEMA, columns=LINKS_SCHEMA.names, filters=[("target", "==", url)]
    ).to_pylist()
    return rows


def _read_table(path: Path, schema: pa.Schema, columns: list[str], filters: Any = None) -> pa.Table:
    try:
        missing = sorted(set(columns) - set(pq.read_schema(path).names))
        if not missing:
            return pq.read_table(path, columns=columns, filters=filters)
    except FileNotFoundError:
        raise StateError(
            f"{path}: is missing; this is no crawl's folder, or its topic says parquet = false"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"{path}: is damaged ({_first_line(error)}); resume the crawl to write it again"
        ) from None
    raise StateError(
        f"{path}: lacks the columns {', '.join(missing)}; it was written by another program or "
        f"version (expected are {len(schema.names)} columns from {schema.names[0]})"
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StateError(
            f"{path}: is damaged ({_first_line(error)}); delete it to report without it"
        ) from None
    if not isinstance(value, dict):
        raise StateError(f"{path}: is damaged (no JSON object); delete it to report without it")
    return value


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
