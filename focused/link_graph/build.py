"""Build the link graph of crawls: DuckDB sorts, numbers and counts what is then packed.

What DuckDB cannot hold in memory it spills to its work folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.archive.crawl_tables import open_tables, stored_columns, table_files
from focused.errors import ConfigurationError, StateError
from focused.files import fsync_folder, lock_folder, write_json_atomically
from focused.link_graph.page_graph import (
    GRAPH_FILE,
    GRAPH_FORMAT,
    HOST_LINKS_FILE,
    HOSTS_FILE,
    LINKS,
    PAGES_FILE,
    TRANSPOSE,
    URLS_FILE,
    GraphInfo,
    GraphSource,
)
from focused.link_graph.stored_arrays import write_lists, write_urls

DEFAULT_MEMORY_MB = 1_000
"""Memory for sorting. A build takes some 180 bytes a URL besides."""

ProgressCallback = Callable[[str], object]
"""Called with what is done now."""


def build_graph(
    crawls: Sequence[Path],
    folder: Path,
    *,
    nofollow: bool = True,
    memory_mb: int = DEFAULT_MEMORY_MB,
    progress: ProgressCallback = lambda step: None,
) -> GraphInfo:
    """Build the link graph of ``crawls`` in ``folder``; replace the graph that is there.

    ``nofollow`` False leaves out links with rel=nofollow. Raises StateError if a crawl cannot be
    read or another build is running, ConfigurationError if ``folder`` has other files.
    """
    with ExitStack() as stack:
        stack.enter_context(_locked(folder))
        tables = [(crawl, stack.enter_context(open_tables(crawl))) for crawl in crawls]
        work = Path(stack.enter_context(TemporaryDirectory(prefix="build-", dir=folder)))
        new = work / "new"
        new.mkdir()
        progress("sorting URLs")
        with closing(LinkTables(tables, work, nofollow=nofollow, memory_mb=memory_mb)) as links:
            count = _write_graph(links, new, progress)
            until = links.last_changed_at
        sources = tuple(GraphSource(str(crawl.resolve()), until) for crawl in crawls)
        number = _next_generation(folder)
        info = GraphInfo(GRAPH_FORMAT, number, sources, nofollow, links.nodes, count)
        _publish(new, folder, info)
    return info


def _write_graph(links: LinkTables, folder: Path, progress: ProgressCallback) -> int:
    """Write all files of a generation; return the number of links."""
    write_urls(folder / URLS_FILE, links.urls())
    progress("numbering links")
    count = links.number()
    progress("writing links")
    write_lists(folder / LINKS, links.nodes, count, links.links())
    progress("writing the transpose")
    write_lists(folder / TRANSPOSE, links.nodes, count, links.transposed_links())
    links.write_hosts(folder / HOSTS_FILE, folder / HOST_LINKS_FILE)
    links.write_rated_pages(folder / PAGES_FILE)
    return count


def _next_generation(folder: Path) -> int:
    numbers = [path.name.partition("-")[2] for path in folder.glob("generation-*")]
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)


def _publish(new: Path, folder: Path, info: GraphInfo) -> None:
    """Make the new generation the current one, then remove those before."""
    for path in new.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    current = info.folder(folder)
    new.rename(current)
    fsync_folder(folder)
    write_json_atomically(folder / GRAPH_FILE, msgspec.to_builtins(info))
    for path in folder.glob("generation-*"):
        if path != current:
            shutil.rmtree(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Refuse a second build at the same time, and a folder with other files."""
    if folder.exists() and not (folder / GRAPH_FILE).exists():
        foreign = [
            path.name
            for path in folder.iterdir()
            if not path.name.startswith(("build-", "generation-", "."))
        ]
        if foreign:
            raise ConfigurationError(f"{folder}: has other files; --out names another folder")
    folder.mkdir(parents=True, exist_ok=True)
    busy = StateError(f"{folder}: another build of this link graph is running")
    with lock_folder(folder, busy):
        for path in folder.glob("build-*"):  # of a build that was killed
            shutil.rmtree(path, ignore_errors=True)
        try:
            yield
        except BaseException:
            with suppress(OSError):
                folder.rmdir()  # a crawl that cannot be read leaves no empty folder
            raise


_ROWS = 100_000
_KEY = "hash"
_PAGE = "outcome IN ('fetched', 'noindex')"
_COLUMNS = {
    "pages": ("url", "outcome", "points_to", "relevance", "fetched_at", "last_changed"),
    "links": ("source", "target", "nofollow"),
}


class LinkTables:
    """The links of crawls in a database in ``work``."""

    def __init__(
        self,
        crawls: Sequence[tuple[Path, Path]],
        work: Path,
        *,
        nofollow: bool,
        memory_mb: int,
    ) -> None:
        """``crawls`` are folders of crawls with those of their opened tables.

        ``nofollow`` False leaves out links with rel=nofollow.

        Raises StateError if a table cannot be read, ConfigurationError if a crawl kept no links.
        """
        self._database = duckdb.connect(str(work / "links.duckdb"))
        self._run(f"SET memory_limit = '{memory_mb}MB'")
        self._run("SET enable_progress_bar = false")
        self._run("SET preserve_insertion_order = false")
        self._run(f"SET temp_directory = {_quoted(work / 'spilled')}")
        follow = "" if nofollow else "WHERE NOT coalesce(nofollow, false)"
        pages, links = [], []
        for crawl, tables in crawls:
            page_files, link_files = _files(crawl, tables)
            schema = pq.read_schema(page_files[0])
            times = [name for name in ("fetched_at", "last_changed") if name in schema.names]
            changed_at = f"greatest({', '.join(_seconds(name, schema) for name in times)})"
            pages.append(
                "SELECT url, outcome, points_to, relevance, "
                f"{changed_at} AS changed_at FROM {_parquet(page_files)}"
            )
            links.append(f"SELECT source, target FROM {_parquet(link_files)} {follow}")
        self._run(f"CREATE TEMP TABLE pages AS {' UNION ALL '.join(pages)}")
        self._run(
            f"CREATE TEMP VIEW links AS {' UNION ALL '.join(links)} UNION ALL "
            "SELECT url, points_to FROM pages WHERE outcome = 'redirected'"
        )
        # The URLs of pages and targets; each source is a page. Sorted by the bytes of UTF-8, which
        # is the order of code points.
        self._run(
            f"CREATE TEMP TABLE urls AS SELECT url, {_KEY}(url) AS key, "
            "row_number() OVER (ORDER BY url) - 1 AS node FROM (SELECT DISTINCT url FROM "
            "(SELECT url FROM pages UNION ALL SELECT target FROM links) WHERE url IS NOT NULL)"
        )
        self.nodes = self._number("SELECT count(*) FROM urls")

    @property
    def last_changed_at(self) -> float:
        """When the newest page was fetched, in seconds since the epoch; 0.0 without pages."""
        return self._number("SELECT max(changed_at) FROM pages") or 0.0

    def urls(self) -> pa.RecordBatchReader:
        """Return the URLs of pages and targets, in the order of their nodes."""
        return self._batches("SELECT url FROM urls ORDER BY node")

    def number(self) -> int:
        """Number the links, each once, without those of a page to itself; return how many."""
        # Hashes take a tenth of the memory, and are exact unless two of these URLs share one.
        is_exact = self._number("SELECT count(DISTINCT key) FROM urls") == self.nodes
        column, key = ("key", _KEY) if is_exact else ("url", "")
        self._run(
            f"CREATE TABLE numbered AS SELECT DISTINCT s.node * {self.nodes} + t.node AS link "
            f"FROM links JOIN urls s ON s.{column} = {key}(links.source) "
            f"JOIN urls t ON t.{column} = {key}(links.target) WHERE s.node <> t.node"
        )
        count: int = self._number("SELECT count(*) FROM numbered")
        return count

    def links(self) -> Iterator[NDArray[np.int64]]:
        """Yield the links as sorted keys, ``source * nodes + target``."""
        return self._keys("SELECT link FROM numbered ORDER BY link")

    def transposed_links(self) -> Iterator[NDArray[np.int64]]:
        """Yield the links as sorted keys, ``target * nodes + source``."""
        count = self.nodes
        return self._keys(
            f"SELECT (link % {count}) * {count} + link // {count} AS link FROM numbered "
            "ORDER BY link"
        )

    def write_hosts(self, hosts: Path, links: Path) -> None:
        """Count the URLs of each host, and the links between any two."""
        self._run(
            "CREATE TEMP TABLE hosts AS SELECT node, split_part(url, '/', 3) AS host, "
            "dense_rank() OVER (ORDER BY host) - 1 AS number FROM urls"
        )
        self._write("SELECT host, count(*) AS pages FROM hosts GROUP BY host ORDER BY host", hosts)
        self._write(
            "SELECT s.number AS source, t.number AS target, count(*) AS links FROM numbered "
            f"JOIN hosts s ON s.node = link // {self.nodes} "
            f"JOIN hosts t ON t.node = link % {self.nodes} GROUP BY ALL ORDER BY ALL",
            links,
        )

    def write_rated_pages(self, path: Path) -> None:
        """Write the fetched pages; of a page in several crawls, the highest relevance."""
        self._write(
            "SELECT node, coalesce(max(relevance), 'nan'::DOUBLE) AS relevance "
            f"FROM pages JOIN urls USING (url) WHERE {_PAGE} GROUP BY node ORDER BY node",
            path,
        )

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _run(self, statement: str) -> None:
        self._database.execute(statement)

    def _number(self, query: str) -> Any:
        return self._database.execute(query).fetchall()[0][0]

    def _write(self, query: str, path: Path) -> None:
        pq.write_table(self._database.sql(query).to_arrow_table(), path, compression="zstd")

    def _batches(self, query: str) -> pa.RecordBatchReader:
        return self._database.sql(query).to_arrow_reader(_ROWS)

    def _keys(self, query: str) -> Iterator[NDArray[np.int64]]:
        for batch in self._batches(query):
            yield batch.column(0).to_numpy(zero_copy_only=False)


def _files(crawl: Path, tables: Path) -> tuple[list[Path], list[Path]]:
    """The files of pages and links, checked to be readable."""
    found = []
    for name, columns in _COLUMNS.items():
        files = table_files(tables, name)
        for path in files:
            stored_columns(path, name, columns)
        found.append(files)
    pages, links = found
    if not any(pq.read_metadata(path).num_rows for path in links):
        raise ConfigurationError(
            f"{crawl}: stores no links, because no page with links was fetched yet; crawl on"
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
