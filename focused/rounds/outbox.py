"""What a partition sends, stored with the page that it comes from.

:class:`RoutedLinks` queues a page's links in the partition's own frontier, or puts them into the
outbox for theirs. Those, training examples and claims of contents are written in the transaction of
their page and removed after they were sent, so a crash loses none. Links that were sent lately are
not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec
from cachetools import LRUCache

from focused.frontier.disk_frontier import DiskFrontier, Known
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import decode_example
from focused.rounds.messages import LinkMessage, message_of
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


OwnerOf = Callable[[str, bytes], int]
"""Returns the partition of a link, by its host and its key."""


class RoutedLinks:
    """A :class:`focused.frontier.disk_frontier.LinkQueue` of one partition."""

    def __init__(
        self, partition: int, owner_of: OwnerOf, frontier: DiskFrontier, outbox: Outbox
    ) -> None:
        self._partition = partition
        self._owner_of = owner_of
        self._frontier = frontier
        self._outbox = outbox

    @property
    def found(self) -> int:
        """The number of links ever added to the frontier."""
        return self._frontier.found

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue or send a link; True when it is new to the frontier or the outbox."""
        to = self._owner_of(link.host, link.key)
        if to == self._partition:
            return self._frontier.push(link, now, joined=joined)
        return self._outbox.add(to, link)

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        """Queue or send links in order; return how many are new."""
        own, new = [], 0
        for link in links:
            if self._is_own(link.host, link.key):
                own.append(link)
            else:
                new += self.push(link, now, joined=joined)
        return new + self._frontier.push_all(own, now, joined=joined)

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """Look up links; one of another partition counts as settled if it was sent lately."""
        own = [each for each in links if self._is_own(*each)]
        known = self._frontier.lookup_links(own)
        if len(own) == len(links):
            return known
        others = {key for host, key in links if not self._is_own(host, key)}
        sent = {key for key in others if self._outbox.was_sent(key)}
        return Known(known.settled | sent, known.waiting)

    def _is_own(self, host: str, key: bytes) -> bool:
        return self._owner_of(host, key) == self._partition
