"""Route the links of pages: one's own to the frontier, others to their partition.

The modes are those of Cho and Garcia-Molina ("Parallel crawlers", WWW 2002): *exchange* sends links
of other partitions to them; *firewall* drops them; *crossover* follows them when no own link is
left.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from focused.cluster.outbox import Outbox
from focused.frontier.interface import Frontier, Known
from focused.frontier.queued_link import QueuedLink

OwnerOf = Callable[[str, bytes], int]
"""Returns the partition of a link, by its host and its key."""


class LinkMode(StrEnum):
    """What happens to links of other partitions."""

    EXCHANGE = "exchange"
    FIREWALL = "firewall"
    CROSSOVER = "crossover"
    """For experiments only: the links that are kept are lost in a restart."""


@dataclass(slots=True)
class RoutingCounts:
    """Links of other partitions.

    ``suppressed`` ones were sent lately, ``replicated`` ones are known to all partitions: neither
    is sent. ``kept`` ones are followed when no own link is left.
    """

    sent: int = 0
    suppressed: int = 0
    replicated: int = 0
    dropped: int = 0
    kept: int = 0


class RoutedLinks:
    """A :class:`focused.frontier.interface.LinkQueue` of one partition."""

    def __init__(
        self,
        partition: int,
        owner_of: OwnerOf,
        frontier: Frontier,
        outbox: Outbox,
        mode: LinkMode = LinkMode.EXCHANGE,
        replicated: Set[bytes] = frozenset(),
    ) -> None:
        """``replicated`` are keys of links that all partitions know: they are not sent."""
        self.counts = RoutingCounts()
        self._partition = partition
        self._owner_of = owner_of
        self._frontier = frontier
        self._outbox = outbox
        self._mode = mode
        self._replicated = replicated
        self._kept: list[tuple[float, int, QueuedLink]] = []
        self._kept_keys: set[bytes] = set()

    @property
    def found(self) -> int:
        """The number of links ever added to the frontier."""
        return self._frontier.found

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue or send a link; True when it is new to the frontier or the outbox."""
        to = self._owner_of(link.host, link.key)
        if to == self._partition:
            return self._frontier.push(link, now, joined=joined)
        if self._is_known(link.key):
            return False
        if self._mode is LinkMode.CROSSOVER:
            self._kept_keys.add(link.key)
            heapq.heappush(self._kept, (-link.priority, len(self._kept_keys), link))
            self.counts.kept += 1
            return True
        if self._mode is LinkMode.FIREWALL:
            self.counts.dropped += 1
            return False
        is_new = self._outbox.add(to, link)
        self.counts.sent += is_new
        return is_new

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
        """Look up links; one of another partition counts as settled if nothing is to be sent."""
        own = [each for each in links if self._is_own(*each)]
        known = self._frontier.lookup_links(own)
        if len(own) == len(links):
            return known
        others = {key for host, key in links if not self._is_own(host, key)}
        done = {key for key in others if self._is_known(key)}
        if self._mode is LinkMode.FIREWALL:
            self.counts.dropped += len(others - done)
            done = others
        return Known(known.settled | done, known.waiting)

    def cross_over(self, now: float, limit: int) -> int:
        """Queue the best links of other partitions that were kept; return how many."""
        links = [heapq.heappop(self._kept)[-1] for _ in range(min(limit, len(self._kept)))]
        return self._frontier.push_all(links, now)

    def _is_own(self, host: str, key: bytes) -> bool:
        return self._owner_of(host, key) == self._partition

    def _is_known(self, key: bytes) -> bool:
        """Whether nothing is to be done about a link of another partition; counts it."""
        if key in self._replicated:
            self.counts.replicated += 1
            return True
        is_known = key in self._kept_keys or self._outbox.was_sent(key)
        self.counts.suppressed += is_known
        return is_known
