"""All hosts of a frontier, in memory (some hundred bytes each) and written through to the tables.

Robots.txt rules, which may be long, are only on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from focused.frontier.host import Host, Server, host_to_row, restore_host
from focused.frontier.host_scheduler import HostLimits, HostScheduler
from focused.frontier.queued_link import EXEMPT_RANK, NO_EXPLORATION, Exploration, rank_in_key
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables


class HostTable:
    """The hosts of a crawl and their scheduler."""

    def __init__(
        self,
        tables: Tables,
        exploration: Exploration = NO_EXPLORATION,
        limits: HostLimits | None = None,
        address_delay_s: float = 0.0,
        address_delay_of: Callable[[str], float] | None = None,
    ) -> None:
        """``address_delay_of`` replaces ``address_delay_s`` by a delay for each host."""
        self._tables = tables
        self._address_delay_of = address_delay_of or (lambda _: address_delay_s)
        self._by_name: dict[str, Host] = {}
        self._servers: dict[str, Server] = {}
        self._changed: dict[Host, None] = {}
        self._crawls_at: Mapping[str, int] = {}
        self.turns = HostScheduler(exploration, limits)
        self._load()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_name.values())

    @property
    def with_links(self) -> int:
        """The number of hosts with links and budget left."""
        return self.turns.in_turn

    @property
    def busy(self) -> int:
        """The number of hosts with a request in flight."""
        return self.turns.busy

    def worth(self, host: Host) -> float:
        """The priority of the host: that of its best link plus its exploration bonus."""
        return self.turns.worth(host)

    def get(self, name: str) -> Host:
        """Return the host; an unknown one is created."""
        host = self._by_name.get(name)
        if host is None:
            host = Host(name, len(self._by_name))
            # First, because a name that cannot be written must not take a number.
            self._tables.put("host_ids", name.encode(), host.prefix)
            self._by_name[name] = host
        return host

    def known(self, name: str) -> Host | None:
        """Return the host, or None."""
        return self._by_name.get(name)

    def is_full(self, host: Host) -> bool:
        """Whether the host, or its address, has no budget left."""
        return self.turns.is_full(host)

    def full(self) -> Iterator[Host]:
        """Yield the hosts that have links but no budget left."""
        return (host for host in self if host.best is not None and not host.in_turn)

    def assign_address(self, host: Host, address: str) -> None:
        """Move the host to the server at ``address``."""
        if not address or host.address == address:
            return
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = Server(address)
        self.turns.move(host, server)
        self.changed(host)

    def share_addresses(self, crawls: Mapping[str, int]) -> None:
        """Set how many crawls have hosts at an address: each waits so many times the delay."""
        self._crawls_at = crawls

    def restore_address_delays(self, now: float) -> None:
        """Delay the servers of hosts that are not due, as a new process begins. Linear in hosts."""
        for host in self:
            # Only the host's pause is stored, and the server's is never longer.
            self.turns.rest(host, min(host.pace.due_at, self._address_due_at(host, now)))

    def count_fetched(self, host: Host) -> None:
        """Count a page of the host."""
        self.turns.count_fetched(host)
        self.changed(host)

    def robots(self, host: Host) -> Mapping[str, Any]:
        """Return the host's robots.txt rules by scheme."""
        raw = self._tables.get("robots", host.prefix)
        found: Mapping[str, Any] = {} if raw is None else unpack(raw)
        return found

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        """Store the host's robots.txt rules for a scheme."""
        self._tables.put("robots", host.prefix, pack({**self.robots(host), scheme: rules}))

    def refresh(self, host: Host, now: float) -> None:
        """Store and schedule the host after its pace or counts changed."""
        self.changed(host)
        self.rank(host, now)

    def rank(self, host: Host, now: float) -> None:
        """Schedule the host after links of its queue left or moved."""
        first, second = self._tables.first_two("queue", host.prefix)
        self._set_best(host, second if first == host.leased else first)
        self.turns.schedule(host, now)

    def link_came(self, host: Host, queue_key: bytes, now: float) -> None:
        """Schedule the host if a link that came or moved is its best."""
        if _ranks_before(queue_key, host):
            self._set_best(host, queue_key)
            self.turns.schedule(host, now)

    def take(self, host: Host, queue_key: bytes, following: bytes | None, now: float) -> None:
        """Mark the best link as in flight; ``following`` is the queue key of the next best."""
        host.leased = queue_key
        host.leased_at = now
        self.turns.take(host)
        self._set_best(host, following)
        self.turns.schedule(host, now)

    def end_lease(self, host: Host, now: float, *, still_queued: bool) -> None:
        """End the fetch in flight."""
        leased, host.leased = host.leased, None
        if host.reserved:
            self.turns.rest(host, self._address_due_at(host, now))
        else:
            self.turns.release(host, self._address_due_at(host, now))
        if still_queued and leased is not None and _ranks_before(leased, host):
            self._set_best(host, leased)
        self.turns.schedule(host, now)

    def reserve(self, host: Host, now: float) -> None:
        """Reserve the host for a direct request: it is offered to nobody."""
        if not host.reserved and host.leased is None:
            self.turns.take(host)
        host.reserved = True
        self.turns.schedule(host, now)

    def release_reservation(self, host: Host, now: float) -> None:
        """End the direct request; the host continues at its pace."""
        host.reserved = False
        if host.leased is None:
            self.turns.release(host, self._address_due_at(host, now))
        else:
            self.turns.rest(host, self._address_due_at(host, now))
        self.refresh(host, now)

    def changed(self, host: Host) -> None:
        """Note that the host's row has to be written."""
        self._changed[host] = None

    def save(self) -> None:
        """Write the changed rows into the open transaction."""
        for host in self._changed:
            self._tables.put("hosts", host.prefix, host_to_row(host))
        self._changed.clear()

    def best_due(self, now: float) -> Host | None:
        """Return the due, free host with the highest priority, or None."""
        return self.turns.best_due(now)

    def next_due_at(self) -> float | None:
        """Return when the first waiting host is due, or None."""
        return self.turns.next_due_at()

    def _address_due_at(self, host: Host, now: float) -> float:
        # A host that is due was not requested, so its server needs no delay.
        was_requested = host.pace.due_at > now
        crawls = self._crawls_at.get(host.address, 1)
        return now + crawls * self._address_delay_of(host.name) if was_requested else now

    def _set_best(self, host: Host, queue_key: bytes | None) -> None:
        host.best = None if queue_key is None else rank_in_key(queue_key)
        host.best_is_exempt = host.best is not None and host.best >= EXEMPT_RANK

    def _load(self) -> None:
        by_prefix = {}
        for name, prefix in self._tables.scan("host_ids"):
            host = Host(name.decode(), int.from_bytes(prefix, "big"))
            self._by_name[host.name] = by_prefix[prefix] = host
        for prefix, row in self._tables.scan("hosts"):
            host = self._host_by_prefix(by_prefix, prefix, "hosts")
            self.assign_address(host, restore_host(host, row))
        for prefix, queue_key in self._tables.first_members("queue"):
            host = self._host_by_prefix(by_prefix, prefix, "queue")
            self._set_best(host, queue_key)
            self.turns.schedule(host, float("-inf"))
        self._changed.clear()

    def _host_by_prefix(self, hosts: Mapping[bytes, Host], prefix: bytes, table: str) -> Host:
        host = hosts.get(prefix)
        if host is None:
            raise self._tables.damaged(table, f"host number {prefix.hex()} has no name")
        return host


def _ranks_before(queue_key: bytes, host: Host) -> bool:
    return host.best is None or rank_in_key(queue_key) > host.best
