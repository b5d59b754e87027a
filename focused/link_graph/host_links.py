"""The host graph: which hosts link to which, and in how many links of pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.errors import ConfigurationError
from focused.files import atomic_write_path
from focused.web.urls import host_of

_MAX_PENDING = 4_000_000
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

    def node(self, host: str) -> int:
        """Return the number of a host. Raises ConfigurationError if the graph lacks it."""
        place = int(np.searchsorted(np.array(self.names, dtype=object), host))
        if place == len(self.names) or self.names[place] != host:
            raise ConfigurationError(f"{host}: no page of this link graph has this host")
        return place


class HostLinkCounter:
    """Counts links between hosts; memory grows with the pairs of hosts."""

    def __init__(self, hosts_of_nodes: NDArray[np.int32], hosts: int) -> None:
        self._hosts_of_nodes = hosts_of_nodes
        self._hosts = hosts
        self._keys = [np.empty(0, dtype=np.int64)]
        self._counts = [np.empty(0, dtype=np.int64)]
        self._pending = 0

    def add(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Count links between nodes, shapes (n,)."""
        hosts = self._hosts_of_nodes
        links = hosts[sources].astype(np.int64) * self._hosts + hosts[targets]
        keys, counts = np.unique(links, return_counts=True)
        self._keys.append(keys)
        self._counts.append(counts)
        self._pending += len(keys)
        if self._pending > _MAX_PENDING:
            self._merge()

    def links(self) -> csr_array:
        """Return the number of links between any two hosts, shape (hosts, hosts)."""
        self._merge()
        sources, targets = np.divmod(self._keys[0], self._hosts)
        shape = (self._hosts, self._hosts)
        return csr_array((self._counts[0], (sources, targets)), shape=shape)

    def _merge(self) -> None:
        keys, places = np.unique(np.concatenate(self._keys), return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, places, np.concatenate(self._counts))
        self._keys, self._counts, self._pending = [keys], [counts], 0


class HostNumbering:
    """Numbers the hosts of URLs, which come in the order of their nodes."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._of_nodes: list[NDArray[np.int32]] = []

    def add(self, urls: Iterable[str]) -> None:
        """Append the URLs of the next nodes."""
        numbers = self._numbers
        found = [numbers.setdefault(host_of(url), len(numbers)) for url in urls]
        self._of_nodes.append(np.array(found, dtype=np.int32))

    def finish(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """Return the sorted hosts and the number of each node's host."""
        names = tuple(sorted(self._numbers))
        new = np.empty(len(names), dtype=np.int32)
        for place, name in enumerate(names):
            new[self._numbers[name]] = place
        return names, new[np.concatenate([np.empty(0, np.int32), *self._of_nodes])]


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
    hosts, links = pq.read_table(folder / _HOSTS), pq.read_table(folder / _LINKS)
    names = tuple(hosts["host"].to_pylist())
    places = links["source"].to_numpy(), links["target"].to_numpy()
    counts = csr_array((links["links"].to_numpy(), places), shape=(len(names), len(names)))
    return HostGraph(names, hosts["pages"].to_numpy(), counts)
