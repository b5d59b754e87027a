"""The hosts of the in-memory frontier; stores nothing that can be computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from focused.frontier.host import Host, Server
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.queued_link import Exploration, QueuedLink, number_in_key


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


class PlainHosts:
    """The hosts, and the links as far as the turn of a host hangs on them."""

    def __init__(self, memory: Memory, exploration: Exploration, limits: HostLimits) -> None:
        self._memory = memory
        self._exploration = exploration
        self._limits = limits
        self._servers = {host.address: host.server for host in self if host.server is not None}
        self.looked_at = float("-inf")
        self.address_delay_s = 0.0
        self.crawls_at: Mapping[str, int] = {}

    def __len__(self) -> int:
        return len(self._memory.hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._memory.hosts.values())

    @property
    def with_links(self) -> int:
        return sum(map(self.may_be_asked_some_time, self))

    @property
    def busy(self) -> int:
        return sum(host.leased is not None or host.reserved for host in self)

    def get(self, name: str) -> Host:
        return self._memory.hosts.setdefault(name, Host(name, len(self)))

    def known(self, name: str) -> Host | None:
        return self._memory.hosts.get(name)

    def worth(self, host: Host) -> float:
        best = self.best(host)
        if best is None:
            return float("-inf")
        return best.rank + self.bonus(host)

    def bonus(self, host: Host, ahead: int = 0) -> float:
        """The exploration bonus of the host after ``ahead`` more requests."""
        return self._exploration.bonus(host.asked + ahead, host.unproductive)

    def refresh(self, host: Host, now: float) -> None:
        pass

    def reserve(self, host: Host, now: float) -> None:
        host.reserved = True

    def release_reservation(self, host: Host, now: float) -> None:
        host.reserved = False
        self.address_rests(host, now)

    def address_rests(self, host: Host, now: float) -> None:
        """The host's address has its rest, unless the host was not asked."""
        if host.server is not None and host.pace.due_at > now:
            delay_s = self.address_delay_s * self.crawls_at.get(host.server.address, 1)
            host.server.due_at = max(host.server.due_at, now + delay_s)

    def full(self) -> Iterator[Host]:
        with_links = (host for host in self if self.best(host) is not None)
        return (host for host in with_links if not self.may_be_asked_some_time(host))

    def assign_address(self, host: Host, address: str) -> None:
        if address:
            host.server = self._servers.setdefault(address, Server(address))

    def share_addresses(self, crawls: Mapping[str, int]) -> None:
        self.crawls_at = crawls

    def restore_address_delays(self, now: float) -> None:
        for host in self:
            self.address_rests(host, now)

    def count_fetched(self, host: Host) -> None:
        host.fetched += 1

    def robots(self, host: Host) -> Mapping[str, Any]:
        return self._memory.robots.get(host.name, {})

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        self._memory.robots[host.name] = {**self.robots(host), scheme: rules}

    def next_due_at(self) -> float | None:
        times = [
            self.due_at(host)
            for host in self
            if self.may_be_asked_some_time(host) and not self._is_taken(host)
        ]
        return min((time for time in times if time > self.looked_at), default=None)

    def open_at(self, now: float) -> list[Host]:
        """The hosts that may be asked now."""
        return [
            host
            for host in self
            if self.may_be_asked_some_time(host)
            and not self._is_taken(host)
            and self.due_at(host) <= now
        ]

    def open_soon(self, now: float, patience_s: float) -> list[Host]:
        """The hosts that may be asked now, and those that a link would wait for."""
        soon = self.open_at(now)
        for host in self:
            if self.may_be_asked_some_time(host) and not host.pace.failures and host not in soon:
                due_at = self.due_at(host)
                time = due_at if host.leased is None else host.leased_at + patience_s
                soon += [host] * (now < time <= now + patience_s)
        return soon

    def may_be_asked_some_time(self, host: Host) -> bool:
        """Whether the host has a link, and pages may come from it."""
        best = self.best(host)
        return best is not None and (best.is_exempt or not self.is_full(host))

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

    def is_full(self, host: Host) -> bool:
        """Whether as many pages came from the host, or its address, as may."""
        per_host, per_address = self._limits.pages_per_host, self._limits.pages_per_address
        if per_host is not None and host.fetched >= per_host:
            return True
        if per_address is None or host.server is None:
            return False
        return sum(each.fetched for each in self if each.server is host.server) >= per_address

    def _is_taken(self, host: Host) -> bool:
        """Whether the host, or another at its address, is being asked."""
        near = [each for each in self if each is host or self._stand_together(each, host)]
        return any(each.leased is not None or each.reserved for each in near)

    @staticmethod
    def _stand_together(one: Host, other: Host) -> bool:
        return one.server is not None and one.server is other.server
