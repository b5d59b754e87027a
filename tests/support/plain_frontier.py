"""An in-memory frontier for comparison: dictionaries that are scanned each time.

For at most some hundred links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from focused.frontier.disk_frontier import NO_FLOOR, Known, NotYet, Offer, ScoreAgain
from focused.frontier.host import Host, HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.queued_link import (
    NO_EXPLORATION,
    Exploration,
    QueuedLink,
    link_key,
    queue_key,
    rank_in_key,
)
from focused.web.urls import host_of
from tests.support.plain_hosts import Memory, PlainHosts


class PlainFrontier:
    """The reference; ``memory`` is what an earlier one left."""

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        worth_waiting_for: float = 0.1,
        exploration: Exploration = NO_EXPLORATION,
        limits: HostLimits | None = None,
        address_delay_s: float = 0.0,
    ) -> None:
        self.memory = memory = memory or Memory()
        self._interrupted = [
            (host, host.leased_at) for host in memory.hosts.values() if host.leased is not None
        ]
        for host, _ in self._interrupted:
            host.leased = None
        self._hosts = self.hosts = PlainHosts(memory, exploration, limits or HostLimits())
        self._worth_waiting_for = worth_waiting_for
        self._hosts.address_delay_s = address_delay_s
        self.of_equals: str | None = None
        """Of hosts that are equally good and due, the one to offer; else the first that came."""

    @property
    def found(self) -> int:
        return self.memory.found

    @property
    def interrupted(self) -> Sequence[tuple[Host, float]]:
        return self._interrupted

    def __len__(self) -> int:
        return len(self.memory.queued)

    def push(self, link: QueuedLink, now: float, *, joined: bool = False) -> bool:
        self.hosts.get(link.host)
        name = (link.host, link.key)
        if name in self.memory.seen:
            self._found_again(link, joined)
            return False
        self.memory.seen.add(name)
        self.memory.queued[name] = (link, self.memory.found)
        self.memory.found += 1
        return True

    def push_all(self, links: Iterable[QueuedLink], now: float, *, joined: bool = False) -> int:
        return sum(self.push(link, now, joined=joined) for link in links)

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        waiting = {key: self._waiting(host, key) for host, key in links}
        settled = {
            key
            for host, key in links
            if (host, key) in self.memory.seen and (host, key) not in self.memory.queued
        }
        return Known(settled, {key: found[0] for key, found in waiting.items() if found})

    def offer(
        self, now: float, patience_s: float = 0.0, floor: float = NO_FLOOR
    ) -> Offer | NotYet | None:
        hosts = self._hosts
        hosts.looked_at = now
        if not hosts.with_links and not hosts.busy:
            return None
        open_to_ask = hosts.open_at(now)
        if not open_to_ask:
            return NotYet(hosts.next_due_at())
        host = max(open_to_ask, key=self._rank)
        if hosts.worth(host) < floor:
            return NotYet(hosts.next_due_at())
        better_at = self._better_soon(hosts.worth(host), now, patience_s)
        if better_at is not None:
            return NotYet(better_at)
        link, number = hosts.in_order(host)[0]
        host.leased, host.leased_at = queue_key(link.rank, number), now
        return Offer(link, host, host.leased)

    def settle(self, offer: Offer, pace: HostPace, now: float) -> None:
        del self.memory.queued[offer.link.host, offer.link.key]
        self._release(offer.host, pace, now)

    def retry(self, offer: Offer, pace: HostPace, now: float) -> None:
        # A link that was scored again at its turn has another priority than its queue_key.
        link = offer.link.with_rank(rank_in_key(offer.queue_key))
        self._write(replace(link, tries=offer.link.tries + 1))
        self._release(offer.host, pace, now)

    def put_back(self, offer: Offer, pace: HostPace, now: float) -> None:
        self._release(offer.host, pace, now)

    def save_tries(self, offer: Offer, tries: int) -> None:
        self._write(replace(offer.link.with_rank(rank_in_key(offer.queue_key)), tries=tries))

    def requeue(self, offer: Offer, link: QueuedLink, now: float) -> None:
        self._write(link)
        self._release(offer.host, offer.host.pace, now)

    def drop(self, link: QueuedLink, now: float) -> bool:
        if self._waiting(link.host, link.key) is None:
            return False
        del self.memory.queued[link.host, link.key]
        return True

    def forget(self, host_name: str, key: bytes) -> bool:
        name = (host_name, key)
        if name in self.memory.queued or name not in self.memory.seen:
            return False
        self.memory.seen.remove(name)
        return True

    def count(self, host: Host) -> int:
        return len(self._hosts.in_order(host, leased_too=True))

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        return (link for link, _ in self._hosts.in_order(host))

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        moved = 0
        for url, priority in priorities.items():
            found = self._waiting(host_of(url), link_key(url))
            if found is not None and found[0].priority != priority:
                self._write(replace(found[0], priority=priority))
                moved += 1
        return moved

    def rescore_best(self, host: Host, again: ScoreAgain, ranks: range, now: float) -> None:
        for link, number in self._hosts.in_order(host, leased_too=True)[ranks.start : ranks.stop]:
            if not self._hosts.is_leased(host, number):
                (moved,) = again([link], [number])
                if moved.priority != link.priority:
                    self._write(moved)

    def best_priorities(self, limit: int, now: float, patience_s: float = 0.0) -> Sequence[float]:
        best = [
            link.rank + self._hosts.bonus(host, ahead)
            for host in self._hosts.open_soon(now, patience_s)
            for ahead, (link, _) in enumerate(self._hosts.in_order(host))
        ]
        return sorted(best, reverse=True)[:limit]

    def save(self) -> None:
        pass

    def _rank(self, host: Host) -> tuple[float, float, bool, int]:
        """Best by worth, then the one that is due longest."""
        worth = self.hosts.worth(host)
        return worth, -host.pace.due_at, host.name == self.of_equals, -host.number

    def _better_soon(self, worth: float, now: float, patience_s: float) -> float | None:
        """When to look again for a host that is clearly better; None: do not wait."""
        times = []
        for host in self.hosts:
            clearly = self.hosts.worth(host) > worth + self._worth_waiting_for
            if not clearly or host.pace.failures or not self._hosts.may_be_asked_some_time(host):
                continue
            due_at = self._hosts.due_at(host)
            time = due_at if host.leased is None else host.leased_at + patience_s
            if now < time <= now + patience_s:
                times.append(time)
        return min(times, default=None)

    def _release(self, host: Host, pace: HostPace, now: float) -> None:
        host.leased, host.pace = None, pace
        # A host that is due already was not asked: its neighbours need not wait either.
        self._hosts.address_rests(host, now)

    def _waiting(self, host_name: str, key: bytes) -> tuple[QueuedLink, int] | None:
        found = self.memory.queued.get((host_name, key))
        if found is None or self._hosts.is_leased(self.hosts.get(host_name), found[1]):
            return None
        return found

    def _write(self, link: QueuedLink) -> None:
        _, number = self.memory.queued[link.host, link.key]
        self.memory.queued[link.host, link.key] = (link, number)

    def _found_again(self, link: QueuedLink, joined: bool) -> None:
        found = self._waiting(link.host, link.key)
        if found is None:
            return
        old, _ = found
        told_more = joined and bool(old.features) and old.features != link.features
        if link.rank > old.rank or told_more:
            kept = {"found_at": old.found_at, "tries": old.tries, "payload": old.payload}
            self._write(replace(link, depth=min(link.depth, old.depth), **kept))
