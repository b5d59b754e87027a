"""Export a graph as GraphML or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.files import atomic_write_path
from focused.link_graph.measures import links_among
from focused.link_graph.page_graph import PageGraph
from focused.link_graph.stored_arrays import Nodes

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
        sources, targets = links_among(graph, nodes).nonzero()
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
