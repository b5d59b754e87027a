"""The exchange: one stream of batches per partition, from all other partitions.

Delivery is at least once, and in order per sender. A batch tells its sender and its number, so that
a receiver skips what it has (:mod:`focused.cluster.messages`); the effect is exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

BEGINNING = ""
"""The position before the first batch of a stream."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A batch in a stream; reading goes on after ``position``."""

    position: str
    batch: bytes


class Exchange(Protocol):
    """Streams of batches by receiving partition. All methods raise ExchangeError."""

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""

    def receive(self, partition: int, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the next batches after a position, at most ``limit``."""

    def trim(self, partition: int, up_to: str) -> None:
        """Remove batches up to and including a position: their effect is durable."""

    def waiting(self, partition: int, after: str) -> int:
        """Return how many batches follow a position."""


class MemoryExchange:
    """An :class:`Exchange` within one process, for simulations."""

    def __init__(self) -> None:
        self._streams: dict[int, list[StreamEntry]] = {}
        self._sent: dict[int, int] = {}

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""
        number = self._sent[to] = self._sent.get(to, 0) + 1
        self._streams.setdefault(to, []).append(StreamEntry(str(number), batch))

    def receive(self, partition: int, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the next batches after a position, at most ``limit``."""
        start = self._start(partition, after)
        return self._streams.get(partition, [])[start : start + limit]

    def trim(self, partition: int, up_to: str) -> None:
        """Remove batches up to and including a position."""
        del self._streams.get(partition, [])[: self._start(partition, up_to)]

    def waiting(self, partition: int, after: str) -> int:
        """Return how many batches follow a position."""
        return len(self._streams.get(partition, [])) - self._start(partition, after)

    def _start(self, partition: int, after: str) -> int:
        trimmed = self._sent.get(partition, 0) - len(self._streams.get(partition, []))
        return max(int(after or 0) - trimmed, 0)
