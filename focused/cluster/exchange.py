"""The exchange: one stream of messages per partition, from all other partitions.

Delivery is at least once and in order per sender. A message has its sender's number, which grows,
and the fencing token of the sender's lease, which grows with each owner. A receiver skips what it
has (:class:`Received`), so the effect is exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sender:
    """A partition under one of its owners."""

    partition: int
    token: int


@dataclass(frozen=True, slots=True)
class Message:
    """What a partition sends; ``number`` grows from message to message of one sender."""

    number: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """A message in a stream; ``position`` is where to go on reading."""

    position: str
    sender: Sender
    message: Message


BEGINNING = ""
"""The position before the first message of a stream."""


class Exchange(Protocol):
    """Streams of messages by receiving partition."""

    def send(self, to: int, sender: Sender, messages: Sequence[Message]) -> None:
        """Append messages to a partition's stream. Raises ExchangeError; then none or all came."""

    def receive(self, partition: int, after: str, limit: int) -> Sequence[Received]:
        """Return the next messages after a position, at most ``limit``."""

    def trim(self, partition: int, up_to: str) -> None:
        """Remove messages up to and including a position: they are durable at the receiver."""

    def waiting(self, partition: int, after: str) -> int:
        """Return how many messages follow a position."""


class MemoryExchange:
    """An :class:`Exchange` within one process, for simulations."""

    def __init__(self) -> None:
        self._streams: dict[int, list[Received]] = {}
        self._sent: dict[int, int] = {}

    def send(self, to: int, sender: Sender, messages: Sequence[Message]) -> None:
        """Append messages to a partition's stream."""
        stream = self._streams.setdefault(to, [])
        first = self._sent.get(to, 0)
        stream += [
            Received(f"{first + offset:016d}", sender, message)
            for offset, message in enumerate(messages, 1)
        ]
        self._sent[to] = first + len(messages)

    def receive(self, partition: int, after: str, limit: int) -> Sequence[Received]:
        """Return the next messages after a position, at most ``limit``."""
        stream = self._streams.get(partition, [])
        start = self._start(partition, after)
        return stream[start : start + limit]

    def trim(self, partition: int, up_to: str) -> None:
        """Remove messages up to and including a position."""
        stream = self._streams.get(partition, [])
        del stream[: self._start(partition, up_to)]

    def waiting(self, partition: int, after: str) -> int:
        """Return how many messages follow a position."""
        return len(self._streams.get(partition, [])) - self._start(partition, after)

    def _start(self, partition: int, after: str) -> int:
        stream = self._streams.get(partition, [])
        gone = self._sent.get(partition, 0) - len(stream)
        return max(int(after or 0) - gone, 0)
