"""Build the link graph of crawls: DuckDB sorts, numbers and counts what is then packed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.archive.crawl_tables import open_tables
from focused.errors import ConfigurationError, StateError
from focused.files import fsync_folder, write_json_atomically
from focused.link_graph.adjacency import AdjacencyWriter
from focused.link_graph.host_links import write_host_graph
from focused.link_graph.link_tables import LinkTables
from focused.link_graph.page_graph import (
    GRAPH_FILE,
    GRAPH_FORMAT,
    LINKS_FILE,
    PAGES_FILE,
    TRANSPOSE_FILE,
    URLS_FILE,
    GraphInfo,
    GraphSource,
)
from focused.link_graph.url_table import UrlTableWriter

DEFAULT_MEMORY_MB = 1_000
"""Memory for sorting. A build takes about 100 bytes a URL besides."""

ProgressCallback = Callable[[str], object]
"""Called with what is done now."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to build; ``nofollow`` False leaves out links with rel=nofollow."""

    nofollow: bool = True
    memory_mb: int = DEFAULT_MEMORY_MB


def build_graph(
    crawls: Sequence[Path],
    folder: Path,
    options: BuildOptions = BuildOptions(),
    progress: ProgressCallback = lambda step: None,
) -> GraphInfo:
    """Build the link graph of ``crawls`` in ``folder``; replace the graph that is there.

    Raises StateError if a crawl cannot be read or another build is running, ConfigurationError if
    ``folder`` has other files.
    """
    with ExitStack() as stack:
        stack.enter_context(_locked(folder))
        tables = [(crawl, stack.enter_context(open_tables(crawl))) for crawl in crawls]
        work = Path(stack.enter_context(TemporaryDirectory(prefix="build-", dir=folder)))
        new = work / "new"
        new.mkdir()
        progress("sorting URLs")
        read = LinkTables(tables, work, nofollow=options.nofollow, memory_mb=options.memory_mb)
        with read as links:
            count = _write_graph(links, new, progress)
            sources = tuple(
                GraphSource(str(crawl.resolve()), links.last_changed_at) for crawl in crawls
            )
        info = GraphInfo(
            GRAPH_FORMAT, _next_generation(folder), sources, options.nofollow, links.nodes, count
        )
        _publish(new, folder, info)
    return info


def _write_graph(links: LinkTables, folder: Path, progress: ProgressCallback) -> int:
    """Write all files of a generation; return the number of links."""
    with (folder / URLS_FILE).open("wb") as file:
        urls = UrlTableWriter(file)
        for batch in links.urls():
            urls.add(batch)
        urls.finish()
    progress("numbering links")
    links.number()
    progress("writing links")
    count = _write_links(folder / LINKS_FILE, links.nodes, links.links())
    progress("writing the transpose")
    _write_links(folder / TRANSPOSE_FILE, links.nodes, links.transposed_links())
    write_host_graph(folder, links.host_graph())
    pq.write_table(links.rated_pages().to_table(), folder / PAGES_FILE, compression="zstd")
    return count


def _write_links(path: Path, nodes: int, keys: Iterator[NDArray[np.int64]]) -> int:
    with path.open("wb") as file:
        writer = AdjacencyWriter(file, nodes)
        for batch in keys:
            writer.add(*np.divmod(batch, nodes))
        return writer.finish()


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
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"{folder}: another build of this link graph is running") from None
        for path in folder.glob("build-*"):  # of a build that was killed
            shutil.rmtree(path, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)
