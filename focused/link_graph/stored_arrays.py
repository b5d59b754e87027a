"""The files of a link graph: sorted URLs and lists of links, memory-mapped.

The URLs are an Arrow file; the number of a node is the rank of its URL. The links in a direction
are two NumPy arrays, as in SciPy's CSR format: the targets of all nodes, one list after the other,
and where each list begins. Reading a graph maps the files; nothing is loaded before it is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from focused.archive.crawl_tables import first_line
from focused.errors import ConfigurationError, StateError

URLS_SCHEMA = pa.schema([("url", pa.string())])
_LINKS_A_PART = 1_000_000

Nodes = NDArray[np.int64]
"""Numbers of nodes, from 0, in the order of their URLs."""


class SuccessorLists(NamedTuple):
    """Lists of consecutive nodes: that of the i-th is ``targets[bounds[i]:bounds[i + 1]]``."""

    bounds: NDArray[np.int64]
    targets: NDArray[np.integer]

    def __getitem__(self, place: int) -> Nodes:  # type: ignore[override]
        """Return a list, ascending. Raises IndexError."""
        if not 0 <= place < len(self.bounds) - 1:
            raise IndexError(f"node {place} is not in [0, {len(self.bounds) - 1})")
        return self.targets[self.bounds[place] : self.bounds[place + 1]].astype(np.int64)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The length of each list."""
        return np.diff(self.bounds)

    def select(self, nodes: Nodes) -> SuccessorLists:
        """Return the lists of nodes, in their order. Raises IndexError."""
        degrees = self.bounds[nodes + 1] - self.bounds[nodes]
        bounds = np.concatenate(([0], np.cumsum(degrees)))
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[nodes] - bounds[:-1], degrees)
        return SuccessorLists(bounds, self.targets[places].astype(np.int64))

    def parts(self) -> Iterator[tuple[int, SuccessorLists]]:
        """Yield the lists of all nodes, some million links at a time, with the first node."""
        nodes, begin = len(self.bounds) - 1, 0
        while begin < nodes:
            full = int(np.searchsorted(self.bounds, self.bounds[begin] + _LINKS_A_PART))
            end = min(max(full, begin + 1), nodes)
            bounds = self.bounds[begin : end + 1]
            yield begin, SuccessorLists(bounds - bounds[0], self.targets[bounds[0] : bounds[-1]])
            begin = end

    def pairs(self) -> Iterator[tuple[Nodes, Nodes]]:
        """Yield all links in order as arrays of sources and targets."""
        for first, lists in self.parts():
            nodes = np.arange(first, first + len(lists.bounds) - 1)
            yield np.repeat(nodes, lists.degrees), lists.targets.astype(np.int64)


def write_lists(path: Path, nodes: int, links: int, keys: Iterable[NDArray[np.int64]]) -> None:
    """Write ``links`` links, which come as sorted keys, ``source * nodes + target``."""
    kind = np.int32 if nodes <= np.iinfo(np.int32).max else np.int64
    targets = open_memmap(_part(path, "targets"), "w+", kind, (links,))
    bounds = np.zeros(nodes + 1, np.int64)
    written = 0
    for batch in keys:
        sources, targets[written : written + len(batch)] = np.divmod(batch, nodes)
        found, degrees = np.unique(sources, return_counts=True)
        bounds[found + 1] += degrees
        written += len(batch)
    np.save(_part(path, "bounds"), np.cumsum(bounds))


def open_lists(path: Path, nodes: int) -> SuccessorLists:
    """Open what :func:`write_lists` wrote. Raises StateError if it is missing or damaged."""
    bounds, targets = (_open_array(_part(path, name)) for name in ("bounds", "targets"))
    with readable_graph(_part(path, "bounds")):
        _require(len(bounds) == nodes + 1 and int(bounds[0]) == 0, "it is of another graph")
        _require(bool((np.diff(bounds) >= 0).all()), "its numbers do not ascend")
        _require(int(bounds[-1]) == len(targets), "the number of its links differs")
    with readable_graph(_part(path, "targets")):
        in_range = not len(targets) or (targets.min() >= 0 and targets.max() < nodes)
        _require(bool(in_range), "it names nodes that are none")
    return SuccessorLists(bounds.astype(np.int64, copy=False), targets)


def _open_array(path: Path) -> NDArray[np.integer]:
    with readable_graph(path):
        array = np.asarray(open_memmap(path, "r"))
        _require(array.ndim == 1 and array.dtype.kind == "i", "it is no list of numbers")
        return array


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _part(path: Path, name: str) -> Path:
    return path.with_name(f"{path.name}.{name}.npy")


class UrlTable(Sequence[str]):
    """The URLs of a graph by node, sorted, and the nodes by URL."""

    def __init__(self, path: Path, nodes: int) -> None:
        """Raises StateError if the file is missing or damaged, or has another number of URLs."""
        with readable_graph(path):
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            _require(table.schema == URLS_SCHEMA and len(table) == nodes, "it is of another graph")
            self._urls = table["url"]
            # Arrow follows offsets of a damaged file into other memory.
            self._urls.validate(full=True)

    def __len__(self) -> int:
        return len(self._urls)

    def __getitem__(self, node: int) -> str:  # type: ignore[override]
        """Return the URL of a node. Raises IndexError."""
        if not 0 <= node < len(self):
            raise IndexError(f"node {node} is not in [0, {len(self)})")
        url: str = self._urls[node].as_py()
        return url

    def find(self, url: str) -> int | None:
        """Return the node of a URL, or None."""
        node = bisect_left(self, url)
        return node if node < len(self) and self[node] == url else None

    def node(self, url: str) -> int:
        """Return the node of a URL. Raises ConfigurationError if the graph lacks it."""
        node = self.find(url)
        if node is None:
            raise ConfigurationError(f"{url}: no page of this link graph has this URL")
        return node

    def urls(self, nodes: Iterable[int]) -> list[str]:
        """Return the URLs of nodes. Raises IndexError."""
        return [self[int(node)] for node in nodes]


def write_urls(path: Path, batches: pa.RecordBatchReader) -> None:
    """Write a table with the column ``url``, sorted, each URL once."""
    with pa.ipc.new_file(str(path), batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


# What NumPy and Arrow raise for headers and tables of other shapes.
_READ_ERRORS = (OSError, ValueError, EOFError, LookupError, TypeError, SyntaxError, TokenError)


@contextmanager
def readable_graph(path: Path) -> Iterator[None]:
    """Turn what prevents reading a graph's file into a StateError that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise StateError(
            f"{path}: is missing; this is no link graph, or its build was interrupted: "
            "'focused graph build' makes it"
        ) from None
    except (*_READ_ERRORS, MemoryError) as error:
        detail = "it holds objects" if "allow_pickle" in str(error) else first_line(error)
        raise StateError(f"{path}: is damaged ({detail}); build the link graph again") from None
