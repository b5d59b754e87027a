"""Route the links of pages: one's own to the frontier, others to their partition.

The modes are those of Cho and Garcia-Molina ("Parallel crawlers", WWW 2002): *exchange* sends links
of other partitions to them; *firewall* drops them; *crossover* keeps them, after all own links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from focused.cluster.outbox import Outbox
from focused.frontier.interface import Frontier, Known
from focused.frontier.queued_link import QueuedLink

OwnerOf = Callable[[str, bytes], int]
"""Returns the partition of a link, by its host and its key."""
_CROSSOVER_PENALTY = 1_000_000.0
"""Below the priority of every own link."""


class LinkMode(StrEnum):
    """What happens to links of other partitions."""

    EXCHANGE = "exchange"
    FIREWALL = "firewall"
    CROSSOVER = "crossover"


@dataclass(slots=True)
class RoutingCounts:
    """Links of other partitions: sent, not sent because they were sent lately, dropped, kept."""

    sent: int = 0
    suppressed: int = 0
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
    ) -> None:
        self.counts = RoutingCounts()
        self._partition = partition
        self._owner_of = owner_of
        self._frontier = frontier
        self._outbox = outbox
        self._mode = mode

    @property
    def found(self) -> int:
        """The number of links ever added to the frontier."""
        return self._frontier.found

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue or send a link; True when it is new to the frontier or the outbox."""
        to = self._owner_of(link.host, link.key)
        if to == self._partition:
            return self._frontier.push(link, now, joined=joined)
        if self._mode is LinkMode.CROSSOVER:
            self.counts.kept += 1
            later = replace(link, priority=link.priority - _CROSSOVER_PENALTY)
            return self._frontier.push(later, now, joined=joined)
        if self._mode is LinkMode.FIREWALL:
            self.counts.dropped += 1
            return False
        is_new = self._outbox.add(to, link)
        self.counts.sent += is_new
        self.counts.suppressed += not is_new
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
        if self._mode is LinkMode.CROSSOVER:
            return self._frontier.lookup_links(links)
        own = [each for each in links if self._is_own(*each)]
        known = self._frontier.lookup_links(own)
        if len(own) == len(links):
            return known
        others = {key for host, key in links if not self._is_own(host, key)}
        if self._mode is LinkMode.EXCHANGE:
            done = {key for key in others if self._outbox.was_sent(key)}
            self.counts.suppressed += len(done)
        else:
            done = others
            self.counts.dropped += len(done)
        return Known(known.settled | done, known.waiting)

    def _is_own(self, host: str, key: bytes) -> bool:
        return self._owner_of(host, key) == self._partition
