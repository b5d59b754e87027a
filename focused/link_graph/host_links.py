"""The host graph: which hosts link to which, and in how many links of pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.errors import ConfigurationError
from focused.files import atomic_write_path

_HOSTS, _LINKS = "hosts.parquet", "host_links.parquet"


@dataclass(frozen=True, slots=True)
class HostGraph:
    """The hosts of a link graph.

    ``names`` are sorted; ``pages`` counts the URLs of each, shape (n,). ``links`` counts the links
    of pages between two hosts, shape (n, n); those within a host are on the diagonal.
    """

    names: tuple[str, ...]
    pages: NDArray[np.int64]
    links: csr_array

    @classmethod
    def from_tables(cls, hosts: pa.Table, links: pa.Table) -> Self:
        """Make one from tables of hosts with pages, and of sources, targets and links."""
        names = tuple(hosts["host"].to_pylist())
        places = links["source"].to_numpy(), links["target"].to_numpy()
        counts = csr_array((links["links"].to_numpy(), places), shape=(len(names), len(names)))
        return cls(names, hosts["pages"].to_numpy(), counts)

    def node(self, host: str) -> int:
        """Return the number of a host. Raises ConfigurationError if the graph lacks it."""
        place = int(np.searchsorted(np.array(self.names, dtype=object), host))
        if place == len(self.names) or self.names[place] != host:
            raise ConfigurationError(f"{host}: no page of this link graph has this host")
        return place


def write_host_graph(folder: Path, graph: HostGraph) -> None:
    """Write two Parquet files: the hosts, and the links between them."""
    links = graph.links.tocoo()
    hosts = pa.table({"host": pa.array(graph.names, pa.string()), "pages": graph.pages})
    counted = pa.table({"source": links.row, "target": links.col, "links": links.data})
    for name, table in ((_HOSTS, hosts), (_LINKS, counted)):
        with atomic_write_path(folder / name) as part:
            pq.write_table(table, part, compression="zstd")


def read_host_graph(folder: Path) -> HostGraph:
    """Read what :func:`write_host_graph` wrote."""
    return HostGraph.from_tables(pq.read_table(folder / _HOSTS), pq.read_table(folder / _LINKS))
