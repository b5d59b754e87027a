"""The outbox: links of other partitions, stored with the page they were found on.

A link is written in the transaction of its page and removed after it was sent, so a crash loses no
link. Links that were sent lately are not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
from cachetools import LRUCache

from focused.cluster.exchange import Message
from focused.cluster.messages import encode_link
from focused.frontier.queued_link import QueuedLink
from focused.storage.tables import Tables

_OUTBOX = "outbox"
_NEXT = "outbox"
_NUMBER_BYTES = 8
MAX_REMEMBERED = 200_000
"""Links that are not sent again; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message and the partition that it goes to."""

    to: int
    message: Message


class Outbox:
    """Messages to other partitions, in a table of the crawl's state."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        last = tables.last_key(_OUTBOX)
        after_last = 0 if last is None else int.from_bytes(last, "big") + 1
        self._next: int = max(tables.get_meta(_NEXT) or 0, after_last)
        self._sent: LRUCache[bytes, None] = LRUCache(MAX_REMEMBERED)

    def __len__(self) -> int:
        return self._tables.count(_OUTBOX)

    def add(self, to: int, link: QueuedLink) -> bool:
        """Add a link of another partition; False if it was sent lately."""
        if link.key in self._sent:
            return False
        self._sent[link.key] = None
        row = msgspec.msgpack.encode((to, encode_link(link)))
        self._tables.put(_OUTBOX, self._next.to_bytes(_NUMBER_BYTES, "big"), row, last=True)
        self._next += 1
        return True

    def was_sent(self, key: bytes) -> bool:
        """Whether the link was sent lately."""
        return key in self._sent

    def first(self, limit: int) -> Sequence[OutgoingMessage]:
        """Return the oldest messages, at most ``limit``."""
        found = []
        for key, row in islice(self._tables.scan(_OUTBOX), limit):
            to, payload = msgspec.msgpack.decode(row, type=tuple[int, bytes])
            found.append(OutgoingMessage(to, Message(int.from_bytes(key, "big"), payload)))
        return found

    def remove(self, messages: Sequence[OutgoingMessage]) -> None:
        """Remove messages that were sent."""
        for each in messages:
            self._tables.delete(_OUTBOX, each.message.number.to_bytes(_NUMBER_BYTES, "big"))
        self._tables.put_meta(_NEXT, self._next)  # numbers go on when the table is empty
