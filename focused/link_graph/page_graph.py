"""A stored link graph: pages by URL, their links in both directions, the host graph; its export.

A graph's folder has ``graph.json``, which names the folder of the current generation. A build
writes a new generation and replaces ``graph.json``, so a reader never sees half a graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple, Self
from xml.sax.saxutils import escape

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.archive.crawl_tables import open_tables, read_json, readable_table, table_files
from focused.errors import ConfigurationError, StateError
from focused.files import atomic_write_path
from focused.link_graph.stored_arrays import Nodes, UrlTable, open_lists, readable_graph

GRAPH_FILE = "graph.json"
URLS_FILE, LINKS, TRANSPOSE = "urls.arrow", "links", "transpose"
PAGES_FILE = "pages.parquet"
HOSTS_FILE, HOST_LINKS_FILE = "hosts.parquet", "host_links.parquet"
GRAPH_FORMAT = 2


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


class RatedPages(NamedTuple):
    """Pages that were fetched, by node, ascending; ``relevance`` is NaN where it is unknown."""

    nodes: Nodes
    relevance: NDArray[np.float64]


class HostGraph(NamedTuple):
    """The hosts of a link graph.

    ``names`` are sorted; ``pages`` counts the URLs of each, shape (n,). ``links`` counts the links
    of pages between two hosts, shape (n, n); those within a host are on the diagonal.
    """

    names: tuple[str, ...]
    pages: NDArray[np.int64]
    links: csr_array

    def node(self, host: str) -> int:
        """Return the number of a host. Raises ConfigurationError if the graph lacks it."""
        place = bisect_left(self.names, host)
        if place == len(self.names) or self.names[place] != host:
            raise ConfigurationError(f"{host}: no page of this link graph has this host")
        return place


class AnchorText(msgspec.Struct, frozen=True):
    """A link as the archive has it: URLs, anchor text, and whether it is rel=nofollow."""

    source: str
    target: str
    anchor: str
    nofollow: bool


class PageGraph:
    """The link graph of pages.

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
        self.urls = UrlTable(self._files / URLS_FILE, info.nodes)
        self.out = open_lists(self._files / LINKS, info.nodes)
        self.into = open_lists(self._files / TRANSPOSE, info.nodes)

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.urls)

    @property
    def links(self) -> int:
        """The number of links."""
        return len(self.out.targets)

    @cached_property
    def pages(self) -> RatedPages:
        """The fetched pages with their relevance."""
        with readable_graph(self._files / PAGES_FILE):
            table = pq.read_table(self._files / PAGES_FILE)
            nodes = table["node"].to_numpy()
            if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(self):
                raise ValueError("it names nodes that are none")
            return RatedPages(nodes, table["relevance"].to_numpy())

    @cached_property
    def hosts(self) -> HostGraph:
        """The host graph."""
        with readable_graph(self._files / HOSTS_FILE):
            hosts = pq.read_table(self._files / HOSTS_FILE)
            names = tuple(hosts["host"].to_pylist())
            pages = hosts["pages"].to_numpy()
        with readable_graph(self._files / HOST_LINKS_FILE):
            links = pq.read_table(self._files / HOST_LINKS_FILE)
            places = links["source"].to_numpy(), links["target"].to_numpy()
            counts = csr_array((links["links"].to_numpy(), places), shape=(len(names), len(names)))
        return HostGraph(names, pages, counts)

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

    def links_among(self, nodes: Nodes) -> csr_array:
        """Return the links among ``nodes``, ascending, shape (n, n)."""
        lists = self.out.select(nodes)
        sources = np.repeat(np.arange(len(nodes)), lists.degrees)
        places = np.searchsorted(nodes, lists.targets)
        inside = places < len(nodes)
        inside[inside] = nodes[places[inside]] == lists.targets[inside]
        ones = np.ones(int(inside.sum()))
        return csr_array((ones, (sources[inside], places[inside])), shape=(len(nodes), len(nodes)))

    def relevance(self) -> NDArray[np.float64]:
        """Return the relevance of each node, NaN where it was not fetched, shape (nodes,)."""
        relevance = np.full(len(self), np.nan)
        relevance[self.pages.nodes] = self.pages.relevance
        return relevance

    @property
    def stored_bytes(self) -> int:
        """Size of all files."""
        with readable_graph(self._files):
            return sum(path.stat().st_size for path in self._files.iterdir())


_XML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="relevance" for="node" attr.name="relevance" attr.type="double"/>
<key id="links" for="edge" attr.name="links" attr.type="long"/>
<graph edgedefault="directed">
"""


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """The nodes and links to export: names, relevance (NaN where unknown), weighted links.

    ``links`` are sources, targets and weights, some at a time; they can be read once.
    """

    names: Sequence[str]
    relevance: NDArray[np.float64]
    links: Iterable[tuple[Nodes, Nodes, Nodes]]

    @classmethod
    def pages(cls, graph: PageGraph, *, fetched_only: bool = False) -> Self:
        """The pages; with ``fetched_only`` those that were fetched, with the links among them."""
        if not fetched_only:
            links = ((s, t, np.ones_like(s)) for s, t in graph.out.pairs())
            return cls(graph.urls, graph.relevance(), links)
        nodes = graph.pages.nodes
        sources, targets = graph.links_among(nodes).nonzero()
        own = [(sources, targets, np.ones_like(sources))]
        return cls(graph.urls.urls(nodes), graph.pages.relevance, own)

    @classmethod
    def hosts(cls, graph: PageGraph) -> Self:
        """The hosts, without the links within them."""
        links = graph.hosts.links.tocoo()
        other = links.row != links.col
        unknown = np.full(len(graph.hosts.names), np.nan)
        return cls(
            graph.hosts.names, unknown, [(links.row[other], links.col[other], links.data[other])]
        )


def write_graph(graph: ExportedGraph, path: Path) -> None:
    """Write a graph in the format of the file's suffix, ``.graphml`` or ``.parquet``.

    Parquet: columns source, target, links, with names; the nodes go to ``NAME.nodes.parquet``.
    Raises ConfigurationError for another suffix.
    """
    match path.suffix.lower():
        case ".graphml":
            with atomic_write_path(path) as part, part.open("w", encoding="utf-8") as file:
                _write_graphml(graph, file)
        case ".parquet":
            _write_parquet(graph, path)
        case _:
            raise ConfigurationError(f"{path}: its suffix is neither .graphml nor .parquet")


def _write_graphml(graph: ExportedGraph, file: IO[str]) -> None:
    file.write(_XML_HEAD)
    for number, (name, relevance) in enumerate(
        zip(graph.names, graph.relevance.tolist(), strict=True)
    ):
        rated = "" if np.isnan(relevance) else f'<data key="relevance">{relevance!r}</data>'
        file.write(f'<node id="n{number}"><data key="url">{escape(name)}</data>{rated}</node>\n')
    for sources, targets, counts in graph.links:
        file.writelines(
            f'<edge source="n{source}" target="n{target}"><data key="links">{count}</data></edge>\n'
            for source, target, count in zip(
                sources.tolist(), targets.tolist(), counts.tolist(), strict=True
            )
        )
    file.write("</graph>\n</graphml>\n")


def _write_parquet(graph: ExportedGraph, path: Path) -> None:
    names = pa.array(graph.names, pa.string())
    relevance = pa.array(graph.relevance, pa.float64(), from_pandas=True)
    with atomic_write_path(path.with_suffix(".nodes.parquet")) as part:
        pq.write_table(pa.table({"name": names, "relevance": relevance}), part, compression="zstd")
    schema = pa.schema([("source", pa.string()), ("target", pa.string()), ("links", pa.int64())])
    with atomic_write_path(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as to:
        for sources, targets, counts in graph.links:
            columns = [names.take(sources), names.take(targets), pa.array(counts, pa.int64())]
            to.write_table(pa.Table.from_arrays(columns, schema=schema))
