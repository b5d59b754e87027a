"""A stored link graph: pages by URL, their links in both directions, and the host graph.

A graph's folder has ``graph.json``, which names the folder of the current generation. A build
writes a new generation and replaces ``graph.json``, so a reader never sees half a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.archive.crawl_tables import open_tables, read_json, readable_table, table_files
from focused.errors import StateError
from focused.link_graph.adjacency import Adjacency, Nodes, SuccessorLists
from focused.link_graph.host_links import HostGraph, read_host_graph
from focused.link_graph.url_table import UrlTable

GRAPH_FILE = "graph.json"
URLS_FILE, LINKS_FILE, TRANSPOSE_FILE = "urls.bin", "links.bin", "transpose.bin"
PAGES_FILE = "pages.parquet"
GRAPH_FORMAT = 1


class GraphSource(msgspec.Struct, frozen=True):
    """A crawl of a graph; ``until``, in seconds since the epoch, is when its newest page came."""

    crawl: str
    until: float


class GraphInfo(msgspec.Struct, frozen=True):
    """What ``graph.json`` holds; ``nofollow``: links with rel=nofollow are in the graph."""

    format: int
    generation: int
    sources: tuple[GraphSource, ...]
    nofollow: bool
    nodes: int
    links: int

    def folder(self, graph: Path) -> Path:
        """The folder of the current generation."""
        return graph / f"generation-{self.generation}"


def default_graph_folder(crawl: Path) -> Path:
    """Return the folder of a crawl's link graph, beside the crawl's."""
    return crawl.with_name(f"{crawl.resolve().name}-graph")


def read_graph_info(folder: Path) -> GraphInfo | None:
    """Read ``graph.json``; None without one. Raises StateError for another format."""
    stored = read_json(folder / GRAPH_FILE)
    if not stored:
        return None
    try:
        info = msgspec.convert(stored, GraphInfo)
    except msgspec.ValidationError as error:
        raise StateError(
            f"{folder / GRAPH_FILE}: is damaged ({error}); build the link graph again"
        ) from None
    if info.format != GRAPH_FORMAT:
        raise StateError(
            f"{folder}: has format {info.format}, this version reads {GRAPH_FORMAT}; build the "
            "link graph again"
        )
    return info


@dataclass(frozen=True, slots=True)
class RatedPages:
    """Pages that were fetched, by node, ascending; ``relevance`` is NaN where it is unknown."""

    nodes: NDArray[np.int64]
    relevance: NDArray[np.float64]
    on_topic: NDArray[np.bool_]
    training: NDArray[np.bool_]

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Make them from a table with these columns."""
        return cls(
            table["nodes"].to_numpy().astype(np.int64),
            table["relevance"].to_numpy().astype(np.float64),
            table["on_topic"].to_numpy().astype(np.bool_),
            table["training"].to_numpy().astype(np.bool_),
        )

    def to_table(self) -> pa.Table:
        """Return them as a table."""
        names = ("nodes", "relevance", "on_topic", "training")
        return pa.table({name: getattr(self, name) for name in names})


class AnchorText(msgspec.Struct, frozen=True):
    """A link as the archive has it: URLs, anchor text, and whether it is rel=nofollow."""

    source: str
    target: str
    anchor: str
    nofollow: bool


class PageGraph:
    """The link graph of pages. Not thread-safe.

    ``urls`` numbers the pages (nodes); ``out`` has the successors of each, ``into`` the
    predecessors. A node is a URL that a crawl fetched, tried to fetch, or found a link to.
    """

    def __init__(self, folder: Path) -> None:
        """Raises StateError if ``folder`` holds no graph, or it is damaged."""
        info = read_graph_info(folder)
        if info is None:
            raise StateError(
                f"{folder}: holds no link graph; 'focused graph build CRAWL --out {folder}' makes "
                "one"
            )
        self.info = info
        self._files = info.folder(folder)
        self.urls = UrlTable(self._files / URLS_FILE)
        self.out = Adjacency(self._files / LINKS_FILE)
        self.into = Adjacency(self._files / TRANSPOSE_FILE)

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.urls)

    @property
    def links(self) -> int:
        """The number of links."""
        return self.out.links

    def successors(self, node: int) -> Nodes:
        """Return the nodes that a node links to, ascending. Raises IndexError."""
        return self.out.successors(node)

    def predecessors(self, node: int) -> Nodes:
        """Return the nodes that link to a node, ascending. Raises IndexError."""
        return self.into.successors(node)

    def successors_of(self, nodes: Nodes) -> SuccessorLists:
        """Return the successors of many nodes, in their order. Raises IndexError."""
        return self.out.successors_of(nodes)

    def predecessors_of(self, nodes: Nodes) -> SuccessorLists:
        """Return the predecessors of many nodes, in their order. Raises IndexError."""
        return self.into.successors_of(nodes)

    @cached_property
    def pages(self) -> RatedPages:
        """The fetched pages with their relevance."""
        with readable_table(self._files / PAGES_FILE):
            return RatedPages.from_table(pq.read_table(self._files / PAGES_FILE))

    @cached_property
    def hosts(self) -> HostGraph:
        """The host graph."""
        with readable_table(self._files):
            return read_host_graph(self._files)

    def anchors(self, *, source: str | None = None, target: str | None = None) -> list[AnchorText]:
        """Read the links from a page, to a page, or both, with their anchors from the archive.

        Reads the whole table of links. Raises StateError if a crawl was moved away.
        """
        wanted = [
            (name, "==", url) for name, url in (("source", source), ("target", target)) if url
        ]
        columns = ["source", "target", "anchor", "nofollow"]
        found: list[AnchorText] = []
        for each in self.info.sources:
            with open_tables(Path(each.crawl)) as tables:
                for path in table_files(tables, "links"):
                    with readable_table(path):
                        rows = pq.read_table(path, columns=columns, filters=wanted).to_pylist()
                    found += [
                        AnchorText(
                            row["source"], row["target"], row["anchor"] or "", bool(row["nofollow"])
                        )
                        for row in rows
                    ]
        return found

    def relevance(self) -> np.ndarray:
        """Return the relevance of each node, NaN where it was not fetched, shape (nodes,)."""
        relevance = np.full(len(self), np.nan)
        relevance[self.pages.nodes] = self.pages.relevance
        return relevance

    @property
    def bytes_by_file(self) -> dict[str, int]:
        """Sizes of the files in bytes."""
        return {path.name: path.stat().st_size for path in sorted(self._files.iterdir())}

    def close(self) -> None:
        """Close the files."""
        for part in (self.urls, self.out, self.into):
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
