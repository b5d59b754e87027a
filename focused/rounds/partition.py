"""A partition: the crawl of its hosts, what it sends, and the links that it receives.

A host's partition is a hash of its site, so a partition stays where it is: a process that dies is
started again by :mod:`focused.rounds.process_supervision`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import xxhash
from cachetools import LRUCache
from msgspec import Raw

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.build import build_crawl
from focused.crawl.loop import Crawl
from focused.crawl.policy import Policy
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import OnlineLinkScorer, decode_example
from focused.rounds.manifest import CONTENTS, EXAMPLES, links_for
from focused.rounds.messages import (
    ExampleMessage,
    LinkBatch,
    LinkMessage,
    MessageError,
    decode_batch,
    encode_batch,
    encode_example,
    link_of,
)
from focused.rounds.outbox import (
    ExampleOutbox,
    Outbox,
    OutgoingLink,
    OwnerOf,
    RoutedLinks,
    decode_link,
)
from focused.rounds.shared_contents import RoundContents
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import Topic
from focused.web.host_names import registered_domain
from focused.web.urls import host_of

_MAX_HOSTS = 100_000


class SiteUnit(StrEnum):
    """What the URLs of one partition have in common."""

    DOMAIN = "domain"
    """The registered domain: links within a site stay in its partition."""
    HOST = "host"


class PartitionMap:
    """The partition of each link: a hash of its site."""

    def __init__(self, partitions: int, unit: SiteUnit = SiteUnit.DOMAIN) -> None:
        self.partitions = partitions
        self._unit = unit
        self._of_host: LRUCache[str, int] = LRUCache(_MAX_HOSTS)

    def of_url(self, url: str) -> int:
        """Return the partition of a normalised URL, from 0 to ``partitions`` - 1."""
        return self(host_of(url), link_key(url))

    def __call__(self, host: str, key: bytes) -> int:
        """Return the partition of a link by its host and its key."""
        partition = self._of_host.get(host)
        if partition is None:
            site = host if self._unit is SiteUnit.HOST else registered_domain(host)
            partition = self._of_host[host] = _hash(site) % self.partitions
        return partition


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


logger = logging.getLogger(__name__)

_DELIVERED = "delivered_round"
_SENDERS = "senders_batches"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a partition sends, by section of its file, and the numbers of the rows in its queues."""

    sections: Mapping[str, Sequence[bytes]]
    links: Sequence[int]
    examples: Sequence[int]
    claims: Sequence[int]


class Partition:
    """One partition of a crawl.

    What it receives is committed together with the round up to which it has received, so no batch
    takes effect twice and none is lost.
    """

    def __init__(
        self,
        number: int,
        crawl: Crawl,
        tables: Tables,
        outbox: Outbox,
        owner_of: OwnerOf,
        examples: ExampleOutbox,
        contents: RoundContents,
    ) -> None:
        self.number = number
        self.crawl = crawl
        self.outbox = outbox
        self.examples = examples
        self.contents = contents
        self.delivered: int = tables.get_meta(_DELIVERED) or 0
        """The last round of whose links it has got its own."""
        self._tables = tables
        self._owner_of = owner_of
        latest: dict[str, int] = tables.get_meta(_SENDERS) or {}
        self._latest = {int(sender): number for sender, number in latest.items()}
        """Number of the last batch of each sender."""

    @property
    def is_empty(self) -> bool:
        """Whether neither links nor examples are left to send."""
        return not len(self.outbox.rows) and not len(self.examples.rows)

    def collect(self, max_links: int, max_examples: int) -> Outgoing:
        """Return what is to be sent next, once the commits that wrote it are durable."""
        links = [decode_link(row) for _, row in self.outbox.rows.first(max_links)]
        examples = self.examples.rows.first(max_examples)
        claims = self.contents.claims.first()
        by_receiver: dict[int, list[OutgoingLink]] = {}
        for link in links:
            by_receiver.setdefault(link.to, []).append(link)
        sections: dict[str, Sequence[bytes]] = {}
        for to, own in sorted(by_receiver.items()):
            messages = tuple(link.message for link in own)
            batch = LinkBatch(self.number, own[-1].number, messages)
            sections[links_for(to)] = [encode_batch(batch)]
        sections[CONTENTS] = [row for _, row in claims]
        sections[EXAMPLES] = [
            encode_example(ExampleMessage(self.number, number, Raw(row)))
            for number, row in examples
        ]
        return Outgoing(
            sections,
            links=[link.number for link in links],
            examples=[number for number, _ in examples],
            claims=[number for number, _ in claims],
        )

    def confirm(self, outgoing: Outgoing, now: float) -> None:
        """Remove what was sent from the queues, and commit."""
        self.outbox.rows.remove(outgoing.links)
        self.examples.rows.remove(outgoing.examples)
        self.contents.claims.remove(outgoing.claims)
        self.crawl.commit(now)

    def deliver(self, batches: Sequence[bytes], now: float, *, up_to: int) -> None:
        """Queue the links of batches, those of rounds ``up_to`` one, and commit."""
        links: list[QueuedLink] = []
        for data in batches:
            try:
                batch = decode_batch(data)
            except MessageError as error:
                self._refuse(error)
                continue
            if batch.number > self._latest.get(batch.sender, -1):
                self._latest[batch.sender] = batch.number
                links += filter(None, (self._link_of(each, now) for each in batch.links))
        self.delivered = up_to
        self._tables.put_meta(_DELIVERED, up_to)
        if batches:
            latest = {str(sender): number for sender, number in self._latest.items()}
            self._tables.put_meta(_SENDERS, latest)
        self.crawl.receive(links, now)

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
        logger.warning("a message for partition %d is refused: %s", self.number, error)


def build_partition(
    number: int,
    topic: Topic,
    classifier: TopicClassifier,
    policy: Policy,
    store: StateStore,
    owner_of: OwnerOf,
    **options: Any,
) -> Partition:
    """Build the partition whose state is in ``store``, with its crawl.

    A scorer that learns does so from its own examples, until it is replaced by what all partitions
    learned. ``options`` as for :func:`focused.crawl.build.build_crawl`.
    """
    outbox, examples = Outbox(store.tables), ExampleOutbox(store.tables)
    contents, scorer = RoundContents(store.tables, number, owner_of), policy.scorer
    share: Callable[[bytes], object] | None = None
    if isinstance(scorer, OnlineLinkScorer):

        def share(row: bytes) -> None:
            examples.add(row)
            scorer.learn(decode_example(row))

    def route(frontier: DiskFrontier, tables: Tables) -> RoutedLinks:
        return RoutedLinks(number, owner_of, frontier, outbox)

    crawl = build_crawl(
        topic,
        classifier,
        policy,
        store,
        route=route,
        share_example=share,
        shared_contents=contents,
        **options,
    )
    return Partition(number, crawl, store.tables, outbox, owner_of, examples, contents)
