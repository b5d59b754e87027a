"""The frontier protocol, between a crawl and what stores its links.

``tests/contracts/every_frontier.py`` holds its contract as tests. A host belongs to one owner: a
frontier spread over machines has a part per owner, and each link is pushed to its host's part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from focused.frontier.host import Host, HostPace
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


class Hosts(Protocol):
    """The hosts of a frontier."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Host]: ...

    @property
    def with_links(self) -> int:
        """The number of hosts with links and budget left."""

    @property
    def busy(self) -> int:
        """The number of hosts with a request in flight."""

    def get(self, name: str) -> Host:
        """Return the host; an unknown one is created."""

    def known(self, name: str) -> Host | None:
        """Return the host, or None."""

    def worth(self, host: Host) -> float:
        """The priority of the host: that of its best link plus its exploration bonus."""

    def refresh(self, host: Host, now: float) -> None:
        """Store and schedule the host after its pace or counts changed."""

    def is_full(self, host: Host) -> bool:
        """Whether the host, or its address, has no budget left."""

    def full(self) -> Iterator[Host]:
        """Yield the hosts that have links but no budget left."""

    def reserve(self, host: Host, now: float) -> None:
        """Reserve the host and its address for a direct request."""

    def release_reservation(self, host: Host, now: float) -> None:
        """End the direct request; the host continues at its pace."""

    def assign_address(self, host: Host, address: str) -> None:
        """Move the host to the address; hosts at one address share connection and delay."""

    def restore_address_delays(self, now: float) -> None:
        """Delay the addresses of hosts that are not due, as a new process begins."""

    def share_addresses(self, crawls: Mapping[str, int]) -> None:
        """Set how many crawls have hosts at an address: each waits so many times the delay."""

    def count_fetched(self, host: Host) -> None:
        """Count a page of the host."""

    def robots(self, host: Host) -> Mapping[str, Any]:
        """Return the host's robots.txt rules by scheme."""

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        """Store the host's robots.txt rules for a scheme."""

    def next_due_at(self) -> float | None:
        """Return when the first waiting host is due, or None."""


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


class Frontier(LinkQueue, Protocol):
    """Queued links by host, and hosts by due time.

    Single owner, no threads. Changes become durable when the caller has called :meth:`save` and
    committed; a crash before that undoes them.
    """

    @property
    def hosts(self) -> Hosts:
        """The hosts of all links ever added, and those asked for by name."""

    @property
    def interrupted(self) -> Sequence[tuple[Host, float]]:
        """Hosts with a fetch in flight when an earlier process died, and since when."""

    def __len__(self) -> int:
        """Return the number of queued links, including those in flight."""

    def offer(
        self, now: float, patience_s: float = 0.0, floor: float = NO_FLOOR
    ) -> Offer | NotYet | None:
        """Return the best link of a host that is due; None when no link is left.

        Hosts are ordered by priority including their bonus, links of a host by priority, then by
        discovery. A host is offered once at a time, when its pace allows, and when no other host at
        its address is being fetched or was just now. With ``patience_s`` a link waits for a clearly
        better one that is due within that time. No host with a priority below ``floor`` is offered.
        The host is taken until :meth:`settle`, :meth:`retry`, :meth:`put_back` or :meth:`requeue`.
        """

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Remove the offered link; its host continues at ``pace``."""

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Keep the offered link queued after a failed try."""

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Keep the offered link queued; it was not requested."""

    def save_tries(self, offer: Offer, tries: int) -> None:
        """Store the link's number of tries, in case the process dies before it is settled."""

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        """Replace the offered link by ``link``, with another priority."""

    def drop(self, link: QueuedLink, now: float) -> bool:
        """Remove a queued link without a fetch; it stays seen. False when it isn't queued."""

    def forget(self, host_name: str, key: bytes) -> bool:
        """Allow a settled link to be added again; False when it is queued or was never seen."""

    def best_priorities(self, limit: int, now: float, patience_s: float = 0.0) -> Sequence[float]:
        """Return the priorities of the best queued links, at most ``limit``, best first.

        Those are the links of hosts that are due, or for which a link would wait (see
        :meth:`offer`), with the bonus that their hosts will have then.
        """

    def count(self, host: Host) -> int:
        """Count the host's queued links, including one in flight."""

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        """Yield the host's queued links, best first, without one in flight.

        Don't write meanwhile.
        """

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        """Change the priorities of queued links by URL; return how many moved.

        URLs that are not queued, or in flight, are ignored.
        """

    def rescore_best(self, host: Host, again: ScoreAgain, ranks: range, now: float) -> None:
        """Replace the host's links of ``ranks``, 0 the best, by the result of ``again``."""

    def save(self) -> None:
        """Write the state held in memory into the open transaction."""
