"""Sorted URLs in front-coded, compressed blocks; a URL's rank is the number of its node.

A block holds 256 URLs. Each is stored as the number of bytes that it shares with the URL before
it, and the rest (front coding; Witten, Moffat, Bell: Managing Gigabytes, 1999, section 4.1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.link_graph.block_file import BlockReader, BlockWriter

URLS_PER_BLOCK = 256
_CACHED_BLOCKS = 256
_MAX_SHARED = 255
_SEPARATOR = b"\n"


class UrlTableWriter:
    """Writes URLs that come in the order of their UTF-8 bytes, each once."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = BlockWriter(file)
        self._pending: list[bytes] = []
        self._firsts: list[bytes] = []
        self._last: bytes | None = None
        self._count = 0

    def add(self, urls: Iterable[str]) -> None:
        """Append URLs. Raises ValueError if they are not sorted or contain a line break."""
        for url in urls:
            raw = url.encode("utf-8", "surrogatepass")
            if (self._last is not None and raw <= self._last) or _SEPARATOR in raw:
                raise ValueError(f"URLs are not sorted, or one has a line break: {url!r}")
            self._last = raw
            self._pending.append(raw)
            if len(self._pending) == URLS_PER_BLOCK:
                self._flush()

    def finish(self) -> int:
        """Write the index; return the number of URLs."""
        if self._pending:
            self._flush()
        self._blocks.finish({"urls": self._count, "firsts": _SEPARATOR.join(self._firsts)})
        return self._count

    def _flush(self) -> None:
        self._firsts.append(self._pending[0])
        self._count += len(self._pending)
        self._blocks.write(_encode_block(self._pending))
        self._pending = []


class UrlTable(Sequence[str]):
    """The URLs of a graph by rank, and the ranks by URL. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises StateError if the file is missing or damaged."""
        self._blocks = BlockReader(path)
        self._count = int(self._blocks.index["urls"])
        firsts: bytes = self._blocks.index["firsts"]
        self._firsts = firsts.split(_SEPARATOR) if self._count else []
        self._decoded: LRUCache[int, list[bytes]] = LRUCache(_CACHED_BLOCKS)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, node: int) -> str:  # type: ignore[override]
        """Return the URL of a node. Raises IndexError."""
        if not 0 <= node < self._count:
            raise IndexError(f"node {node} is not in [0, {self._count})")
        return _text(self._block(node // URLS_PER_BLOCK)[node % URLS_PER_BLOCK])

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self._blocks)):
            for raw in _decode_block(self._blocks.block(number)):
                yield _text(raw)

    def rank(self, url: str) -> int:
        """Return how many URLs of the table sort before ``url``."""
        raw = url.encode("utf-8", "surrogatepass")
        number = bisect_right(self._firsts, raw) - 1
        if number < 0:
            return 0
        return number * URLS_PER_BLOCK + bisect_left(self._block(number), raw)

    def find(self, url: str) -> int | None:
        """Return the node of a URL, or None."""
        node = self.rank(url)
        return node if node < self._count and self[node] == url else None

    def node(self, url: str) -> int:
        """Return the node of a URL. Raises ConfigurationError if the graph lacks it."""
        node = self.find(url)
        if node is None:
            raise ConfigurationError(f"{url}: no page of this link graph has this URL")
        return node

    def urls(self, nodes: Iterable[int] | NDArray[np.int64]) -> list[str]:
        """Return the URLs of nodes. Raises IndexError."""
        wanted = np.asarray(nodes if isinstance(nodes, np.ndarray) else list(nodes), np.int64)
        found = [""] * len(wanted)
        for place in np.argsort(wanted, kind="stable").tolist():
            found[place] = self[int(wanted[place])]
        return found

    @property
    def stored_bytes(self) -> int:
        """Size of the file."""
        return self._blocks.stored_bytes

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()

    def _block(self, number: int) -> list[bytes]:
        block = self._decoded.get(number)
        if block is None:
            block = self._decoded[number] = _decode_block(self._blocks.block(number))
        return block


def _encode_block(urls: Sequence[bytes]) -> bytes:
    shared, rests = bytearray(), []
    before = b""
    for url in urls:
        count = _shared_bytes(before, url)
        shared.append(count)
        rests.append(url[count:])
        before = url
    return bytes((len(urls) - 1,)) + bytes(shared) + _SEPARATOR.join(rests)


def _decode_block(block: bytes) -> list[bytes]:
    count = block[0] + 1
    urls: list[bytes] = []
    before = b""
    for shared, rest in zip(
        block[1 : count + 1], block[count + 1 :].split(_SEPARATOR), strict=True
    ):
        before = before[:shared] + rest
        urls.append(before)
    return urls


def _shared_bytes(one: bytes, other: bytes) -> int:
    """Length of the common prefix, at most 255, by bisection."""
    low, high = 0, min(len(one), len(other), _MAX_SHARED)
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
