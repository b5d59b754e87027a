"""The frontier: links come in once, and leave when their host may be asked.

See the package docstring for the flow. The store's queue holds one row per
link under ``host number | descending priority | order found``, so the best
link of a host is the first row under its number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from focused.frontier.exploration import NONE, Exploration
from focused.frontier.hosts import Host, HostTable
from focused.frontier.politeness import HostPace
from focused.frontier.queued import (
    QueuedLink,
    descending,
    from_bytes,
    link_key,
    priority_of,
    to_bytes,
)
from focused.frontier.store import StateStore

_DONE = b"d"
_QUEUED = b"q"
_FOUND = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Offer:
    """The best link that may be fetched now, still in its queue until settled."""

    link: QueuedLink
    host: Host
    queue_key: bytes

    @property
    def found(self) -> int:
        """The link's place in the order of discovery."""
        return _found_of(self.queue_key)


@dataclass(frozen=True, slots=True)
class NotYet:
    """No link may be fetched before ``until``; None: only when a fetch under way ends."""

    until: float | None


class Frontier:
    """Two-level queue over a :class:`StateStore`; one owner, no threads.

    The caller commits the store; every method leaves it in a state that may
    be committed.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        worth_waiting_for: float = 0.1,
        exploration: Exploration = NONE,
    ) -> None:
        """Both in priority: see :meth:`offer`, :meth:`HostTable.worth`."""
        self._store = store
        self._worth_waiting_for = worth_waiting_for
        self.hosts = HostTable(store, exploration)
        self._found = int(store.get_meta("found") or 0)
        self._found_saved = self._found
        self._leased: set[bytes] = set()

    def __len__(self) -> int:
        return self._store.count("queue")

    @property
    def found(self) -> int:
        """How many links ever came in: the next link's place in the order of discovery."""
        return self._found

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        """Queue a link; True when it is new (the URL-seen test, exact).

        A link that waits already is moved up when ``link`` has the higher
        priority, keeping the shorter way (depth) to it; with ``joined``, when
        ``link`` holds what the waiting one told, it takes its place whatever
        the priority.
        """
        state = self._store.get("seen", link.key)
        if state is not None:
            self._found_again(link, state, now, joined)
            return False
        host = self.hosts.get(link.host)
        queue_key = self._queue_key(host, link.priority, self._found)
        self._write(link, queue_key)
        self._found += 1
        self.hosts.link_came(host, queue_key, now)
        return True

    def settled_among(self, keys: Sequence[bytes]) -> Set[bytes]:
        """Those of the keys whose links came in and left again: they come in no more."""
        return {key for key, state in self._store.get_many("seen", keys) if state == _DONE}

    def waiting_among(self, keys: Sequence[bytes]) -> Mapping[bytes, QueuedLink]:
        """Those of the keys' links that are queued and not under way, by key."""
        queued = {
            state[1:]: key
            for key, state in self._store.get_many("seen", keys)
            if state.startswith(_QUEUED) and key not in self._leased
        }
        rows = self._store.get_many("queue", list(queued))
        return {queued[queue_key]: from_bytes(raw) for queue_key, raw in rows}

    def offer(self, now: float, patience_s: float = 0.0) -> Offer | NotYet | None:
        """Return the best link that may be asked for now; None when none is left.

        With ``patience_s`` a link waits while one that is better by
        ``worth_waiting_for`` falls due within that time. The offered host
        is taken until :meth:`settle`, :meth:`retry` or :meth:`put_back`.
        """
        host = self.hosts.best_due(now)
        if host is not None and patience_s > 0 and host.best is not None:
            enough = self.hosts.worth(host) + self._worth_waiting_for
            better_at = self.hosts.better_soon(enough, now, patience_s)
            if better_at is not None:
                return NotYet(better_at)
        if host is None:
            if not self.hosts.with_links and not self.hosts.busy:
                return None
            return NotYet(self.hosts.next_due_at())
        row = self._store.first("queue", host.prefix)
        if row is None:
            raise AssertionError(f"host {host.name} is due without a link")
        queue_key, value, following = row
        link = from_bytes(value)
        self.hosts.take(host, queue_key, following, now)
        self._leased.add(link.key)
        return Offer(link, host, queue_key)

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link is done with, whatever came of it; its host goes on at ``pace``."""
        self._store.delete("queue", offer.queue_key)
        self._store.put("seen", offer.link.key, _DONE)
        self._release(offer, pace, now, still_queued=False)

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The fetch failed for now: the link stays queued, one try older."""
        # A link that was scored again at its turn has another priority than its row's key.
        priority = priority_of(offer.queue_key)
        older = replace(offer.link, tries=offer.link.tries + 1, priority=priority)
        self._store.put("queue", offer.queue_key, to_bytes(older))
        self._release(offer, pace, now, still_queued=True)

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        """The link was not asked for; it stays as it is."""
        self._release(offer, pace, now, still_queued=True)

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        """The offered link goes back under another priority: ``link``'s."""
        queue_key = self._move(offer.queue_key, link, offer.host)
        self._leased.discard(link.key)
        self.hosts.give_back(offer.host, now, still_queued=False)
        self.hosts.link_came(offer.host, queue_key, now)

    def drop(self, link: QueuedLink, now: float) -> None:
        """Take a queued link out without a fetch; it stays seen."""
        state = self._store.get("seen", link.key)
        if state is None or not state.startswith(_QUEUED) or link.key in self._leased:
            return
        host = self.hosts.get(link.host)
        self._store.delete("queue", state[1:])
        self._store.put("seen", link.key, _DONE)
        self.hosts.refresh(host, now)

    def drop_host(self, name: str, now: float) -> int:
        """Take all queued links of a host out without a fetch; return how many.

        They stay seen; a link under way is left alone.
        """
        host = self.hosts.known(name)
        if host is None:
            return 0
        links = list(self.waiting(host))
        for link in links:
            self.drop(link, now)
        return len(links)

    def forget(self, key: bytes) -> bool:
        """A link that left the queue may come in again, as if it was never seen.

        For pages that vanished, and links that were dropped by mistake. False
        when the link is queued, or was never seen.
        """
        return self._store.get("seen", key) == _DONE and self._store.delete("seen", key)

    def count(self, host: Host) -> int:
        """How many links of the host are queued, one under way included."""
        return sum(1 for _ in self._store.scan("queue", host.prefix))

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        """Yield the host's queued links, best first, but for one under way; do not write meanwhile."""
        for _, raw in self._store.scan("queue", host.prefix):
            link = from_bytes(raw)
            if link.key not in self._leased:
                yield link

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        """Move queued links, by normalised URL, up or down; return how many were moved.

        Links that are not queued, or under way, are passed over.
        """
        # In the order given: hosts of equal worth are asked in the order they were placed in.
        touched: dict[Host, None] = {}
        moved = 0
        for url, priority in priorities.items():
            key = link_key(url)
            state = self._store.get("seen", key)
            if state is None or not state.startswith(_QUEUED) or key in self._leased:
                continue
            old_key = state[1:]
            if priority_of(old_key) == priority:
                continue
            raw = self._store.get("queue", old_key)
            if raw is None:
                continue
            link = replace(from_bytes(raw), priority=priority)
            host = self.hosts.get(link.host)
            self._move(old_key, link, host)
            touched[host] = None
            moved += 1
        for host in touched:
            self.hosts.refresh(host, now)
        return moved

    def score_best_again(
        self, host: Host, again: Callable[[QueuedLink, int], QueuedLink], at_most: int, now: float
    ) -> None:
        """Move the host's best links, ``at_most`` so many, to where ``again`` puts them.

        ``again`` is given a link and its place in the order of discovery, and
        returns the link with what is known of it now.
        """
        best = list(islice(self._store.scan("queue", host.prefix), at_most))
        for queue_key, raw in best:
            link = from_bytes(raw)
            if link.key in self._leased:
                continue
            moved = again(link, _found_of(queue_key))
            if moved.priority != link.priority:
                self._move(queue_key, moved, host)
        self.hosts.refresh(host, now)

    def save(self) -> None:
        """Write the counters that are kept in memory into the open transaction."""
        if self._found != self._found_saved:
            self._store.put_meta("found", self._found)
            self._found_saved = self._found

    def _release(self, offer: Offer, pace: HostPace, now: float, *, still_queued: bool) -> None:
        self._leased.discard(offer.link.key)
        offer.host.pace = pace
        self.hosts.save(offer.host)
        self.hosts.give_back(offer.host, now, still_queued=still_queued)

    def _queue_key(self, host: Host, priority: float, found: int) -> bytes:
        return host.prefix + descending(priority) + _FOUND.pack(found)

    def _move(self, queue_key: bytes, link: QueuedLink, host: Host) -> bytes:
        """Put a queued link's row where its priority belongs now; return its new key."""
        moved_key = self._queue_key(host, link.priority, _found_of(queue_key))
        self._store.delete("queue", queue_key)
        self._write(link, moved_key)
        return moved_key

    def _write(self, link: QueuedLink, queue_key: bytes) -> None:
        self._store.put("queue", queue_key, to_bytes(link))
        self._store.put("seen", link.key, _QUEUED + queue_key)

    def _found_again(self, link: QueuedLink, state: bytes, now: float, joined: bool) -> None:
        # A link under way keeps its row: settling it must find the key it was offered with.
        if not state.startswith(_QUEUED) or link.key in self._leased:
            return
        rises = descending(link.priority) < state[5:13]  # the queue key's own priority
        if not rises and not joined:
            return
        queue_key = state[1:]
        raw = self._store.get("queue", queue_key)
        if raw is None:
            return
        old = from_bytes(raw)
        # A seed told nothing that could be joined: a page that links to it takes nothing from it.
        if not rises and (not old.evidence or old.evidence == link.evidence):
            return
        host = self.hosts.get(old.host)
        better = replace(
            link,
            depth=min(link.depth, old.depth),
            found_at=old.found_at,
            tries=old.tries,
            payload=old.payload,
        )
        moved_key = self._move(queue_key, better, host)
        if rises:
            self.hosts.link_came(host, moved_key, now)
        else:
            self.hosts.refresh(host, now)


def _found_of(queue_key: bytes) -> int:
    (found,) = _FOUND.unpack(queue_key[12:])
    return int(found)
