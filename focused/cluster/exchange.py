"""The exchange: a stream of batches per partition, and one of messages to all workers.

Delivery is at least once, and in order per sender. A batch tells its sender and its number, so that
a receiver skips what it has (:mod:`focused.cluster.messages`); the effect is exactly once.

What is published to all workers is read by each of them in the same order. Only the last messages
are kept, so a reader that is too far behind misses some.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from focused.errors import ExchangeError

BEGINNING = ""
"""The position before the first batch of a stream."""
MAX_BATCH_BYTES = 256_000
"""A receiver holds some hundred batches in memory."""
MAX_PUBLISHED = 20_000
"""Messages to all workers that are kept; 40 MB of training examples."""


def check_length(batch: bytes) -> None:
    """Raise ExchangeError for a batch of more than MAX_BATCH_BYTES."""
    if len(batch) > MAX_BATCH_BYTES:
        raise ExchangeError(
            f"a batch of {len(batch)} bytes is too long: divide it, {MAX_BATCH_BYTES} are allowed"
        )


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A batch or a message in a stream; reading goes on after ``position``."""

    position: str
    batch: bytes


class Exchange(Protocol):
    """Streams of batches by receiving partition, and one that all workers read.

    All methods raise ExchangeError.
    """

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""

    def send_all(self, batches: Sequence[tuple[int, bytes]]) -> None:
        """Append batches, each to the stream of its partition.

        After an error it is unknown which were appended: send all of them again. A batch has at
        most MAX_BATCH_BYTES.
        """

    def receive(self, partition: int, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the next batches after a position, at most ``limit``."""

    def trim(self, partition: int, up_to: str) -> None:
        """Remove batches up to and including a position: their effect is durable."""

    def waiting(self, partition: int, after: str) -> int:
        """Return how many batches follow a position."""

    def memory(self, partition: int) -> int:
        """Return about how many bytes of memory a partition's stream takes."""

    def publish(self, messages: Sequence[bytes]) -> None:
        """Append messages to the stream that all workers read, and trim it to its length."""

    def published(self, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the messages to all workers after a position, at most ``limit``."""


class MemoryExchange:
    """An :class:`Exchange` within one process, for simulations."""

    def __init__(self, *, max_published: int = MAX_PUBLISHED) -> None:
        self._published: deque[StreamEntry] = deque(maxlen=max_published)
        self._last_published = 0
        self._streams: dict[int, list[StreamEntry]] = {}
        self._sent: dict[int, int] = {}

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""
        check_length(batch)
        number = self._sent[to] = self._sent.get(to, 0) + 1
        self._streams.setdefault(to, []).append(StreamEntry(str(number), batch))

    def send_all(self, batches: Sequence[tuple[int, bytes]]) -> None:
        """Append batches, each to the stream of its partition."""
        for to, batch in batches:
            self.send(to, batch)

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

    def memory(self, partition: int) -> int:
        """Return about how many bytes of memory a partition's stream takes."""
        return sum(len(entry.batch) for entry in self._streams.get(partition, []))

    def publish(self, messages: Sequence[bytes]) -> None:
        """Append messages to the stream that all workers read."""
        for message in messages:
            self._last_published += 1
            self._published.append(StreamEntry(str(self._last_published), message))

    def published(self, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the messages to all workers after a position, at most ``limit``."""
        trimmed = self._last_published - len(self._published)
        start = max(int(after or 0) - trimmed, 0)
        return list(islice(self._published, start, start + limit))

    def _start(self, partition: int, after: str) -> int:
        trimmed = self._sent.get(partition, 0) - len(self._streams.get(partition, []))
        return max(int(after or 0) - trimmed, 0)
