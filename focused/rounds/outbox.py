"""What a partition sends, stored with the page that it comes from.

:class:`RoutedLinks` queues a page's links in the partition's own frontier, or puts them into the
outbox for theirs. Those, training examples and claims of contents are written in the transaction of
their page and removed after they were sent, so a crash loses none. Links that were sent lately are
not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import msgspec
from cachetools import LRUCache

from focused.frontier.disk_frontier import DiskFrontier, Known
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import decode_example
from focused.storage.tables import Tables
from focused.text import hash_fraction
from focused.web.urls import host_of

OUTBOX = "outbox"
_EXAMPLES = "training_examples"
_NUMBER_BYTES = 8
MAX_REMEMBERED = 200_000
"""Links that are not sent again; the oldest are forgotten first."""


class LinkMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A link whose host belongs to another partition, as its finder scored it."""

    url: str
    score: float
    depth: int
    parent: str | None
    anchor: str
    features: tuple[float, ...]
    hops: int
    tag_path_key: int

    @classmethod
    def of(cls, link: QueuedLink) -> LinkMessage:
        """Return the message about a link."""
        return cls(
            link.url,
            link.score,
            link.depth,
            link.parent,
            link.anchor,
            link.features,
            link.hops,
            link.tag_path_key,
        )

    def link(self, now: float) -> QueuedLink:
        """Return the link, found now."""
        return QueuedLink(
            link_key(self.url),
            self.url,
            host_of(self.url),
            priority=0.0,
            score=self.score,
            depth=self.depth,
            parent=self.parent,
            anchor=self.anchor,
            features=self.features,
            found_at=now,
            hops=self.hops,
            tag_path_key=self.tag_path_key,
        )


class LinkBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Links from one partition to another.

    ``number`` is that of the last link, and grows from batch to batch of a sender.
    """

    sender: int
    number: int
    links: tuple[LinkMessage, ...]


class _OutgoingLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    number: int
    to: int
    message: LinkMessage


_encode = msgspec.msgpack.Encoder().encode
_decode_link = msgspec.msgpack.Decoder(_OutgoingLink).decode
decode_batch = msgspec.msgpack.Decoder(LinkBatch).decode


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


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


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
        self.rows.add(_encode(_OutgoingLink(self.rows.next_number, to, LinkMessage.of(link))))
        return True

    def was_sent(self, key: bytes) -> bool:
        """Whether the link was sent lately."""
        return key in self._sent

    def batches(self, sender: int, rows: Sequence[tuple[int, bytes]]) -> Mapping[int, bytes]:
        """Return the encoded batch of each receiver of some ``rows``."""
        by_receiver: dict[int, list[_OutgoingLink]] = {}
        for _, row in rows:
            link = _decode_link(row)
            by_receiver.setdefault(link.to, []).append(link)
        return {
            to: _encode(LinkBatch(sender, own[-1].number, tuple(each.message for each in own)))
            for to, own in sorted(by_receiver.items())
        }


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
        return self.push_all([link], now, joined=joined) > 0

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        """Queue or send links in order; return how many are new."""
        own, new = [], 0
        for link in links:
            to = self._owner_of(link.host, link.key)
            if to == self._partition:
                own.append(link)
            else:
                new += self._outbox.add(to, link)
        return new + self._frontier.push_all(own, now, joined=joined)

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """Look up links; one of another partition counts as settled if it was sent lately."""
        own = [each for each in links if self._owner_of(*each) == self._partition]
        known = self._frontier.lookup_links(own)
        if len(own) == len(links):
            return known
        # Keys of own links are never among those that were sent.
        sent = {key for _, key in links if self._outbox.was_sent(key)}
        return Known(known.settled | sent, known.waiting)
