"""The hosts of a frontier: what is known of each, and the turn of each.

Held in memory, some hundred bytes each, and written through to the tables; what may be long,
the rules of their robots.txt, is on disk alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from focused.frontier.host import Host, Server, host_to_row, restore_host
from focused.frontier.host_scheduler import HostLimits, HostScheduler
from focused.frontier.priorities import NO_EXPLORATION, Exploration
from focused.frontier.queued_link import priority_in_key
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables


class HostTable:
    """All hosts of a crawl, and the order in which they may be asked."""

    def __init__(
        self,
        tables: Tables,
        exploration: Exploration = NO_EXPLORATION,
        limits: HostLimits | None = None,
        address_delay_s: float = 0.0,
        address_delay_of: Callable[[str], float] | None = None,
    ) -> None:
        """``address_delay_s``: the pause between fetches from hosts at one address.

        ``address_delay_of``: the same by the name of the host asked last, where hosts differ.
        """
        self._tables = tables
        self._address_delay_of = address_delay_of or (lambda _: address_delay_s)
        self._by_name: dict[str, Host] = {}
        self._servers: dict[str, Server] = {}
        self._changed: dict[Host, None] = {}
        self.turns = HostScheduler(exploration, limits)
        self._load()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_name.values())

    @property
    def with_links(self) -> int:
        """How many hosts have links that may be asked for, now or later."""
        return self.turns.in_turn

    @property
    def busy(self) -> int:
        """How many hosts are being asked."""
        return self.turns.busy

    def worth(self, host: Host) -> float:
        """The priority of the host's best link, and what is hoped of the host."""
        return self.turns.worth(host)

    def get(self, name: str) -> Host:
        """Return the host, a new one when it was unknown."""
        host = self._by_name.get(name)
        if host is None:
            host = Host(name, len(self._by_name))
            # First: a name that cannot be written must not take a number.
            self._tables.put("host_ids", name.encode(), host.prefix)
            self._by_name[name] = host
        return host

    def known(self, name: str) -> Host | None:
        """Return the host, or None."""
        return self._by_name.get(name)

    def full(self) -> Iterator[Host]:
        """Yield the hosts that have links, but whose budget of pages is spent."""
        return (host for host in self if host.best is not None and not host.in_turn)

    def assign_address(self, host: Host, address: str) -> None:
        """The host was found at that address: it shares its server's turn from now on."""
        if not address or host.address == address:
            return
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = Server(address)
        self.turns.move(host, server)
        self.changed(host)

    def restore_address_delays(self, now: float) -> None:
        """A new process begins: who rests may have been asked just now, at its address.

        Linear in hosts.
        """
        for host in self:
            # No rest of an address is longer than its host's, which alone is kept.
            self.turns.rest(host, min(host.pace.due_at, self._address_due_at(host, now)))

    def count_fetched(self, host: Host) -> None:
        """A page came from the host."""
        self.turns.count_fetched(host)
        self.changed(host)

    def robots(self, host: Host) -> Mapping[str, Any]:
        """The state of the host's robots.txt rules by scheme, as :meth:`keep_robots` was given."""
        raw = self._tables.get("robots", host.prefix)
        found: Mapping[str, Any] = {} if raw is None else unpack(raw)
        return found

    def keep_robots(self, host: Host, scheme: str, rules: Any) -> None:
        """Keep the state of the host's rules for a scheme."""
        self._tables.put("robots", host.prefix, pack({**self.robots(host), scheme: rules}))

    def refresh(self, host: Host, now: float) -> None:
        """Give the host its queue_key again after its pace or its counts were changed."""
        self.changed(host)
        self.rank(host, now)

    def rank(self, host: Host, now: float) -> None:
        """Give the host its queue_key again after links of its queue left or moved."""
        first, second = self._tables.first_two("queue", host.prefix)
        self._set_best(host, second if first == host.leased else first)
        self.turns.schedule(host, now)

    def link_came(self, host: Host, queue_key: bytes, now: float) -> None:
        """A link came into the host's queue, or moved up in it."""
        if _ranks_before(queue_key, host):
            self._set_best(host, queue_key)
            self.turns.schedule(host, now)

    def take(self, host: Host, queue_key: bytes, following: bytes | None, now: float) -> None:
        """The best link is under way: its host is offered to nobody else.

        ``following`` is the queue_key of the host's next best, if there is one.
        """
        host.leased = queue_key
        host.leased_at = now
        self.turns.take(host)
        self._set_best(host, following)
        self.turns.schedule(host, now)

    def end_lease(self, host: Host, now: float, *, still_queued: bool) -> None:
        """The fetch is over; its link left the queue, or not."""
        leased, host.leased = host.leased, None
        if host.reserved:
            self.turns.rest(host, self._address_due_at(host, now))
        else:
            self.turns.release(host, self._address_due_at(host, now))
        if still_queued and leased is not None and _ranks_before(leased, host):
            self._set_best(host, leased)
        self.turns.schedule(host, now)

    def reserve(self, host: Host, now: float) -> None:
        """The host is offered to nobody until :meth:`release_reservation`: a request past the frontier waits."""
        if not host.reserved and host.leased is None:
            self.turns.take(host)
        host.reserved = True
        self.turns.schedule(host, now)

    def release_reservation(self, host: Host, now: float) -> None:
        """The request past the frontier is over; the host goes on at its pace."""
        host.reserved = False
        if host.leased is None:
            self.turns.release(host, self._address_due_at(host, now))
        else:
            self.turns.rest(host, self._address_due_at(host, now))
        self.refresh(host, now)

    def changed(self, host: Host) -> None:
        """What is kept of the host is another now: its row is due."""
        self._changed[host] = None

    def save(self) -> None:
        """Write the rows that are due into the open transaction."""
        for host in self._changed:
            self._tables.put("hosts", host.prefix, host_to_row(host))
        self._changed.clear()

    def best_due(self, now: float) -> Host | None:
        """Return the free host that may be asked now and has the best link, or None."""
        return self.turns.best_due(now)

    def next_due_at(self) -> float | None:
        """Return when the first waiting host falls due; None when none waits."""
        return self.turns.next_due_at()

    def _address_due_at(self, host: Host, now: float) -> float:
        # A host that is due already was not asked: its neighbours need not wait either.
        asked = host.pace.due_at > now
        return now + self._address_delay_of(host.name) if asked else now

    def _set_best(self, host: Host, queue_key: bytes | None) -> None:
        host.best = None if queue_key is None else priority_in_key(queue_key)

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
    return host.best is None or priority_in_key(queue_key) > host.best
