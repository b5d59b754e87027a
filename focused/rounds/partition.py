"""A partition: the crawl of its hosts, what it sends, and the links that it receives.

A host's partition is a hash of its site, so a partition stays where it is: a process that dies is
started again by :mod:`focused.rounds.process_supervision`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xxhash
from cachetools import LRUCache

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.build import build_crawl
from focused.crawl.loop import Crawl
from focused.crawl.policy import Policy
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import OnlineLinkScorer, decode_example
from focused.rounds.learning import encode_example
from focused.rounds.manifest import CONTENTS, EXAMPLES, links_for
from focused.rounds.outbox import (
    ExampleOutbox,
    NumberedRows,
    Outbox,
    OwnerOf,
    RoutedLinks,
    decode_batch,
)
from focused.rounds.shared_contents import RoundContents
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import PARTITION_UNITS, Topic
from focused.web.host_names import registered_domain
from focused.web.urls import host_of

_MAX_HOSTS = 100_000
_DOMAIN = PARTITION_UNITS[0]


class PartitionMap:
    """The partition of each link: a hash of its site, which is a registered domain or a host.

    ``unit`` is one of :data:`focused.topic.PARTITION_UNITS`.
    """

    def __init__(self, partitions: int, unit: str = _DOMAIN) -> None:
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
            site = registered_domain(host) if self._unit == _DOMAIN else host
            partition = xxhash.xxh3_64_intdigest(site.encode()) % self.partitions
            self._of_host[host] = partition
        return partition


logger = logging.getLogger(__name__)

_DELIVERED = "delivered_round"
_SENDERS = "senders_batches"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a partition sends, by section of its file, and the numbers of the rows in its queues."""

    sections: Mapping[str, Sequence[bytes]]
    rows: Sequence[tuple[NumberedRows, Sequence[int]]]


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
        links = self.outbox.rows.first(max_links)
        examples = self.examples.rows.first(max_examples)
        claims = self.contents.claims.first()
        sections: dict[str, Sequence[bytes]] = {
            links_for(to): [batch] for to, batch in self.outbox.batches(self.number, links).items()
        }
        sections[CONTENTS] = [row for _, row in claims]
        sections[EXAMPLES] = [encode_example(self.number, *each) for each in examples]
        queues = (
            (self.outbox.rows, links),
            (self.examples.rows, examples),
            (self.contents.claims, claims),
        )
        return Outgoing(
            sections, [(queue, [number for number, _ in rows]) for queue, rows in queues]
        )

    def confirm(self, outgoing: Outgoing, now: float) -> None:
        """Remove what was sent from the queues, and commit."""
        for queue, numbers in outgoing.rows:
            queue.remove(numbers)
        self.crawl.commit(now)

    def deliver(self, batches: Sequence[bytes], now: float, *, up_to: int) -> None:
        """Queue the links of batches, those of rounds ``up_to`` one, and commit."""
        links: list[QueuedLink] = []
        for batch in map(decode_batch, batches):
            if batch.number > self._latest.get(batch.sender, -1):
                self._latest[batch.sender] = batch.number
                links += [each.link(now) for each in batch.links]
        # The list of registered domains may differ from machine to machine.
        own = [link for link in links if self._owner_of(link.host, link.key) == self.number]
        if len(own) < len(links):
            logger.warning(
                "partition %d refuses %d links of others", self.number, len(links) - len(own)
            )
        self.delivered = up_to
        self._tables.put_meta(_DELIVERED, up_to)
        if batches:
            latest = {str(sender): number for sender, number in self._latest.items()}
            self._tables.put_meta(_SENDERS, latest)
        self.crawl.receive(own, now)


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
