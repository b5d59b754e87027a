"""A partition: the crawl of its hosts, its outbox, and the links that it receives."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from focused.cluster.exchange import BEGINNING, Exchange, Received, Sender
from focused.cluster.messages import MessageError, decode_link
from focused.cluster.outbox import Outbox
from focused.cluster.routing import OwnerOf, RoutedLinks
from focused.crawl.loop import Crawl
from focused.frontier.queued_link import QueuedLink
from focused.storage.tables import Tables

logger = logging.getLogger(__name__)

_POSITION = "inbox"
_SENDERS = "senders"
MAX_BATCH = 1_000


class Partition:
    """One partition under its present owner.

    What it receives is committed together with its position in the stream, so no message takes
    effect twice and none is lost.
    """

    def __init__(
        self,
        sender: Sender,
        crawl: Crawl,
        tables: Tables,
        outbox: Outbox,
        links: RoutedLinks,
        owner_of: OwnerOf,
    ) -> None:
        self.sender = sender
        self.crawl = crawl
        self.links = links
        self.outbox = outbox
        self.received = 0
        self.refused = 0
        """Malformed messages, and links of other partitions."""
        self._tables = tables
        self._owner_of = owner_of
        self._position: str = tables.get_meta(_POSITION) or BEGINNING
        stored = tables.get_meta(_SENDERS) or {}
        self._latest = {int(partition): tuple(latest) for partition, latest in stored.items()}
        """Token and number of the last message of each sending partition."""

    @property
    def position(self) -> str:
        """The position in the partition's stream up to which it has received."""
        return self._position

    def send(self, exchange: Exchange, now: float) -> int:
        """Send what is in the outbox; return how many messages.

        The driver calls it when the commits that wrote them are durable. Raises ExchangeError.
        """
        total = 0
        while outgoing := self.outbox.first(MAX_BATCH):
            for to in sorted({each.to for each in outgoing}):
                messages = [each.message for each in outgoing if each.to == to]
                exchange.send(to, self.sender, messages)
            self.outbox.remove(outgoing)
            self.crawl.commit(now)
            total += len(outgoing)
        return total

    def receive(self, exchange: Exchange, now: float) -> int:
        """Queue the links that came; return how many messages were read. Raises ExchangeError."""
        total = 0
        while batch := exchange.receive(self.sender.partition, self._position, MAX_BATCH):
            self._deliver(batch, now)
            total += len(batch)
        return total

    def _deliver(self, batch: Sequence[Received], now: float) -> None:
        links = []
        kinds: Counter[str] = Counter()
        for each in batch:
            if self._is_repeated(each):
                continue
            try:
                links.append(self._link_of(each, now))
            except MessageError as error:
                kinds[str(error)] += 1
        for reason, count in kinds.items():
            logger.warning("%d messages refused: %s", count, reason)
        self.refused += kinds.total()
        self.received += len(links)
        self._position = batch[-1].position
        self._tables.put_meta(_POSITION, self._position)
        self._tables.put_meta(_SENDERS, {str(key): latest for key, latest in self._latest.items()})
        self.crawl.receive(links, now)

    def _is_repeated(self, received: Received) -> bool:
        """Whether the message came before, or from an owner that has been replaced."""
        sender, number = received.sender, received.message.number
        this = (sender.token, number)
        if this <= self._latest.get(sender.partition, (-1, -1)):
            return True
        self._latest[sender.partition] = this
        return False

    def _link_of(self, received: Received, now: float) -> QueuedLink:
        link = decode_link(received.message.payload, now)
        if self._owner_of(link.host, link.key) != self.sender.partition:
            raise MessageError(f"{link.url} belongs to another partition")
        return link
