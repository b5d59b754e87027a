"""An in-memory frontier for comparison: dictionaries that are scanned each time.

It stores nothing that can be computed, and is for some hundred links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from focused.frontier.disk_frontier import Known, NotYet, Offer, ScoreAgain
from focused.frontier.host import Host, Server
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.queued_link import (
    Exploration,
    QueuedLink,
    link_key,
    number_in_key,
    queue_key,
    rank_in_key,
)
from focused.web.urls import host_of

WORTH_WAITING_FOR = 0.1
"""By so much must a link be better for a worse one to wait; that of ``DiskFrontier``."""


@dataclass
class Memory:
    """All that outlives a process."""

    found: int = 0
    hosts: dict[str, Host] = field(default_factory=dict)
    robots: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: set[tuple[str, bytes]] = field(default_factory=set)
    queued: dict[tuple[str, bytes], tuple[QueuedLink, int]] = field(default_factory=dict)
    """By host's name and key: the link, and its number in the order of discovery."""

    def after_a_crash(self) -> Memory:
        """What another process finds; how long ago an address was asked is not kept."""
        kept = deepcopy(self)
        servers: dict[str, Server] = {}
        for host in kept.hosts.values():
            if host.server is not None:
                host.server = servers.setdefault(host.address, Server(host.address))
        return kept


class ReferenceHosts:
    """The hosts, and the links as far as the turn of a host hangs on them."""

    def __init__(
        self, memory: Memory, exploration: Exploration, limits: HostLimits, address_delay_s: float
    ) -> None:
        self._memory = memory
        self._exploration = exploration
        self._limits = limits
        self._address_delay_s = address_delay_s
        self._servers = {host.address: host.server for host in self if host.server is not None}

    def __len__(self) -> int:
        return len(self._memory.hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._memory.hosts.values())

    @property
    def with_links(self) -> int:
        return sum(map(self.may_be_asked_some_time, self))

    @property
    def busy(self) -> int:
        return sum(host.leased is not None for host in self)

    def get(self, name: str) -> Host:
        return self._memory.hosts.setdefault(name, Host(name, len(self)))

    def known(self, name: str) -> Host | None:
        return self._memory.hosts.get(name)

    def worth(self, host: Host) -> float:
        best = self.best(host)
        if best is None:
            return float("-inf")
        return best.rank + self._exploration.bonus(host.asked, host.unproductive)

    def refresh(self, host: Host, now: float) -> None:
        """Nothing is stored that would have to be computed again."""

    def address_rests(self, host: Host, now: float) -> None:
        """Let the host's address rest, unless the host was not asked."""
        if host.server is not None and host.pace.due_at > now:
            host.server.due_at = max(host.server.due_at, now + self._address_delay_s)

    def full(self) -> Iterator[Host]:
        with_links = (host for host in self if self.best(host) is not None)
        return (host for host in with_links if not self.may_be_asked_some_time(host))

    def assign_address(self, host: Host, address: str) -> None:
        host.server = self._servers.setdefault(address, Server(address))

    def count_fetched(self, host: Host) -> None:
        host.fetched += 1

    def robots(self, host: Host) -> Mapping[str, Any]:
        return self._memory.robots.get(host.name, {})

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        self._memory.robots[host.name] = {**self.robots(host), scheme: rules}

    def next_due_at(self, after: float) -> float | None:
        """When the next host falls due that is not asked now."""
        times = [
            self.due_at(host)
            for host in self
            if self.may_be_asked_some_time(host) and not self._is_taken(host)
        ]
        return min((time for time in times if time > after), default=None)

    def open_at(self, now: float) -> list[Host]:
        """The hosts that may be asked now."""
        return [
            host
            for host in self
            if self.may_be_asked_some_time(host)
            and not self._is_taken(host)
            and self.due_at(host) <= now
        ]

    def may_be_asked_some_time(self, host: Host) -> bool:
        """Whether the host has a link, and pages may come from it."""
        return self.best(host) is not None and not self._is_full(host)

    def due_at(self, host: Host) -> float:
        """When the host and its address may be asked again."""
        return max(host.pace.due_at, 0.0 if host.server is None else host.server.due_at)

    def best(self, host: Host) -> QueuedLink | None:
        """The host's best link that is not under way."""
        return next((link for link, _ in self.in_order(host)), None)

    def in_order(self, host: Host, *, leased_too: bool = False) -> list[tuple[QueuedLink, int]]:
        """The host's links with their numbers, best first."""
        found = [
            (link, number)
            for link, number in self._memory.queued.values()
            if link.host == host.name and (leased_too or not self.is_leased(host, number))
        ]
        return sorted(found, key=lambda each: (-each[0].rank, each[1]))

    def is_leased(self, host: Host, number: int) -> bool:
        """Whether the host's link of that number is under way."""
        return host.leased is not None and number_in_key(host.leased) == number

    def _is_full(self, host: Host) -> bool:
        """Whether as many pages came from the host, or its address, as may."""
        per_host, per_address = self._limits.pages_per_host, self._limits.pages_per_address
        if per_host is not None and host.fetched >= per_host:
            return True
        if per_address is None or host.server is None:
            return False
        return sum(each.fetched for each in self if each.server is host.server) >= per_address

    def _is_taken(self, host: Host) -> bool:
        """Whether the host, or another at its address, is being asked."""
        near = (each for each in self if each is host or each.server is host.server is not None)
        return any(each.leased is not None for each in near)


class ReferenceFrontier:
    """The reference; ``memory`` is what an earlier one left."""

    def __init__(
        self,
        memory: Memory,
        *,
        exploration: Exploration,
        limits: HostLimits,
        address_delay_s: float,
    ) -> None:
        self.memory = memory
        self.interrupted = [
            (host, host.leased_at) for host in memory.hosts.values() if host.leased is not None
        ]
        for host, _ in self.interrupted:
            host.leased = None
        self.hosts = ReferenceHosts(memory, exploration, limits, address_delay_s)
        self.of_equals: str | None = None
        """Of hosts that are equally good and due, the one to offer; else the first that came."""

    @property
    def found(self) -> int:
        return self.memory.found

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

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        waiting = {key: self._waiting(host, key) for host, key in links}
        settled = {
            key
            for host, key in links
            if (host, key) in self.memory.seen and (host, key) not in self.memory.queued
        }
        return Known(settled, {key: found[0] for key, found in waiting.items() if found})

    def offer(self, now: float, patience_s: float = 0.0) -> Offer | NotYet | None:
        hosts = self.hosts
        if not hosts.with_links and not hosts.busy:
            return None
        open_to_ask = hosts.open_at(now)
        if not open_to_ask:
            return NotYet(hosts.next_due_at(now))
        host = max(open_to_ask, key=self._rank)
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
        return len(self.hosts.in_order(host, leased_too=True))

    def waiting(self, host: Host) -> Iterator[QueuedLink]:
        return (link for link, _ in self.hosts.in_order(host))

    def reprioritise(self, priorities: Mapping[str, float], now: float) -> int:
        moved = 0
        for url, priority in priorities.items():
            found = self._waiting(host_of(url), link_key(url))
            if found is not None and found[0].priority != priority:
                self._write(replace(found[0], priority=priority))
                moved += 1
        return moved

    def rescore_best(self, host: Host, again: ScoreAgain, ranks: range, now: float) -> None:
        for link, number in self.hosts.in_order(host, leased_too=True)[ranks.start : ranks.stop]:
            if not self.hosts.is_leased(host, number):
                (moved,) = again([link], [number])
                if moved.priority != link.priority:
                    self._write(moved)

    def _rank(self, host: Host) -> tuple[float, float, bool, int]:
        """Best by worth, then the one that is due longest."""
        worth = self.hosts.worth(host)
        return worth, -host.pace.due_at, host.name == self.of_equals, -host.number

    def _better_soon(self, worth: float, now: float, patience_s: float) -> float | None:
        """When to look again for a host that is clearly better; None: do not wait."""
        times = []
        for host in self.hosts:
            clearly = self.hosts.worth(host) > worth + WORTH_WAITING_FOR
            if not clearly or host.pace.failures or not self.hosts.may_be_asked_some_time(host):
                continue
            due_at = self.hosts.due_at(host)
            time = due_at if host.leased is None else host.leased_at + patience_s
            if now < time <= now + patience_s:
                times.append(time)
        return min(times, default=None)

    def _release(self, host: Host, pace: HostPace, now: float) -> None:
        host.leased, host.pace = None, pace
        # A host that is due already was not asked: its neighbours need not wait either.
        self.hosts.address_rests(host, now)

    def _waiting(self, host_name: str, key: bytes) -> tuple[QueuedLink, int] | None:
        found = self.memory.queued.get((host_name, key))
        if found is None or self.hosts.is_leased(self.hosts.get(host_name), found[1]):
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
        features_changed = joined and bool(old.features) and old.features != link.features
        if link.rank > old.rank or features_changed:
            kept = {"found_at": old.found_at, "tries": old.tries, "payload": old.payload}
            self._write(replace(link, depth=min(link.depth, old.depth), **kept))
