"""What a partition sends, stored with the page that it comes from.

Links of other partitions, training examples and claims of contents are written in the transaction
of their page and removed after they were sent, so a crash loses none. Links that were sent lately
are not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec
from cachetools import LRUCache

from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import decode_example
from focused.rounds.link_messages import LinkMessage, message_of
from focused.storage.tables import Tables
from focused.text.hash_sampling import hash_fraction

OUTBOX = "outbox"
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
decode_link = msgspec.msgpack.Decoder(OutgoingLink).decode


class NumberedRows:
    """A queue of rows with growing numbers in a table of the crawl's state; the caller commits."""

    def __init__(self, tables: Tables, table: str) -> None:
        self._tables = tables
        self._table = table
        last = tables.last_key(table)
        after_last = 0 if last is None else int.from_bytes(last, "big") + 1
        self.next_number: int = max(tables.get_meta(table) or 0, after_last)
        """The number of rows ever added."""

    def __len__(self) -> int:
        return self._tables.count(self._table)

    def add(self, row: bytes) -> None:
        """Add a row under the next number."""
        self._tables.put(self._table, _key(self.next_number), row, last=True)
        self.next_number += 1

    def first(self, limit: int | None = None) -> Sequence[tuple[int, bytes]]:
        """Return the oldest rows with their numbers, at most ``limit``."""
        rows = islice(self._tables.scan(self._table), limit)
        return [(int.from_bytes(key, "big"), row) for key, row in rows]

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove rows that were sent."""
        for number in numbers:
            self._tables.delete(self._table, _key(number))
        if numbers:
            # Numbers go on when the table is empty.
            self._tables.put_meta(self._table, self.next_number)


class Outbox:
    """Links to other partitions, in ``rows``."""

    def __init__(self, tables: Tables) -> None:
        self.rows = NumberedRows(tables, OUTBOX)
        self._sent: LRUCache[bytes, None] = LRUCache(MAX_REMEMBERED)

    def add(self, to: int, link: QueuedLink) -> bool:
        """Add a link of another partition; False if it was sent lately."""
        if link.key in self._sent:
            return False
        self._sent[link.key] = None
        self.rows.add(_encode(OutgoingLink(self.rows.next_number, to, message_of(link))))
        return True

    def was_sent(self, key: bytes) -> bool:
        """Whether the link was sent lately."""
        return key in self._sent


class ExampleOutbox:
    """Training examples for the scorer of all partitions, in ``rows``.

    They take the table in which a single crawl keeps its own examples.
    """

    def __init__(self, tables: Tables) -> None:
        self.rows = NumberedRows(tables, _EXAMPLES)
        self.probability = 1.0
        """The probability to share an example; see :mod:`focused.rounds.learning`."""

    def add(self, row: bytes) -> bool:
        """Add an example's row; False if it is not in the sample."""
        if hash_fraction(decode_example(row).url) >= self.probability:
            return False
        self.rows.add(row)
        return True


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
