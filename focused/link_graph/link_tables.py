"""Read the links of crawls from their tables, sorted and numbered by DuckDB within bounded memory.

What DuckDB cannot hold in memory it spills to its work folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.archive.crawl_tables import readable_table, table_files
from focused.errors import ConfigurationError
from focused.link_graph.rated_pages import RatedPages

_ROWS = 100_000
_KEY = "hash"
_PAGE = "outcome IN ('fetched', 'noindex')"


@dataclass(frozen=True, slots=True)
class CrawlTables:
    """The opened tables of a crawl; see :func:`focused.archive.crawl_tables.open_tables`.

    Only pages whose present version was fetched at ``since`` or later are read, with their links.
    ``since`` is in seconds since the epoch.
    """

    crawl: Path
    tables: Path
    since: float = 0.0


class LinkTables:
    """The links of crawls in a database in ``work``; closes with the ``with`` statement."""

    def __init__(
        self, crawls: Sequence[CrawlTables], work: Path, *, nofollow: bool, memory_mb: int
    ) -> None:
        """``nofollow`` False leaves out links with rel=nofollow.

        Raises StateError if a table cannot be read, ConfigurationError if a crawl kept no links.
        """
        self._database = duckdb.connect(str(work / "links.duckdb"))
        self._run(f"SET memory_limit = '{memory_mb}MB'")
        self._run("SET enable_progress_bar = false")
        self._run("SET preserve_insertion_order = false")
        self._run(f"SET temp_directory = {_quoted(work / 'spilled')}")
        follow = "" if nofollow else "WHERE NOT coalesce(nofollow, false)"
        pages, links = [], []
        for each in crawls:
            page_files, link_files = _files(each)
            schema = pq.read_schema(page_files[0])
            times = [name for name in ("fetched_at", "last_changed") if name in schema.names]
            changed_at = f"greatest({', '.join(_seconds(name, schema) for name in times)})"
            pages.append(
                "SELECT url, outcome, points_to, relevance, on_topic, training, "
                f"{changed_at} AS changed_at FROM {_parquet(page_files)} "
                f"WHERE changed_at >= {each.since!r}"
            )
            links.append(f"SELECT source, target FROM {_parquet(link_files)} {follow}")
        self._run(f"CREATE TEMP TABLE pages AS {' UNION ALL '.join(pages)}")
        if any(each.since for each in crawls):
            links = [f"{each} {'AND' if follow else 'WHERE'} source IN (SELECT url FROM pages)"
                     for each in links]  # fmt: skip
        self._run(
            f"CREATE TEMP VIEW links AS {' UNION ALL '.join(links)} UNION ALL "
            "SELECT url, points_to FROM pages WHERE outcome = 'redirected'"
        )

    @property
    def last_changed_at(self) -> float:
        """When the newest page was fetched, in seconds since the epoch; 0.0 without pages."""
        (row,) = self._database.execute("SELECT max(changed_at) FROM pages").fetchall()
        return float(row[0] or 0.0)

    def urls(self) -> Iterator[list[str]]:
        """Yield the URLs of pages and targets, sorted by their bytes, each once.

        Each source is a page: its links are stored with its row.
        """
        for batch in self._batches(
            "SELECT DISTINCT url FROM (SELECT url FROM pages UNION ALL SELECT target FROM links) "
            "WHERE url IS NOT NULL ORDER BY url"
        ):
            yield batch.column(0).to_pylist()

    def number(self, numbered: Path, nodes: int) -> None:
        """Number the links; ``numbered`` is a Parquet file of all URLs and their nodes.

        ``nodes`` is above all of them.
        """
        self._nodes, self._numbered = nodes, _parquet([numbered])
        self._run(
            f"CREATE TEMP TABLE keys AS SELECT {_KEY}(url) AS key, node FROM {self._numbered}"
        )
        (counts,) = self._database.execute(
            "SELECT count(*), count(DISTINCT key) FROM keys"
        ).fetchall()
        # Hashes take a tenth of the memory, and are exact unless two of these URLs share one.
        if counts[0] == counts[1]:
            numbers, column, key = "keys", "key", _KEY
        else:
            numbers, column, key = self._numbered, "url", ""
        self._run(
            f"CREATE TABLE numbered AS SELECT s.node * {nodes} + t.node AS link FROM links "
            f"JOIN {numbers} s ON s.{column} = {key}(links.source) "
            f"JOIN {numbers} t ON t.{column} = {key}(links.target) WHERE s.node <> t.node"
        )
        self._run("DROP TABLE keys")

    def links(self) -> Iterator[NDArray[np.int64]]:
        """Yield the links as sorted keys, ``source * nodes + target``; some repeat."""
        return self._keys("SELECT link FROM numbered ORDER BY link")

    def transposed_links(self) -> Iterator[NDArray[np.int64]]:
        """Yield the links as sorted keys, ``target * nodes + source``; some repeat."""
        count = self._nodes
        return self._keys(
            f"SELECT (link % {count}) * {count} + link // {count} AS link FROM numbered "
            "ORDER BY link"
        )

    def page_nodes(self) -> NDArray[np.int64]:
        """Return the nodes of all pages that were read, whatever their outcome."""
        found = self._database.sql(
            f"SELECT DISTINCT node FROM pages JOIN {self._numbered} USING (url)"
        ).to_arrow_table()
        nodes: NDArray[np.int64] = found["node"].to_numpy().astype(np.int64)
        return nodes

    def rated_pages(self) -> RatedPages:
        """Return the fetched pages; of a page in several crawls, the highest relevance."""
        return RatedPages.from_table(
            self._database.sql(
                "SELECT node AS nodes, coalesce(max(relevance), 'nan'::DOUBLE) AS relevance, "
                "coalesce(bool_or(on_topic), false) AS on_topic, "
                "coalesce(bool_or(training), false) AS training "
                f"FROM pages JOIN {self._numbered} USING (url) WHERE {_PAGE} "
                "GROUP BY node ORDER BY node"
            ).to_arrow_table()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def _run(self, statement: str) -> None:
        self._database.execute(statement)

    def _batches(self, query: str) -> Iterator[Any]:
        yield from self._database.sql(query).to_arrow_reader(_ROWS)

    def _keys(self, query: str) -> Iterator[NDArray[np.int64]]:
        for batch in self._batches(query):
            yield batch.column(0).to_numpy(zero_copy_only=False)


def _files(crawl: CrawlTables) -> tuple[list[Path], list[Path]]:
    """The files of pages and links, checked to be readable."""
    pages, links = (table_files(crawl.tables, name) for name in ("pages", "links"))
    for path in [*pages, *links]:
        with readable_table(path):
            pq.read_metadata(path)
    if not any(pq.read_metadata(path).num_rows for path in links):
        raise ConfigurationError(
            f"{crawl.crawl}: stores no links, because output.links was false or nothing was "
            "fetched; crawl again with them"
        )
    return pages, links


def _parquet(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(_quoted, files))}], union_by_name = true)"


def _seconds(column: str, schema: pa.Schema) -> str:
    """Return SQL for a time in seconds since the epoch; earlier versions stored it so."""
    if pa.types.is_timestamp(schema.field(column).type):
        return f"epoch_us({column}) / 1e6"
    return column


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
