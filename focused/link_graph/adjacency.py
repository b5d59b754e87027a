"""Compressed lists of successors: the links of a graph, or of its transpose.

The nodes of a block are consecutive; a block ends with 4,096 links or 4,096 nodes. It holds the
out-degrees of its nodes, then their successors: the first as a number, the others as gaps, which
are small where URLs are sorted (Boldi and Vigna: The WebGraph Framework I, WWW 2004). Numbers have
variable length, 7 bits a byte. Lists that repeat those of pages before, such as navigation, are
what zstd finds; WebGraph refers to the earlier list instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from focused.link_graph.block_file import BlockReader, BlockWriter, pack_array, unpack_array

LINKS_PER_BLOCK = 4_096
NODES_PER_BLOCK = 4_096
_CACHED_BLOCKS = 256
_CHUNK_LINKS = 1 << 20

Nodes = NDArray[np.int64]
"""Numbers of nodes, from 0, in the order of their URLs."""


class SuccessorLists(NamedTuple):
    """Lists of consecutive nodes: that of the i-th is ``targets[bounds[i]:bounds[i + 1]]``."""

    bounds: NDArray[np.int64]
    targets: NDArray[np.int64]

    def __getitem__(self, place: int) -> Nodes:  # type: ignore[override]
        return self.targets[self.bounds[place] : self.bounds[place + 1]]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The length of each list."""
        return np.diff(self.bounds)

    def select(self, rows: Nodes) -> SuccessorLists:
        """Return the lists at the given places, in that order."""
        degrees = self.degrees[rows]
        bounds = np.concatenate(([0], np.cumsum(degrees)))
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[rows] - bounds[:-1], degrees)
        return SuccessorLists(bounds, self.targets[places])


class AdjacencyWriter:
    """Writes links that come sorted by source, then target, each once."""

    def __init__(self, file: BinaryIO, nodes: int) -> None:
        self._blocks = BlockWriter(file)
        self._nodes = nodes
        self._starts: list[int] = []
        self._next_node = 0
        self._links = 0
        self._sources = np.empty(0, dtype=np.int64)
        self._targets = np.empty(0, dtype=np.int64)

    def add(self, sources: Nodes, targets: Nodes) -> None:
        """Append links, shapes (n,)."""
        self._sources = np.concatenate((self._sources, sources))
        self._targets = np.concatenate((self._targets, targets))
        if len(self._sources) >= _CHUNK_LINKS:
            # The last source may have more links.
            self._flush(int(self._sources[-1]), is_last=False)

    def finish(self) -> int:
        """Write the rest and the index; return the number of links."""
        self._flush(self._nodes, is_last=True)
        starts = pack_array(self._starts)
        self._blocks.finish({"nodes": self._nodes, "links": self._links, "starts": starts})
        return self._links

    def _flush(self, end: int, *, is_last: bool) -> None:
        """Write full blocks of the nodes below ``end``; with ``is_last`` also the rest."""
        first = self._next_node
        complete = int(np.searchsorted(self._sources, end))
        degrees = np.bincount(self._sources[:complete] - first, minlength=end - first)
        bounds = np.concatenate(([0], np.cumsum(degrees)))
        at, written = 0, 0
        while at < end - first:
            full = int(np.searchsorted(bounds, bounds[at] + LINKS_PER_BLOCK))
            stop = min(full, at + NODES_PER_BLOCK)
            if stop > end - first:
                if not is_last:
                    break
                stop = end - first
            self._starts.append(first + at)
            targets = self._targets[bounds[at] : bounds[stop]]
            self._blocks.write(_encode_block(bounds[at : stop + 1] - bounds[at], targets))
            at, written = stop, int(bounds[stop])
        self._next_node = first + at
        self._links += written
        self._sources = self._sources[written:]
        self._targets = self._targets[written:]


class Adjacency:
    """The successors of each node; of a transposed graph, the predecessors. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises StateError if the file is missing or damaged."""
        self._blocks = BlockReader(path)
        self.nodes = int(self._blocks.index["nodes"])
        self.links = int(self._blocks.index["links"])
        starts = unpack_array(self._blocks.index["starts"])
        self._starts = np.append(starts, self.nodes)
        self._decoded: LRUCache[int, SuccessorLists] = LRUCache(_CACHED_BLOCKS)

    def successors(self, node: int) -> Nodes:
        """Return the successors of a node, ascending. Raises IndexError."""
        if not 0 <= node < self.nodes:
            raise IndexError(f"node {node} is not in [0, {self.nodes})")
        number = int(np.searchsorted(self._starts, node, side="right")) - 1
        return self._block(number)[node - int(self._starts[number])]

    def successors_of(self, nodes: Nodes) -> SuccessorLists:
        """Return the lists of many nodes, in their order; each block is decoded once.

        Raises IndexError.
        """
        if not len(nodes):
            return SuccessorLists(np.zeros(1, np.int64), np.empty(0, np.int64))
        if nodes.min() < 0 or nodes.max() >= self.nodes:
            raise IndexError(f"a node is not in [0, {self.nodes})")
        order = np.argsort(nodes, kind="stable")
        wanted = nodes[order]
        numbers = np.searchsorted(self._starts, wanted, side="right") - 1
        blocks, begins = np.unique(numbers, return_index=True)
        degrees, targets = [], []
        ends = np.append(begins[1:], len(wanted))
        for number, begin, end in zip(blocks, begins, ends, strict=True):
            found = self._block(int(number)).select(wanted[begin:end] - self._starts[number])
            degrees.append(found.degrees)
            targets.append(found.targets)
        bounds = np.concatenate(([0], np.cumsum(np.concatenate(degrees))))
        lists = SuccessorLists(bounds, np.concatenate(targets))
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return lists.select(places)

    def scan(self) -> Iterator[tuple[int, SuccessorLists]]:
        """Yield the lists of all nodes, block by block, with the first node of each block."""
        for number in range(len(self._blocks)):
            yield int(self._starts[number]), self._decode(number)

    def pairs(self) -> Iterator[tuple[Nodes, Nodes]]:
        """Yield all links in order as arrays of sources and targets."""
        for first, lists in self.scan():
            count = len(lists.bounds) - 1
            yield np.repeat(np.arange(first, first + count), lists.degrees), lists.targets

    def degrees(self) -> NDArray[np.int64]:
        """Return the number of successors of each node, shape (nodes,)."""
        degrees = np.zeros(self.nodes, dtype=np.int64)
        for first, lists in self.scan():
            degrees[first : first + len(lists.bounds) - 1] = lists.degrees
        return degrees

    def load(self) -> SuccessorLists:
        """Return the lists of all nodes; needs 8 bytes a link and a node."""
        bounds = np.concatenate(([0], np.cumsum(self.degrees())))
        targets = np.empty(self.links, dtype=np.int64)
        for first, lists in self.scan():
            begin = bounds[first]
            targets[begin : begin + len(lists.targets)] = lists.targets
        return SuccessorLists(bounds, targets)

    @property
    def stored_bytes(self) -> int:
        """Size of the file."""
        return self._blocks.stored_bytes

    @property
    def bits_per_link(self) -> float:
        """Size of the file in bits over the number of links; 0.0 without links."""
        return 8 * self.stored_bytes / self.links if self.links else 0.0

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()

    def _block(self, number: int) -> SuccessorLists:
        block = self._decoded.get(number)
        if block is None:
            block = self._decoded[number] = self._decode(number)
        return block

    def _decode(self, number: int) -> SuccessorLists:
        nodes = int(self._starts[number + 1] - self._starts[number])
        return _decode_block(self._blocks.block(number), nodes)


def _encode_block(bounds: NDArray[np.int64], targets: Nodes) -> bytes:
    gaps = np.diff(targets, prepend=0) - 1
    firsts = bounds[:-1][np.diff(bounds) > 0]
    gaps[firsts] = targets[firsts]
    return encode_numbers(np.concatenate((np.diff(bounds), gaps)))


def _decode_block(block: bytes, nodes: int) -> SuccessorLists:
    numbers = decode_numbers(block)
    bounds = np.concatenate(([0], np.cumsum(numbers[:nodes])))
    gaps = numbers[nodes:] + 1
    starts, degrees = bounds[:-1], numbers[:nodes]
    full = degrees > 0
    firsts = starts[full]
    gaps[firsts] -= 1
    sums = np.cumsum(gaps)
    # What the lists before add to the sums.
    before = sums[firsts] - gaps[firsts]
    return SuccessorLists(bounds, sums - np.repeat(before, degrees[full]))


def encode_numbers(numbers: NDArray[np.int64]) -> bytes:
    """Encode numbers from 0 in 7 bits a byte, low bits first; the last byte is below 128."""
    lengths = np.ones(len(numbers), dtype=np.int64)
    rest = numbers >> 7
    while rest.any():
        lengths += rest > 0
        rest >>= 7
    ends = np.cumsum(lengths)
    encoded = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    starts = ends - lengths
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        more = (lengths[longer] > place + 1).astype(np.uint8) << 7
        encoded[starts[longer] + place] = ((numbers[longer] >> (7 * place)) & 127) | more
    return encoded.tobytes()


def decode_numbers(encoded: bytes) -> NDArray[np.int64]:
    """Decode what :func:`encode_numbers` encoded."""
    raw = np.frombuffer(encoded, dtype=np.uint8)
    ends = np.flatnonzero(raw < 128)
    if len(ends) == len(raw):
        return raw.astype(np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    numbers = (raw[starts] & 127).astype(np.int64)
    for place in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        numbers[longer] |= (raw[starts[longer] + place] & 127).astype(np.int64) << (7 * place)
    return numbers
