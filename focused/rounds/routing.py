"""Route the links of pages: one's own to the frontier, others to their partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.interface import Known
from focused.frontier.queued_link import QueuedLink
from focused.rounds.outbox import Outbox

OwnerOf = Callable[[str, bytes], int]
"""Returns the partition of a link, by its host and its key."""


class RoutedLinks:
    """A :class:`focused.frontier.interface.LinkQueue` of one partition."""

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
