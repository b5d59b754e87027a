"""Export a graph as GraphML, Parquet, or lines of links."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from focused.errors import ConfigurationError
from focused.files import atomic_write_path
from focused.link_graph.adjacency import Nodes
from focused.link_graph.distillation import links_among
from focused.link_graph.page_graph import PageGraph

FORMATS = (".graphml", ".parquet", ".tsv", ".tsv.gz")
"""The suffixes of files that can be written."""
_LINKS_A_BATCH = 200_000
_XML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="relevance" for="node" attr.name="relevance" attr.type="double"/>
<key id="links" for="edge" attr.name="links" attr.type="long"/>
<graph edgedefault="directed">
"""


class ExportedGraph:
    """The nodes and links to export: names, relevance (NaN where unknown), weighted links."""

    def __init__(
        self,
        names: Callable[[], Iterator[str]],
        relevance: np.ndarray,
        links: Callable[[], Iterator[tuple[Nodes, Nodes, Nodes]]],
    ) -> None:
        self.names = names
        self.relevance = relevance
        self.links = links

    @classmethod
    def pages(cls, graph: PageGraph, *, fetched_only: bool = False) -> ExportedGraph:
        """The pages; with ``fetched_only`` those that were fetched, with the links among them."""
        if not fetched_only:
            return cls(
                lambda: iter(graph.urls),
                graph.relevance(),
                lambda: ((s, t, np.ones_like(s)) for s, t in graph.out.pairs()),
            )
        nodes = graph.pages.nodes
        sources, targets = links_among(graph, nodes).nonzero()
        return cls(
            lambda: iter(graph.urls.urls(nodes)),
            graph.pages.relevance,
            lambda: iter([(sources, targets, np.ones_like(sources))]),
        )

    @classmethod
    def hosts(cls, graph: PageGraph) -> ExportedGraph:
        """The hosts, without the links within them."""
        links = graph.hosts.links.tocoo()
        other = links.row != links.col
        return cls(
            lambda: iter(graph.hosts.names),
            np.full(len(graph.hosts.names), np.nan),
            lambda: iter([(links.row[other], links.col[other], links.data[other])]),
        )


def write_graph(graph: ExportedGraph, path: Path) -> None:
    """Write a graph in the format of the file's suffix.

    Parquet: columns source, target, links, with names; the nodes go to ``NAME.nodes.parquet``.
    TSV: lines of source, target and links. Raises ConfigurationError for another suffix.
    """
    name = path.name.lower()
    if name.endswith(".graphml"):
        with atomic_write_path(path) as part, part.open("w", encoding="utf-8") as file:
            _write_graphml(graph, file)
    elif name.endswith(".parquet"):
        _write_parquet(graph, path)
    elif name.endswith(".tsv"):
        with atomic_write_path(path) as part, part.open("w", encoding="utf-8") as file:
            _write_lines(graph, file)
    elif name.endswith(".tsv.gz"):
        with atomic_write_path(path) as part, gzip.open(part, "wt", encoding="utf-8") as file:
            _write_lines(graph, file)
    else:
        raise ConfigurationError(f"{path}: its suffix is none of {', '.join(FORMATS)}")


def _write_graphml(graph: ExportedGraph, file: IO[str]) -> None:
    file.write(_XML_HEAD)
    for number, (name, relevance) in enumerate(
        zip(graph.names(), graph.relevance.tolist(), strict=True)
    ):
        rated = "" if np.isnan(relevance) else f'<data key="relevance">{relevance!r}</data>'
        file.write(f'<node id="n{number}"><data key="url">{escape(name)}</data>{rated}</node>\n')
    for sources, targets, counts in graph.links():
        file.writelines(
            f'<edge source="n{source}" target="n{target}"><data key="links">{count}</data></edge>\n'
            for source, target, count in zip(
                sources.tolist(), targets.tolist(), counts.tolist(), strict=True
            )
        )
    file.write("</graph>\n</graphml>\n")


def _write_parquet(graph: ExportedGraph, path: Path) -> None:
    names = pa.array(graph.names(), pa.string())
    relevance = pa.array(graph.relevance, pa.float64(), from_pandas=True)
    with atomic_write_path(path.with_suffix(".nodes.parquet")) as part:
        pq.write_table(pa.table({"name": names, "relevance": relevance}), part, compression="zstd")
    schema = pa.schema([("source", pa.string()), ("target", pa.string()), ("links", pa.int64())])
    with atomic_write_path(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as to:
        for sources, targets, counts in _batches(graph):
            columns = [names.take(sources), names.take(targets), pa.array(counts, pa.int64())]
            to.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_lines(graph: ExportedGraph, file: IO[str]) -> None:
    names: Sequence[str] = list(graph.names())
    for sources, targets, counts in graph.links():
        file.writelines(
            f"{names[source]}\t{names[target]}\t{count}\n"
            for source, target, count in zip(
                sources.tolist(), targets.tolist(), counts.tolist(), strict=True
            )
        )


def _batches(graph: ExportedGraph) -> Iterator[tuple[Nodes, Nodes, Nodes]]:
    """Join the small parts of links into large ones."""
    held: list[tuple[Nodes, Nodes, Nodes]] = []
    for part in graph.links():
        held.append(part)
        if sum(len(each[0]) for each in held) >= _LINKS_A_BATCH:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(parts: Sequence[tuple[Nodes, Nodes, Nodes]]) -> tuple[Nodes, Nodes, Nodes]:
    sources, targets, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return sources, targets, counts
