"""The frontier of one machine: hosts in memory, links on disk.

:mod:`focused.frontier.link_table` has the layout on disk. ``tests/contracts`` compares this
frontier with one in memory. A host belongs to one owner: a frontier spread over machines has a part
per owner, and each link is pushed to its host's part, by a :class:`LinkQueue`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heappush, heapreplace
from itertools import islice
from typing import Protocol

from msgspec.structs import replace

from focused.frontier.host import Host
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.host_table import HostTable
from focused.frontier.link_table import LinkTable
from focused.frontier.queued_link import (
    NO_EXPLORATION,
    NUMBER_BYTES,
    Exploration,
    QueuedLink,
    link_key,
    number_in_key,
    rank_in_key,
)
from focused.storage.tables import Tables
from focused.web.urls import host_of


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


class DiskFrontier:
    """Two-level queue over :class:`Tables`; single owner, no threads.

    Changes become durable when the caller has called :meth:`save` and committed
    (:class:`focused.crawl.crawl_state.CrawlState` does), which it may after any method; a crash
    before that undoes them.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        worth_waiting_for: float = 0.1,
        exploration: Exploration = NO_EXPLORATION,
        limits: HostLimits | None = None,
        address_delay_s: float = 0.0,
        address_delay_of: Callable[[str], float] | None = None,
    ) -> None:
        """Open the frontier in ``tables``.

        With patience a link waits for one better by ``worth_waiting_for``, in priority.
        ``exploration`` adds to the priority of hosts; ``limits`` bound the pages per host and
        address. ``address_delay_s`` is the delay between fetches at one address,
        ``address_delay_of`` the same by the host fetched last.
        """
        self._worth_waiting_for = worth_waiting_for
        self.hosts = HostTable(tables, exploration, limits, address_delay_s, address_delay_of)
        self._links = LinkTable(tables)
        self._lease_rows = LeaseRows(tables)
        self._leased: set[bytes] = set()
        """The numbers of the links in flight."""
        self.interrupted = self._lease_rows.take_over(self.hosts)
        """Hosts with a fetch in flight when an earlier process died, and since when."""

    def __len__(self) -> int:
        """Return the number of queued links, including those in flight."""
        return len(self._links)

    @property
    def found(self) -> int:
        """The number of links ever added."""
        return self._links.found

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue a link; True when it is new."""
        return self.push_all((link,), now, joined=joined) == 1

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        """Queue links; return how many are new."""
        table, leased, get_host = self._links, self._leased, self.hosts.get
        before = table.found
        best_new: dict[Host, bytes] = {}
        demoted: dict[Host, None] = {}
        try:
            for link in links:
                host = get_host(link.host)
                seen = table.seen(host, link.key)
                if (was := seen.at) is None:
                    at = table.add(host, link)
                # A link in flight keeps its row: settle() needs its queue key.
                elif seen.link is None or was[-NUMBER_BYTES:] in leased:
                    continue
                else:
                    better = _found_again(seen.link, link, joined)
                    if better is None:
                        continue
                    at = table.move(host, was, better)
                    if at > was:
                        if host.best is None or seen.link.rank >= host.best:
                            demoted[host] = None
                        continue
                best_new[host] = min(at, best_new.get(host, at))
        finally:
            table.flush()
        for host, at in best_new.items():
            self.hosts.link_came(host, at, now)
        for host in demoted:
            self.hosts.rank(host, now)
        return table.found - before

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """Look up links by host and key."""
        hosts = self.hosts.known
        numbered = ((host, key) for name, key in links if (host := hosts(name)) is not None)
        settled, waiting = set(), {}
        for key, seen in self._links.seen_among(numbered):
            if seen.link is not None:
                if seen.number not in self._leased:
                    waiting[key] = seen.link
            elif seen.at is not None:
                settled.add(key)
        return Known(settled, waiting)

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
        host = self.hosts.best_due(now)
        if host is not None and self.hosts.worth(host) < floor:
            return NotYet(self.hosts.next_due_at())
        if host is not None and patience_s > 0:
            enough = self.hosts.worth(host) + self._worth_waiting_for
            better_at = self.hosts.turns.better_host_at(enough, now, patience_s)
            if better_at is not None:
                return NotYet(better_at)
        if host is None:
            if not self.hosts.with_links and not self.hosts.busy:
                return None
            return NotYet(self.hosts.next_due_at())
        at, following = self._links.first_two(host)
        if at is None:
            raise AssertionError(f"host {host.name} is due without a link")
        link = self._links.read(host, at)
        self.hosts.take(host, at, following, now)
        self._lease_rows.changed(host)
        self._leased.add(at[-NUMBER_BYTES:])
        return Offer(link, host, at)

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Remove the offered link; its host continues at ``pace``."""
        self._links.take_out(offer.host, offer.queue_key, offer.link.key)
        self._release(offer, pace, now, still_queued=False)

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Keep the link queued after a failed try."""
        self.save_tries(offer, offer.link.tries + 1)
        self._release(offer, pace, now, still_queued=True)

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        """Keep the link queued; it was not requested."""
        self._release(offer, pace, now, still_queued=True)

    def save_tries(self, offer: Offer, tries: int) -> None:
        """Store the link's number of tries, in case the process dies before it is settled."""
        # The queue key holds the rank from before the link was scored again.
        tried = replace(offer.link.with_rank(rank_in_key(offer.queue_key)), tries=tries)
        self._links.rewrite(offer.host, offer.queue_key, tried)

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        """Queue ``link``, with another priority, in the place of the offered one."""
        at = self._links.rewrite(offer.host, offer.queue_key, link)
        self._leased.discard(offer.queue_key[-NUMBER_BYTES:])
        self._lease_rows.changed(offer.host)
        self.hosts.end_lease(offer.host, now, still_queued=False)
        self.hosts.link_came(offer.host, at, now)

    def drop(self, link: QueuedLink, now: float) -> bool:
        """Remove a queued link without a fetch; it stays seen. False when it isn't queued."""
        waiting = self._waiting_row(link.host, link.key)
        if waiting is None:
            return False
        host, _, at = waiting
        self._links.take_out(host, at, link.key)
        self.hosts.rank(host, now)
        return True

    def forget(self, host_name: str, key: bytes) -> bool:
        """Allow a settled link to be added again; False when it is queued or was never seen."""
        host = self.hosts.known(host_name)
        return host is not None and self._links.forget(host, key)

    def best_priorities(self, limit: int, now: float, patience_s: float = 0.0) -> Sequence[float]:
        """Return the priorities of the best queued links, at most ``limit``, best first.

        Those are the links of hosts that are due, or for which a link would wait (see
        :meth:`offer`), with the bonus that their hosts will have then.
        """
        best: list[float] = []
        for host in self.hosts.turns.best_soon(limit, now, patience_s):
            if len(best) == limit and self.hosts.worth(host) <= best[0]:
                break
            places = (at for at in self._links.places(host) if at != host.leased)
            for ahead, at in enumerate(islice(places, limit)):
                priority = rank_in_key(at) + self.hosts.turns.bonus(host, ahead)
                if len(best) < limit:
                    heappush(best, priority)
                elif priority > best[0]:
                    heapreplace(best, priority)
                else:
                    break
        return sorted(best, reverse=True)

    def count(self, host: Host) -> int:
        """Count the host's queued links, including one in flight."""
        return self._links.size(host)

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        """Yield the host's queued links, best first, without one in flight.

        Don't write meanwhile.
        """
        for at in self._links.places(host):
            if at != host.leased:
                yield self._links.read(host, at)

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        """Change the priorities of queued links by URL; return how many moved.

        URLs that are not queued, or in flight, are ignored.
        """
        # In the order given: among equals, the host that was scheduled first comes first.
        touched: dict[Host, None] = {}
        moved = 0
        for url, priority in priorities.items():
            waiting = self._waiting_row(host_of(url), link_key(url))
            if waiting is None:
                continue
            host, link, at = waiting
            if link.priority == priority:
                continue
            self._links.move(host, at, replace(link, priority=priority))
            touched[host] = None
            moved += 1
        self._links.flush()
        for host in touched:
            self.hosts.rank(host, now)
        return moved

    def rescore_best(self, host: Host, again: ScoreAgain, ranks: range, now: float) -> None:
        """Replace the host's links of ``ranks``, 0 the best, by the result of ``again``."""
        places, links = self._links.ranked(host, ranks)
        if not links:
            return
        moved = again(links, [number_in_key(at) for at in places])
        for at, link, then in zip(places, links, moved, strict=True):
            if then.priority != link.priority:
                self._links.move(host, at, then)
        self._links.flush()
        self.hosts.rank(host, now)

    def save(self) -> None:
        """Write the state held in memory into the open transaction."""
        self._lease_rows.save()
        self.hosts.save()
        self._links.save()

    def _release(self, offer: Offer, pace: HostPace, now: float, *, still_queued: bool) -> None:
        self._leased.discard(offer.queue_key[-NUMBER_BYTES:])
        self._lease_rows.changed(offer.host)
        offer.host.pace = pace
        self.hosts.changed(offer.host)
        self.hosts.end_lease(offer.host, now, still_queued=still_queued)

    def _waiting_row(self, host_name: str, key: bytes) -> tuple[Host, QueuedLink, bytes] | None:
        """The queued link with that key, its host and its queue key, or None."""
        host = self.hosts.known(host_name)
        if host is None:
            return None
        seen = self._links.seen(host, key)
        if seen.at is None or seen.link is None or seen.number in self._leased:
            return None
        return host, seen.link, seen.at


def _found_again(old: QueuedLink, link: QueuedLink, joined: bool) -> QueuedLink | None:
    """The queued link after ``link`` was found again; None when it doesn't change."""
    # A seed has no features to merge.
    adds_features = joined and old.features and old.features != link.features
    if link.rank <= old.rank and not adds_features:
        return None
    return QueuedLink(
        link.key, link.url, link.host, link.priority, link.score,
        link.depth if link.depth < old.depth else old.depth,
        link.parent, link.anchor, link.features, old.found_at,
        old.tries, link.hops, old.payload, link.tag_path_key, old.purpose,
        link.is_exempt,
    )  # fmt: skip


_ROW = struct.Struct(">d")


class LeaseRows:
    """The hosts with a fetch in flight, on disk, for recovery after a crash.

    Rows are written once a commit, so a link that is offered, scored again and put back in one
    commit costs nothing. A row holds, by host number, when the fetch began and the number of the
    link.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._changed: dict[Host, None] = {}
        self._written = {prefix for prefix, _ in tables.scan("leased")}

    def changed(self, host: Host) -> None:
        """Note that a fetch of the host began or ended."""
        self._changed[host] = None

    def save(self) -> None:
        """Write the changed rows."""
        for host in self._changed:
            if host.leased is not None:
                row = _ROW.pack(host.leased_at) + host.leased[-NUMBER_BYTES:]
                self._tables.put("leased", host.prefix, row)
                self._written.add(host.prefix)
            elif host.prefix in self._written:
                self._tables.delete("leased", host.prefix)
                self._written.discard(host.prefix)
        self._changed.clear()

    def take_over(self, hosts: Iterable[Host]) -> Sequence[tuple[Host, float]]:
        """Return the hosts with a fetch in flight in an earlier process, and when it began."""
        since = {prefix: _ROW.unpack_from(row)[0] for prefix, row in self._tables.scan("leased")}
        if not since:
            return ()
        taken = [(host, since[host.prefix]) for host in hosts if host.prefix in since]
        for host, _ in taken:
            self.changed(host)
        return taken
