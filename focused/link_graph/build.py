"""Build the link graph of crawls, or update it with the pages fetched since.

A build merges sorted lists. DuckDB sorts the URLs and links of the pages that are new or changed;
the graph before is sorted already. New URLs only shift the numbers of the others, so its lists
remain sorted when they are renumbered. A first build merges with an empty graph.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.archive.crawl_tables import open_tables
from focused.errors import ConfigurationError, StateError
from focused.files import fsync_folder, write_json_atomically
from focused.link_graph.adjacency import Adjacency, AdjacencyWriter, Nodes
from focused.link_graph.host_links import (
    HostGraph,
    HostLinkCounter,
    HostNumbering,
    write_host_graph,
)
from focused.link_graph.link_tables import CrawlTables, LinkTables
from focused.link_graph.page_graph import (
    GRAPH_FILE,
    GRAPH_FORMAT,
    LINKS_FILE,
    PAGES_FILE,
    TRANSPOSE_FILE,
    URLS_FILE,
    GraphInfo,
    GraphSource,
    PageGraph,
    read_graph_info,
)
from focused.link_graph.rated_pages import RatedPages
from focused.link_graph.url_table import UrlTable, UrlTableWriter

DEFAULT_MEMORY_MB = 1_000
"""Memory for sorting. A build takes about 100 bytes a URL besides."""

_URLS_A_BATCH = 100_000

ProgressCallback = Callable[[str], object]
"""Called with what is done now."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to build; ``nofollow`` False leaves out links with rel=nofollow."""

    nofollow: bool = True
    memory_mb: int = DEFAULT_MEMORY_MB
    fresh: bool = False


def build_graph(
    crawls: Sequence[Path],
    folder: Path,
    options: BuildOptions = BuildOptions(),
    progress: ProgressCallback = lambda step: None,
) -> GraphInfo:
    """Build the link graph of ``crawls`` in ``folder``, or update the one that is there.

    An update reads the pages that were fetched or changed since the last build, and replaces their
    links. Pages of the graph that no crawl has any more stay. Raises StateError if a crawl or the
    graph cannot be read or another build is running, ConfigurationError if the graph has other
    crawls or ``folder`` other files.
    """
    with ExitStack() as stack:
        stack.enter_context(_locked(folder))
        info = None if options.fresh else _stored_info(crawls, folder, options)
        since = {} if info is None else {each.crawl: each.until for each in info.sources}
        names = [str(crawl.resolve()) for crawl in crawls]
        tables = [
            CrawlTables(crawl, stack.enter_context(open_tables(crawl)), since.get(name, 0.0))
            for crawl, name in zip(crawls, names, strict=True)
        ]
        old = None if info is None else stack.enter_context(PageGraph(folder))
        work = Path(stack.enter_context(TemporaryDirectory(prefix="build-", dir=folder)))
        new = work / "new"
        new.mkdir()
        read = LinkTables(tables, work, nofollow=options.nofollow, memory_mb=options.memory_mb)
        with read as links:
            nodes, count = _write_graph(links, old, new, progress)
            until = max(links.last_changed_at, *since.values(), 0.0)
        info = GraphInfo(
            GRAPH_FORMAT,
            _next_generation(folder),
            tuple(GraphSource(name, until) for name in names),
            options.nofollow,
            nodes,
            count,
        )
        _publish(new, folder, info)
    return info


def _stored_info(crawls: Sequence[Path], folder: Path, options: BuildOptions) -> GraphInfo | None:
    info = read_graph_info(folder)
    if info is None:
        return None
    if {each.crawl for each in info.sources} != {str(crawl.resolve()) for crawl in crawls}:
        raise ConfigurationError(
            f"{folder}: is the link graph of other crawls "
            f"({', '.join(each.crawl for each in info.sources)}); --out names another folder, "
            "--fresh replaces it"
        )
    if info.nofollow != options.nofollow:
        raise ConfigurationError(
            f"{folder}: was built {'with' if info.nofollow else 'without'} nofollow links; --fresh "
            "builds it anew"
        )
    return info


def _write_graph(
    links: LinkTables, old: PageGraph | None, folder: Path, progress: ProgressCallback
) -> tuple[int, int]:
    """Write all files of a generation; return the numbers of nodes and links."""
    progress("sorting URLs")
    inserted_urls = folder.parent / "inserted.parquet"
    found = list(_number_urls(links, None if old is None else old.urls, inserted_urls))
    inserted = np.concatenate([np.empty(0, np.int64), *found])
    old_nodes = 0 if old is None else len(old)
    nodes = old_nodes + len(inserted)
    hosts = _write_urls(None if old is None else old.urls, inserted_urls, folder / URLS_FILE)
    progress("numbering links")
    links.number(folder.parent / "numbered.parquet", max(nodes, 1))
    moved = np.arange(old_nodes) + np.searchsorted(inserted, np.arange(old_nodes), side="right")
    changed = np.zeros(nodes, dtype=np.bool_)
    changed[links.page_nodes()] = True
    kept = _RenumberedGraph(moved, changed, nodes)
    progress("writing links")
    names, host_of_node = hosts
    counter = HostLinkCounter(host_of_node, len(names))
    forward = kept.links(None if old is None else old.out)
    count = _write_links(folder / LINKS_FILE, nodes, merge_keys(forward, links.links()), counter)
    progress("writing the transpose")
    backward = kept.transposed_links(None if old is None else old.into)
    _write_links(folder / TRANSPOSE_FILE, nodes, merge_keys(backward, links.transposed_links()))
    pages = np.bincount(host_of_node, minlength=len(names))
    write_host_graph(folder, HostGraph(names, pages, counter.links()))
    rated = links.rated_pages()
    if old is not None:
        rated = _merge_pages(old.pages, rated, moved, changed)
    pq.write_table(rated.to_table(), folder / PAGES_FILE, compression="zstd")
    return nodes, count


def _number_urls(
    links: LinkTables, old: UrlTable | None, inserted_urls: Path
) -> Iterator[NDArray[np.int64]]:
    """Write the URLs with their nodes, and the new ones; yield the ranks of the new ones.

    The rank of a new URL is the number of URLs of the old table before it.
    """
    numbered = pa.schema([("url", pa.string()), ("node", pa.int64())])
    inserted = pa.schema([("url", pa.string())])
    count = 0
    with (
        pq.ParquetWriter(inserted_urls.with_name("numbered.parquet"), numbered) as all_urls,
        pq.ParquetWriter(inserted_urls, inserted) as new_urls,
    ):
        for urls in links.urls():
            ranks = np.zeros(len(urls), dtype=np.int64)
            is_new = np.ones(len(urls), dtype=np.bool_)
            if old is not None:
                ranks[:] = [old.rank(url) for url in urls]
                is_new[:] = [
                    rank == len(old) or old[rank] != url
                    for rank, url in zip(ranks.tolist(), urls, strict=True)
                ]
            before = count + np.cumsum(is_new) - is_new
            all_urls.write_table(pa.table([urls, ranks + before], schema=numbered))
            own = pa.array(urls, pa.string()).filter(pa.array(is_new))
            new_urls.write_table(pa.table([own], schema=inserted))
            count += int(is_new.sum())
            yield ranks[is_new]


def _write_urls(
    old: UrlTable | None, inserted_urls: Path, path: Path
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Write the merged table of URLs; return the hosts and the host of each node."""
    inserted = (
        url
        for batch in pq.ParquetFile(inserted_urls).iter_batches(_URLS_A_BATCH)
        for url in batch.column(0).to_pylist()
    )
    hosts = HostNumbering()
    with path.open("wb") as file:
        writer = UrlTableWriter(file)
        # Code points sort as the bytes of UTF-8 do.
        merged = inserted if old is None else heapq.merge(iter(old), inserted)
        while batch := [url for _, url in zip(range(_URLS_A_BATCH), merged, strict=False)]:
            writer.add(batch)
            hosts.add(batch)
        writer.finish()
    return hosts.finish()


@dataclass(frozen=True, slots=True)
class _RenumberedGraph:
    """The graph before: ``moved`` has the new node of each old one.

    The links of ``changed`` pages, by new node, are left out.
    """

    moved: Nodes
    changed: NDArray[np.bool_]
    nodes: int

    def links(self, out: Adjacency | None) -> Iterator[NDArray[np.int64]]:
        """Yield sorted keys, ``source * nodes + target``."""
        for sources, targets in () if out is None else out.pairs():
            new = self.moved[sources]
            kept = ~self.changed[new]
            yield new[kept] * self.nodes + self.moved[targets[kept]]

    def transposed_links(self, into: Adjacency | None) -> Iterator[NDArray[np.int64]]:
        """Yield sorted keys, ``target * nodes + source``."""
        for targets, sources in () if into is None else into.pairs():
            new = self.moved[sources]
            kept = ~self.changed[new]
            yield self.moved[targets[kept]] * self.nodes + new[kept]


def merge_keys(
    one: Iterator[NDArray[np.int64]], other: Iterator[NDArray[np.int64]]
) -> Iterator[NDArray[np.int64]]:
    """Merge two sorted streams of keys; yield each key once, in order."""
    streams = [one, other]
    held = [np.empty(0, np.int64), np.empty(0, np.int64)]
    is_open = [True, True]
    last = -1
    while True:
        for place, stream in enumerate(streams):
            while is_open[place] and not len(held[place]):
                batch = next(stream, None)
                is_open[place] = batch is not None
                held[place] = held[place] if batch is None else batch
        if not any(map(len, held)):
            return
        # Keys above the smaller maximum may come after keys that are not read yet.
        ends = [keys[-1] for keys in held if len(keys)]
        end = min(ends)
        cuts = [int(np.searchsorted(keys, end, side="right")) for keys in held]
        ready = np.unique(
            np.concatenate([keys[:cut] for keys, cut in zip(held, cuts, strict=True)])
        )
        held = [keys[cut:] for keys, cut in zip(held, cuts, strict=True)]
        ready = ready[ready > last]
        if len(ready):
            last = int(ready[-1])
            yield ready


def _write_links(
    path: Path,
    nodes: int,
    keys: Iterator[NDArray[np.int64]],
    counter: HostLinkCounter | None = None,
) -> int:
    with path.open("wb") as file:
        writer = AdjacencyWriter(file, nodes)
        for batch in keys:
            sources, targets = np.divmod(batch, nodes)
            writer.add(sources, targets)
            if counter is not None:
                counter.add(sources, targets)
        return writer.finish()


def _merge_pages(
    old: RatedPages, new: RatedPages, moved: Nodes, changed: NDArray[np.bool_]
) -> RatedPages:
    nodes = moved[old.nodes]
    kept = ~changed[nodes]
    all_nodes = np.concatenate((nodes[kept], new.nodes))
    order = np.argsort(all_nodes, kind="stable")
    return RatedPages(
        all_nodes[order],
        np.concatenate((old.relevance[kept], new.relevance))[order],
        np.concatenate((old.on_topic[kept], new.on_topic))[order],
        np.concatenate((old.training[kept], new.training))[order],
    )


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
