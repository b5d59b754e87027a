"""What a frontier is: links come in once, and leave when their host may be asked.

The seam between a crawl and what keeps its links. See the package docstring
for the flow, and ``tests/contracts/every_frontier.py`` for the promises as
tests. A host belongs to one owner: a frontier that is spread over machines has
as many owners as parts, each with the hosts whose names fall to it, and
each link is pushed to the part that owns its host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from focused.frontier.host import Host, HostPace
from focused.frontier.queued_link import QueuedLink, number_in_key


@dataclass(frozen=True, slots=True)
class Offer:
    """The best link that may be fetched now, still in its queue until settled."""

    link: QueuedLink
    host: Host
    queue_key: bytes

    @property
    def found(self) -> int:
        """The link's place in the order of discovery."""
        return number_in_key(self.queue_key)


@dataclass(frozen=True, slots=True)
class NotYet:
    """No link may be fetched before ``until``; None: only when a fetch under way ends."""

    until: float | None


@dataclass(frozen=True, slots=True)
class Known:
    """What a frontier knows of some links, by key; those under way and new ones are in neither."""

    settled: Set[bytes]
    waiting: Mapping[bytes, QueuedLink]


ScoreAgain = Callable[[Sequence[QueuedLink], Sequence[int]], Sequence[QueuedLink]]
"""Given links and their places in the order of discovery: them with what is known of them now."""


class Hosts(Protocol):
    """The hosts of a frontier: what is known of each, and the turn of each."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Host]: ...

    @property
    def with_links(self) -> int:
        """How many hosts have links that may be asked for, now or later."""

    @property
    def busy(self) -> int:
        """How many hosts are being asked."""

    def get(self, name: str) -> Host:
        """Return the host, a new one when it was unknown."""

    def known(self, name: str) -> Host | None:
        """Return the host, or None."""

    def worth(self, host: Host) -> float:
        """The priority of the host's best link, and what is hoped of the host."""

    def refresh(self, host: Host, now: float) -> None:
        """Give the host its place again after its pace or its counts were changed."""

    def full(self) -> Iterator[Host]:
        """Yield the hosts that have links, but whose budget of pages is spent."""

    def reserve(self, host: Host, now: float) -> None:
        """The host is offered to nobody until :meth:`release_reservation`, be it under way now or not.

        Nor are the hosts at its address: for a request past the frontier.
        """

    def release_reservation(self, host: Host, now: float) -> None:
        """The request past the frontier is over; the host goes on at its pace."""

    def assign_address(self, host: Host, address: str) -> None:
        """The host was found at that address: it shares its server's turn from now on."""

    def restore_address_delays(self, now: float) -> None:
        """A new process begins: who rests may have been asked just now, at its address."""

    def count_fetched(self, host: Host) -> None:
        """A page came from the host."""

    def robots(self, host: Host) -> Mapping[str, Any]:
        """The state of the host's robots.txt rules by scheme, as :meth:`keep_robots` was given."""

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        """Keep the state of the host's rules for a scheme."""

    def next_due_at(self) -> float | None:
        """Return when the first waiting host falls due; None when none waits."""


class Frontier(Protocol):
    """Links by host, hosts by time: what to fetch next, and when.

    One owner, no threads. What was done counts when the caller has called :meth:`save` and
    committed; a crash before that undoes it. Times are seconds of one clock.
    """

    @property
    def hosts(self) -> Hosts:
        """The hosts whose links came in, or were asked for by name."""

    @property
    def found(self) -> int:
        """How many links ever came in: the next link's place in the order of discovery."""

    @property
    def interrupted(self) -> Sequence[tuple[Host, float]]:
        """Hosts that were being asked when an earlier process died, and since when."""

    def __len__(self) -> int:
        """How many links are queued, those under way included."""

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue a link; True when it is new (the URL-seen test, exact).

        A link that waits already is moved up when ``link`` has the higher
        priority, keeping the shorter way (depth) to it; with ``joined``, when
        ``link`` holds what the waiting one told, it takes its place whatever
        the priority. A link under way is left alone.
        """

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        """:meth:`push` links in one go; return how many are new.

        They are taken one by one: :attr:`found` counts those before.
        """

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """What is known of links, each given by its host's name and its key."""

    def offer(self, now: float, patience_s: float = 0.0) -> Offer | NotYet | None:
        """Return the best link of a host that may be asked now; None when no link is left.

        Best by its host's worth; links of one host by priority, then in the order of
        discovery. A host is offered once at a time, not before its pace says, and not
        while another host at its address is being asked, or was just now. With
        ``patience_s`` a link waits while one that is clearly better falls due within
        that time. The offered host is taken until :meth:`settle`, :meth:`retry`,
        :meth:`put_back` or :meth:`requeue`.
        """

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link is done with, whatever came of it; its host goes on at ``pace``."""

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The fetch failed for now: the link stays queued, one try older."""

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link was not asked for; it stays as it is."""

    def save_tries(self, offer: Offer, tries: int) -> None:
        """The offered link has had so many tries, should the process die before it is settled."""

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        """The offered link goes back as ``link``, whose priority is another."""

    def drop(self, link: QueuedLink, now: float) -> bool:
        """Take a queued link out without a fetch; it stays seen. False when it does not wait."""

    def drop_host(self, name: str, now: float) -> int:
        """Take all queued links of a host out without a fetch; return how many.

        They stay seen; a link under way is left alone.
        """

    def forget(self, host_name: str, key: bytes) -> bool:
        """A link that left the queue may come in again, as if it was never seen.

        False when the link is queued, or was never seen.
        """

    def count(self, host: Host) -> int:
        """How many links of the host are queued, one under way included."""

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        """Yield the host's queued links, best first, but for one under way.

        Do not write meanwhile.
        """

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        """Move queued links, by normalised URL, up or down; return how many were moved.

        Links that are not queued, or under way, are passed over.
        """

    def rescore_best(self, host: Host, again: ScoreAgain, ranks: range, now: float) -> None:
        """Move links of the host to where ``again`` puts them: those of ``ranks``, 0 the best."""

    def save(self) -> None:
        """Write what is kept in memory into the open transaction."""
