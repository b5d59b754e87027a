"""What a frontier takes and returns, and the protocol of the queue for a page's links.

A host belongs to one owner: a frontier spread over machines has a part per owner, and each link is
pushed to its host's part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from focused.frontier.host import Host
from focused.frontier.queued_link import QueuedLink, number_in_key


@dataclass(frozen=True, slots=True)
class Offer:
    """The best link that may be fetched now; it stays queued until it is settled."""

    link: QueuedLink
    host: Host
    queue_key: bytes

    @property
    def found(self) -> int:
        """The link's position in the order of discovery."""
        return number_in_key(self.queue_key)


@dataclass(frozen=True, slots=True)
class NotYet:
    """No link may be fetched before ``until``; None: until a fetch in flight ends."""

    until: float | None


@dataclass(frozen=True, slots=True)
class Known:
    """Settled and queued links by key; links in flight and new ones are in neither."""

    settled: Set[bytes]
    waiting: Mapping[bytes, QueuedLink]


NO_FLOOR = float("-inf")
ScoreAgain = Callable[[Sequence[QueuedLink], Sequence[int]], Sequence[QueuedLink]]
"""Takes links and their positions in the order of discovery; returns the links with new scores."""


class LinkQueue(Protocol):
    """Where the links of pages are queued."""

    @property
    def found(self) -> int:
        """The number of links ever added: the next link's position in the order of discovery."""

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue a link; True when it is new (the URL-seen test is exact).

        A queued link moves up if ``link`` has the higher priority, and keeps the smaller depth.
        With ``joined``, ``link`` has the features of the queued one merged in and replaces it at
        any priority. A link in flight doesn't change.
        """

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        """:meth:`push` links in order; return how many are new."""

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """Look up links by host name and key."""
