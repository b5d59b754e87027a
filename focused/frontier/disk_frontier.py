"""The frontier of one machine: most of it on disk, its hosts in memory.

See :mod:`focused.frontier.frontier` for what it promises. On disk a link is three things: a row
under its number in the order of discovery, a place in its host's queue that
ends in that number, and a member of its host's set of seen links that ends
in it too. A link whose row is gone was settled. What is of one host lies
together, for most links of a page stay on its host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from focused.frontier.exploration import NONE, Exploration
from focused.frontier.frontier import Known, NotYet, Offer, ScoreAgain
from focused.frontier.host import Host
from focused.frontier.hosts import HostTable
from focused.frontier.lease_rows import LeaseRows
from focused.frontier.link_rows import Sources, from_row, to_row
from focused.frontier.places import NUMBER_BYTES, number_bytes, number_of, place, priority_of
from focused.frontier.politeness import HostPace
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore
from focused.frontier.turns import HostLimits
from focused.web.url import host_of

_SEEN_BYTES = 10
"""Of a link's key, within its host: of 10^9 links of one host two are alike once in a million."""


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """A link's number, None when it was never seen, and the link while it is queued."""

    number: bytes | None = None
    link: QueuedLink | None = None


_UNSEEN = _Seen()


class DiskFrontier:
    """Two-level queue over a :class:`StateStore`; one owner, no threads.

    The caller commits the store; every method leaves it in a state that may
    be committed, once :meth:`save` was called.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        worth_waiting_for: float = 0.1,
        exploration: Exploration = NONE,
        limits: HostLimits | None = None,
        address_delay_s: float = 0.0,
        address_delay_of: Callable[[str], float] | None = None,
    ) -> None:
        """With patience a link waits for one better by ``worth_waiting_for``, in priority.

        ``exploration`` is what is hoped of hosts, in priority; ``limits`` bound the pages
        of a host or an address; ``address_delay_s`` is the pause between fetches at one,
        ``address_delay_of`` the same by the name of the host asked last.
        """
        self._store = store
        self._worth_waiting_for = worth_waiting_for
        self.hosts = HostTable(store, exploration, limits, address_delay_s, address_delay_of)
        self._sources = Sources(store)
        self._lease_rows = LeaseRows(store)
        self._found = int(store.get_meta("found") or 0)
        self._found_saved = self._found
        self._leased: set[bytes] = set()
        """The numbers of the links that are under way."""
        self._looked_up: dict[tuple[str, bytes], _Seen] = {}
        """What the last look found that nothing was done to since: it is not looked up again."""
        self._interrupted = self._lease_rows.take_over(self.hosts)

    def __len__(self) -> int:
        return self._store.count("queue")

    @property
    def found(self) -> int:
        """How many links ever came in."""
        return self._found

    @property
    def interrupted(self) -> Sequence[tuple[Host, float]]:
        """Hosts that were being asked when an earlier process died."""
        return self._interrupted

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue a link; True when it is new."""
        host = self.hosts.get(link.host)
        seen = self._looked_up.pop((link.host, link.key), None) or self._seen(host, link.key)
        if seen.number is not None:
            # A link under way keeps its row: settling it must find the place it was offered with.
            if seen.link is not None and seen.number not in self._leased:
                self._found_again(link, host, seen.number, seen.link, now, joined)
            return False
        number = number_bytes(self._found)
        at = place(link.priority, self._found)
        self._store.put("links", number, to_row(link, self._sources), last=True)
        self._store.add("queue", host.prefix, at)
        self._store.add("seen", host.prefix, link.key[:_SEEN_BYTES] + number)
        self._found += 1
        self.hosts.link_came(host, at, now)
        return True

    def known_among(self, links: Sequence[tuple[str, bytes]]) -> Known:
        """What is known of links, by host and key."""
        self._looked_up = {}
        numbers: dict[bytes, tuple[str, bytes]] = {}
        for name, key in links:
            host = self.hosts.known(name)
            number = None if host is None else self._number_of(host, key)
            if number is None:
                self._looked_up[name, key] = _UNSEEN
            else:
                numbers[number] = (name, key)
        rows = dict(self._store.get_many("links", list(numbers)))
        settled, waiting = set(), {}
        for number, (name, key) in numbers.items():
            row = rows.get(number)
            link = None if row is None else from_row(row, name, self._sources, key)
            self._looked_up[name, key] = _Seen(number, link)
            if link is None:
                settled.add(key)
            elif number not in self._leased:
                waiting[key] = link
        return Known(settled, waiting)

    def offer(self, now: float, patience_s: float = 0.0) -> Offer | NotYet | None:
        """Return the best link of a host that may be asked now; None when no link is left."""
        host = self.hosts.best_due(now)
        if host is not None and patience_s > 0:
            enough = self.hosts.worth(host) + self._worth_waiting_for
            better_at = self.hosts.turns.better_soon(enough, now, patience_s)
            if better_at is not None:
                return NotYet(better_at)
        if host is None:
            if not self.hosts.with_links and not self.hosts.busy:
                return None
            return NotYet(self.hosts.next_due_at())
        at, following = self._store.first_two("queue", host.prefix)
        if at is None:
            raise AssertionError(f"host {host.name} is due without a link")
        link = self._read(at, host)
        self.hosts.take(host, at, following, now)
        self._lease_rows.changed(host)
        self._leased.add(at[-NUMBER_BYTES:])
        return Offer(link, host, at)

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link is done with; its host goes on at ``pace``."""
        self._take_out(offer.host, offer.place)
        self._release(offer, pace, now, still_queued=False)

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The fetch failed for now: the link stays queued, one try older."""
        # A link that was scored again at its turn has another priority than its place.
        self._looked_up.clear()
        priority = priority_of(offer.place)
        older = replace(offer.link, tries=offer.link.tries + 1, priority=priority)
        self._store.put("links", offer.place[-NUMBER_BYTES:], to_row(older, self._sources))
        self._release(offer, pace, now, still_queued=True)

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link was not asked for; it stays as it is."""
        self._release(offer, pace, now, still_queued=True)

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        """The offered link goes back as ``link``."""
        self._looked_up.clear()
        at = self._move(offer.place, link, offer.host)
        self._leased.discard(offer.place[-NUMBER_BYTES:])
        self._lease_rows.changed(offer.host)
        self.hosts.give_back(offer.host, now, still_queued=False)
        self.hosts.link_came(offer.host, at, now)

    def drop(self, link: QueuedLink, now: float) -> bool:
        """Take a queued link out without a fetch."""
        waiting = self._waiting_row(link.host, link.key)
        if waiting is None:
            return False
        host, old, number = waiting
        self._take_out(host, place(old.priority, int.from_bytes(number, "big")))
        self.hosts.rank(host, now)
        return True

    def drop_host(self, name: str, now: float) -> int:
        """Take all queued links of a host out."""
        host = self.hosts.known(name)
        if host is None:
            return 0
        places = [at for at in self._store.members("queue", host.prefix) if at != host.leased]
        for at in places:
            self._take_out(host, at)
        self.hosts.rank(host, now)
        return len(places)

    def forget(self, host_name: str, key: bytes) -> bool:
        """A link that left the queue may come in again."""
        host = self.hosts.known(host_name)
        self._looked_up.clear()
        number = None if host is None else self._number_of(host, key)
        if host is None or number is None or self._store.get("links", number) is not None:
            return False
        return self._store.discard("seen", host.prefix, key[:_SEEN_BYTES] + number)

    def count(self, host: Host) -> int:
        """How many links of the host are queued."""
        return self._store.size_of("queue", host.prefix)

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        """Yield the host's queued links, best first."""
        for at in self._store.members("queue", host.prefix):
            if at != host.leased:
                yield self._read(at, host)

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        """Move queued links, by URL."""
        # In the order given: hosts of equal worth are asked in the order they were placed in.
        self._looked_up.clear()
        touched: dict[Host, None] = {}
        moved = 0
        for url, priority in priorities.items():
            waiting = self._waiting_row(host_of(url), link_key(url))
            if waiting is None:
                continue
            host, link, number = waiting
            if link.priority == priority:
                continue
            old_place = place(link.priority, int.from_bytes(number, "big"))
            self._move(old_place, replace(link, priority=priority), host)
            touched[host] = None
            moved += 1
        for host in touched:
            self.hosts.rank(host, now)
        return moved

    def score_best_again(self, host: Host, again: ScoreAgain, at_most: int, now: float) -> None:
        """Move the host's best links to where ``again`` puts them."""
        self._looked_up.clear()
        best = islice(self._store.members("queue", host.prefix), at_most)
        places = [at for at in best if at != host.leased]
        rows = dict(self._store.get_many("links", [at[-NUMBER_BYTES:] for at in places]))
        links = [from_row(rows[at[-NUMBER_BYTES:]], host.name, self._sources) for at in places]
        moved = again(links, [number_of(at) for at in places])
        for at, link, then in zip(places, links, moved, strict=True):
            if then.priority != link.priority:
                self._move(at, then, host)
        self.hosts.rank(host, now)

    def save(self) -> None:
        """Write what is kept in memory into the open transaction: counters, leases."""
        self._lease_rows.save()
        self.hosts.save()
        if self._found != self._found_saved:
            self._store.put_meta("found", self._found)
            self._found_saved = self._found

    def _release(self, offer: Offer, pace: HostPace, now: float, *, still_queued: bool) -> None:
        self._leased.discard(offer.place[-NUMBER_BYTES:])
        self._lease_rows.changed(offer.host)
        offer.host.pace = pace
        self.hosts.changed(offer.host)
        self.hosts.give_back(offer.host, now, still_queued=still_queued)

    def _seen(self, host: Host, key: bytes) -> _Seen:
        number = self._number_of(host, key)
        row = None if number is None else self._store.get("links", number)
        return _Seen(number, None if row is None else from_row(row, host.name, self._sources, key))

    def _number_of(self, host: Host, key: bytes) -> bytes | None:
        """The number of the host's link with that key, None when it was never seen."""
        member = self._store.member_with("seen", host.prefix, key[:_SEEN_BYTES])
        return None if member is None else member[_SEEN_BYTES:]

    def _read(self, at: bytes, host: Host) -> QueuedLink:
        row = self._store.get("links", at[-NUMBER_BYTES:])
        if row is None:
            raise AssertionError(f"a link in the queue of host {host.name} has no row")
        return from_row(row, host.name, self._sources)

    def _waiting_row(self, host_name: str, key: bytes) -> tuple[Host, QueuedLink, bytes] | None:
        """The link with that key, its host and its number; None unless it waits."""
        host = self.hosts.known(host_name)
        if host is None:
            return None
        number = self._number_of(host, key)
        if number is None or number in self._leased:
            return None
        row = self._store.get("links", number)
        if row is None:
            return None
        return host, from_row(row, host.name, self._sources), number

    def _take_out(self, host: Host, at: bytes) -> None:
        self._looked_up.clear()
        self._store.discard("queue", host.prefix, at)
        self._store.delete("links", at[-NUMBER_BYTES:])

    def _move(self, at: bytes, link: QueuedLink, host: Host) -> bytes:
        """Write a queued link anew, where its priority belongs now; return its new place."""
        moved = place(link.priority, number_of(at))
        self._store.put("links", at[-NUMBER_BYTES:], to_row(link, self._sources))
        if moved != at:
            self._store.discard("queue", host.prefix, at)
            self._store.add("queue", host.prefix, moved)
        return moved

    def _found_again(
        self,
        link: QueuedLink,
        host: Host,
        number: bytes,
        old: QueuedLink,
        now: float,
        joined: bool,
    ) -> None:
        rises = link.priority > old.priority
        if not rises and not joined:
            return
        # A seed told nothing that could be joined: a page that links to it takes nothing from it.
        if not rises and (not old.evidence or old.evidence == link.evidence):
            return
        better = replace(
            link,
            depth=min(link.depth, old.depth),
            found_at=old.found_at,
            tries=old.tries,
            payload=old.payload,
        )
        moved = self._move(place(old.priority, int.from_bytes(number, "big")), better, host)
        if rises:
            self.hosts.link_came(host, moved, now)
        elif host.best is None or old.priority >= host.best:
            self.hosts.rank(host, now)
