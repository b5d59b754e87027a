"""What a partition sends, stored with the page that it comes from.

Links of other partitions and training examples are written in the transaction of their page and
removed after they were sent, so a crash loses none. Links that were sent lately are not sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec
from cachetools import LRUCache

from focused.cluster.messages import LinkMessage, message_of
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import decode_example
from focused.storage.tables import Tables
from focused.text.hash_sampling import hash_fraction

_OUTBOX = "outbox"
_EXAMPLES = "training_examples"
_NUMBER_BYTES = 8
MAX_REMEMBERED = 200_000
"""Links that are not sent again; the oldest are forgotten first."""


class OutgoingLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A link in the outbox: its number and the partition that it goes to."""

    number: int
    to: int
    message: LinkMessage


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(OutgoingLink).decode


class Outbox:
    """Links to other partitions, in a table of the crawl's state; the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        last = tables.last_key(_OUTBOX)
        after_last = 0 if last is None else int.from_bytes(last, "big") + 1
        self._next: int = max(tables.get_meta(_OUTBOX) or 0, after_last)
        self._sent: LRUCache[bytes, None] = LRUCache(MAX_REMEMBERED)

    def __len__(self) -> int:
        return self._tables.count(_OUTBOX)

    def add(self, to: int, link: QueuedLink) -> bool:
        """Add a link of another partition; False if it was sent lately."""
        if link.key in self._sent:
            return False
        self._sent[link.key] = None
        row = _encode(OutgoingLink(self._next, to, message_of(link)))
        self._tables.put(_OUTBOX, _key(self._next), row, last=True)
        self._next += 1
        return True

    def was_sent(self, key: bytes) -> bool:
        """Whether the link was sent lately."""
        return key in self._sent

    def first(self, limit: int) -> Sequence[OutgoingLink]:
        """Return the oldest links, at most ``limit``."""
        return [_decode(row) for _, row in islice(self._tables.scan(_OUTBOX), limit)]

    def remove(self, links: Sequence[OutgoingLink]) -> None:
        """Remove links that were sent."""
        for link in links:
            self._tables.delete(_OUTBOX, _key(link.number))
        self._tables.put_meta(_OUTBOX, self._next)  # numbers go on when the table is empty


class ExampleOutbox:
    """Training examples for the scorer of all partitions; the caller commits.

    They take the table in which a single crawl keeps its own examples.
    """

    def __init__(self, tables: Tables) -> None:
        self.probability = 1.0
        """The probability to share an example; see :mod:`focused.rounds.learning`."""
        self._tables = tables
        last = tables.last_key(_EXAMPLES)
        after_last = 0 if last is None else int.from_bytes(last, "big") + 1
        self._next: int = max(tables.get_meta(_EXAMPLES) or 0, after_last)

    def __len__(self) -> int:
        return self._tables.count(_EXAMPLES)

    def add(self, row: bytes) -> bool:
        """Add an example's row; False if it is not in the sample."""
        if hash_fraction(decode_example(row).url) >= self.probability:
            return False
        self._tables.put(_EXAMPLES, _key(self._next), row, last=True)
        self._next += 1
        return True

    def first(self, limit: int) -> Sequence[tuple[int, bytes]]:
        """Return the oldest examples with their numbers, at most ``limit``."""
        rows = islice(self._tables.scan(_EXAMPLES), limit)
        return [(int.from_bytes(key, "big"), row) for key, row in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove examples that were sent."""
        for number in numbers:
            self._tables.delete(_EXAMPLES, _key(number))
        self._tables.put_meta(_EXAMPLES, self._next)  # numbers go on when the table is empty


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
