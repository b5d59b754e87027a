"""A partition: the crawl of its hosts, what it sends, and the links that it receives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from focused.classifier.topic_classifier import TopicClassifier
from focused.cluster.exchange import BEGINNING, MAX_BATCH_BYTES, Exchange, StreamEntry
from focused.cluster.messages import (
    ExampleMessage,
    LinkBatch,
    LinkMessage,
    MessageError,
    decode_batch,
    encode_batches,
    encode_example,
    link_of,
)
from focused.cluster.outbox import ExampleOutbox, Outbox, OutgoingLink
from focused.cluster.routing import LinkMode, OwnerOf, RoutedLinks
from focused.cluster.shared_contents import ContentRegistry, ContentStore
from focused.crawl.build import build_crawl
from focused.crawl.loop import Crawl
from focused.crawl.policy import Policy
from focused.frontier.interface import Frontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import OnlineLinkScorer, decode_example
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import Topic
from focused.web.urls import host_of

logger = logging.getLogger(__name__)

_POSITION = "inbox"
_SENDERS = "senders"
_SENT, _RECEIVED = "links_sent", "links_received"
_LINKS_AT_ONCE = 1_000
_BATCHES_AT_ONCE = 100
_EXAMPLES_AT_ONCE = 500


@dataclass(slots=True)
class ReceivedCounts:
    """Links received by all owners so far, and what this owner refused.

    ``repeated`` links are skipped; ``malformed`` are batches, links, and links of other partitions.
    """

    links: int = 0
    repeated: int = 0
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a partition sends: ``batches`` with their receivers, and training ``examples``.

    ``links`` and ``numbers`` identify both in the outbox. It is false if it is empty.
    """

    batches: Sequence[tuple[int, bytes]] = ()
    examples: Sequence[bytes] = ()
    links: Sequence[OutgoingLink] = ()
    numbers: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.batches or self.examples)

    def send(self, exchange: Exchange) -> None:
        """Send everything. Raises ExchangeError; some of it may have been sent then."""
        exchange.send_all(self.batches)
        if self.examples:
            exchange.publish(self.examples)


class Partition:
    """One partition under its present owner, whose lease has the fencing token ``token``.

    What it receives is committed together with its position in the stream, so no batch takes
    effect twice and none is lost.
    """

    def __init__(
        self,
        number: int,
        token: int,
        crawl: Crawl,
        tables: Tables,
        outbox: Outbox,
        links: RoutedLinks,
        owner_of: OwnerOf,
        examples: ExampleOutbox | None = None,
    ) -> None:
        """Without ``examples`` the partition trains its own scorer."""
        self.number = number
        self.crawl = crawl
        self.links = links
        self.outbox = outbox
        self.examples = examples
        self.sent: int = tables.get_meta(_SENT) or 0
        """Links sent by all owners so far."""
        self.received = ReceivedCounts(tables.get_meta(_RECEIVED) or 0)
        self._token = token
        self._tables = tables
        self._owner_of = owner_of
        self._position: str = tables.get_meta(_POSITION) or BEGINNING
        senders = tables.get_meta(_SENDERS) or {}
        self._latest = {int(sender): (latest[0], latest[1]) for sender, latest in senders.items()}
        """Token and number of the last batch of each sender."""

    @property
    def position(self) -> str:
        """The position in the partition's stream up to which it has received."""
        return self._position

    def owns(self, url: str) -> bool:
        """Whether a normalised URL belongs to this partition."""
        return self._owner_of(host_of(url), link_key(url)) == self.number

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to send."""
        return not len(self.outbox) and (self.examples is None or not len(self.examples))

    def collect(
        self, max_links: int = _LINKS_AT_ONCE, max_examples: int = _EXAMPLES_AT_ONCE
    ) -> Outgoing:
        """Return what is to be sent next, once the commits that wrote it are durable."""
        links = self.outbox.first(max_links)
        batches = []
        for to in sorted({link.to for link in links}):
            own = [(link.number, link.message) for link in links if link.to == to]
            encoded = encode_batches(self.number, self._token, own, MAX_BATCH_BYTES)
            batches += [(to, batch) for batch in encoded]
        rows = () if self.examples is None else self.examples.first(max_examples)
        examples = [
            encode_example(ExampleMessage(self.number, self._token, number, Raw(row)))
            for number, row in rows
        ]
        return Outgoing(batches, examples, links, tuple(number for number, _ in rows))

    def confirm(self, outgoing: Outgoing, now: float) -> None:
        """Remove what was sent from the outbox, and commit."""
        if not outgoing:
            return
        self.outbox.remove(outgoing.links)
        if self.examples is not None:
            self.examples.remove(outgoing.numbers)
        self.sent += len(outgoing.links)
        self._tables.put_meta(_SENT, self.sent)
        self.crawl.commit(now)

    def send(self, exchange: Exchange, now: float) -> int:
        """Send all links and training examples; return how many links. Raises ExchangeError."""
        total = 0
        while outgoing := self.collect():
            outgoing.send(exchange)
            self.confirm(outgoing, now)
            total += len(outgoing.links)
        return total

    def receive(self, exchange: Exchange, now: float) -> int:
        """Queue the links that came; return how many batches were read. Raises ExchangeError."""
        total = 0
        while entries := exchange.receive(self.number, self._position, _BATCHES_AT_ONCE):
            self.deliver(entries, now)
            total += len(entries)
        return total

    def deliver(
        self, entries: Sequence[StreamEntry], now: float, *, position: str | None = None
    ) -> None:
        """Queue the links of batches and commit them with ``position``, or that of the last one."""
        if position is None:
            if not entries:
                return
            position = entries[-1].position
        links: list[QueuedLink] = []
        for entry in entries:
            try:
                batch = decode_batch(entry.batch)
            except MessageError as error:
                self._refuse(error)
                continue
            if self._is_new(batch):
                links += filter(None, (self._link_of(each, now) for each in batch.links))
        self.received.links += len(links)
        self._position = position
        self._tables.put_meta(_POSITION, self._position)
        self._tables.put_meta(_RECEIVED, self.received.links)
        self._tables.put_meta(_SENDERS, {str(key): latest for key, latest in self._latest.items()})
        self.crawl.receive(links, now)

    def _is_new(self, batch: LinkBatch) -> bool:
        """Whether the batch came for the first time, and not from an owner that was replaced."""
        this = (batch.token, batch.number)
        if this <= self._latest.get(batch.sender, (-1, -1)):
            self.received.repeated += len(batch.links)
            return False
        self._latest[batch.sender] = this
        return True

    def _link_of(self, message: LinkMessage, now: float) -> QueuedLink | None:
        try:
            link = link_of(message, now)
            if self._owner_of(link.host, link.key) != self.number:
                raise MessageError(f"{link.url} belongs to another partition")
        except MessageError as error:
            self._refuse(error)
            return None
        return link

    def _refuse(self, error: MessageError) -> None:
        self.received.malformed += 1
        logger.warning("a message for partition %d is refused: %s", self.number, error)


def build_partition(
    number: int,
    token: int,
    topic: Topic,
    classifier: TopicClassifier,
    policy: Policy,
    store: StateStore,
    owner_of: OwnerOf,
    *,
    shares_examples: bool,
    contents: ContentStore | None = None,
    mode: LinkMode = LinkMode.EXCHANGE,
    replicated: AbstractSet[bytes] = frozenset(),
    learns: bool = False,
    **options: Any,
) -> Partition:
    """Build the partition whose state is in ``store``, with its crawl.

    With ``shares_examples`` it trains no scorer, but sends its examples; with ``learns`` it trains
    its own, too, until that is replaced by what all partitions learned. With ``contents`` it
    detects duplicates of other partitions. ``mode`` and ``replicated`` as for
    :class:`RoutedLinks`, ``options`` as for :func:`focused.crawl.build.build_crawl`.
    """
    outbox = Outbox(store.tables)
    examples = ExampleOutbox(store.tables) if shares_examples else None
    routed: list[RoutedLinks] = []

    def route(frontier: Frontier, tables: Tables) -> RoutedLinks:
        routed.append(RoutedLinks(number, owner_of, frontier, outbox, mode, replicated))
        return routed[0]

    def share(row: bytes) -> None:
        if examples is not None:
            examples.add(row)
        if learns and isinstance(policy.scorer, OnlineLinkScorer):
            policy.scorer.learn(decode_example(row))

    crawl = build_crawl(
        topic,
        classifier,
        policy,
        store,
        route=route,
        share_example=None if examples is None else share,
        shared_contents=None if contents is None else ContentRegistry(contents, number, owner_of),
        **options,
    )
    return Partition(number, token, crawl, store.tables, outbox, routed[0], owner_of, examples)
