"""Schedules hosts: a heap of hosts by due time, and one of due hosts by priority.

Both heaps use lazy deletion: an entry counts only while its stamp is its host's latest. A host
whose server is busy or not due is moved to the server when it reaches the top, and the server's
best such host returns when the server is free. So a thousand hosts at one address cost no more than
one. The host's best link comes from :class:`focused.frontier.disk_frontier.DiskFrontier`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from focused.frontier.host import Host, Server
from focused.frontier.queued_link import NO_EXPLORATION, Exploration

_DueEntry = tuple[float, float, int, Host]
"""-priority, due at, stamp, host."""
_WaitingEntry = tuple[float, int, Host | Server]
"""Due at, stamp, host or server."""
_MAX_STALE_ENTRIES = 1_024
_MAX_INSPECTED = 256
_TIME_UNKNOWN = float("-inf")
"""A ``now`` that schedules the host for its due time, or for the next call."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The limits of pages per host and per address; None: no limit."""

    pages_per_host: int | None = None
    pages_per_address: int | None = None

    def reached(self, host: Host) -> bool:
        """Whether the host may bring no further page."""
        if self.pages_per_host is not None and host.fetched >= self.pages_per_host:
            return True
        most, server = self.pages_per_address, host.server
        return most is not None and server is not None and server.fetched >= most


class HostScheduler:
    """Decides which host is requested next."""

    def __init__(
        self, exploration: Exploration = NO_EXPLORATION, limits: HostLimits | None = None
    ) -> None:
        self._exploration = exploration
        self._limits = limits or HostLimits()
        self._waiting: list[_WaitingEntry] = []
        self._due: list[_DueEntry] = []
        self._stamps = 0
        self.in_turn = 0
        """The number of hosts with links and budget left."""
        self._busy: set[Host] = set()

    @property
    def busy(self) -> int:
        """The number of hosts with a request in flight."""
        return len(self._busy)

    def worth(self, host: Host) -> float:
        """The priority of the host: the rank of its best link plus its exploration bonus."""
        return float("-inf") if host.best is None else host.best + host.bonus

    def is_full(self, host: Host) -> bool:
        """Whether the host, or its address, has no budget left."""
        return self._limits.reached(host)

    def schedule(self, host: Host, now: float) -> None:
        """Schedule the host again after its pace, best link or counts changed."""
        in_turn = host.best is not None and (host.best_is_exempt or not self._limits.reached(host))
        self.in_turn += in_turn - host.in_turn
        host.in_turn = in_turn
        host.stamp = self._stamp() if in_turn and not (host.leased or host.reserved) else 0
        if not host.stamp:
            return
        host.bonus = self.bonus(host)
        if host.pace.due_at > now:
            self._wait(host.pace.due_at, host)
        else:
            heapq.heappush(self._due, (-self.worth(host), host.pace.due_at, host.stamp, host))
            if len(self._due) > _MAX_STALE_ENTRIES + 2 * self.in_turn:
                self._compact_due()

    def move(self, host: Host, server: Server) -> None:
        """Move the host to a server."""
        in_flight, old = host in self._busy, host.server
        if old is not None:
            del old.hosts[host]
            old.busy -= in_flight
            self._add_fetched(old, -host.fetched)
            self._schedule_server(old)
        host.server = server
        server.hosts[host] = None
        server.busy += in_flight
        self._add_fetched(server, host.fetched)
        self.schedule(host, _TIME_UNKNOWN)

    def count_fetched(self, host: Host) -> None:
        """Count a page of the host."""
        host.fetched += 1
        if host.server is not None:
            self._add_fetched(host.server, 1)
        if host.in_turn and self._limits.reached(host):
            self.schedule(host, _TIME_UNKNOWN)

    def take(self, host: Host) -> None:
        """Mark the host and its server as busy."""
        self._busy.add(host)
        if host.server is not None:
            host.server.busy += 1

    def release(self, host: Host, server_due_at: float) -> None:
        """End the host's request; its server is due at ``server_due_at``."""
        self._busy.discard(host)
        if host.server is not None:
            host.server.busy -= 1
            self.rest(host, server_due_at)

    def rest(self, host: Host, server_due_at: float) -> None:
        """Delay the host's server until ``server_due_at``."""
        server = host.server
        if server is not None:
            server.due_at = max(server.due_at, server_due_at)
            self._schedule_server(server)

    def bonus(self, host: Host, ahead: int = 0) -> float:
        """Return the host's exploration bonus after ``ahead`` more requests."""
        return self._exploration.bonus(host.asked + ahead, host.unproductive)

    def best_soon(self, limit: int, now: float, patience_s: float) -> Sequence[Host]:
        """Return the best hosts that are due or for which a link would wait, best first.

        At most ``limit``. The cost does not depend on the number of hosts.
        """
        self.best_due(now)  # moves hosts that became due
        soon = dict.fromkeys(self._best_of_due(limit, now))
        waiting = [host for _, host in self._within(now + patience_s)]
        waiting += [host for host in self._busy if host.leased_at + patience_s > now]
        soon |= dict.fromkeys(host for host in waiting if host.in_turn and not host.pace.failures)
        return heapq.nlargest(limit, soon, key=self.worth)

    def best_due(self, now: float) -> Host | None:
        """Return the due, free host with the highest priority, or None."""
        while self._waiting and self._waiting[0][0] <= now:
            _, stamp, entity = heapq.heappop(self._waiting)
            if entity.stamp != stamp:
                continue
            if isinstance(entity, Server):
                self._call(entity)
            else:
                self.schedule(entity, now)
        while self._due:
            entry = self._due[0]
            _, _, stamp, host = entry
            if host.stamp == stamp and self._may_be_asked(host, now):
                return host
            heapq.heappop(self._due)
            self._drop_entry(entry)
        return None

    def next_due_at(self) -> float | None:
        """Return when the first waiting host is due, or None."""
        while self._waiting:
            due_at, stamp, entity = self._waiting[0]
            if entity.stamp == stamp:
                return due_at
            heapq.heappop(self._waiting)
        return None

    def better_host_at(self, priority: float, now: float, patience_s: float) -> float | None:
        """Return when to look again for a host with a higher ``priority``; None: don't wait.

        Considers hosts due within ``patience_s``, and busy ones requested less than that ago, so
        that a slow host delays nobody for longer. Hosts that fail are ignored. Linear in these
        hosts.
        """
        soon = [
            due_at for due_at, host in self._within(now + patience_s) if self._beats(host, priority)
        ]
        soon += [
            host.leased_at + patience_s
            for host in self._busy
            if host.leased_at + patience_s > now and self._beats(host, priority)
        ]
        return min(soon, default=None)

    def _stamp(self) -> int:
        self._stamps += 1
        return self._stamps

    def _wait(self, due_at: float, entity: Host | Server) -> None:
        heapq.heappush(self._waiting, (due_at, entity.stamp, entity))
        if len(self._waiting) > _MAX_STALE_ENTRIES + 2 * self.in_turn:
            self._waiting = [entry for entry in self._waiting if entry[2].stamp == entry[1]]
            heapq.heapify(self._waiting)

    def _compact_due(self) -> None:
        stale = [entry for entry in self._due if entry[3].stamp != entry[2]]
        self._due = [entry for entry in self._due if entry[3].stamp == entry[2]]
        heapq.heapify(self._due)
        for entry in stale:
            self._drop_entry(entry)

    def _may_be_asked(self, host: Host, now: float) -> bool:
        server = host.server
        if server is None:
            return True
        return not server.busy and server.due_at <= now

    def _add_fetched(self, server: Server, pages: int) -> None:
        most = self._limits.pages_per_address
        was_full = most is not None and server.fetched >= most
        server.fetched += pages
        if most is not None and was_full != (server.fetched >= most):
            for host in server.hosts:
                self.schedule(host, _TIME_UNKNOWN)

    def _drop_entry(self, entry: _DueEntry) -> None:
        """Process an entry that left the top of the due hosts without a request."""
        _, _, stamp, host = entry
        server = host.server
        if server is None:
            return
        if host.stamp == stamp:
            heapq.heappush(server.waiting_hosts, entry)
            self._compact_waiting(server)
            self._schedule_server(server)
        elif server.representative_stamp == stamp:
            self._call(server)

    def _schedule_server(self, server: Server) -> None:
        """Schedule a free server that hosts wait for; a busy one is scheduled on release."""
        if server.waiting_hosts and not server.busy and not server.stamp:
            server.stamp = self._stamp()
            self._wait(server.due_at, server)

    def _call(self, server: Server) -> None:
        """Move the server's best waiting host to the due hosts."""
        server.stamp = server.representative_stamp = 0
        entry = self._best_waiting(server)
        if entry is not None:
            heapq.heappop(server.waiting_hosts)
            server.representative_stamp = entry[2]
            heapq.heappush(self._due, entry)

    def _best_waiting(self, server: Server) -> _DueEntry | None:
        while (
            server.waiting_hosts and server.waiting_hosts[0][3].stamp != server.waiting_hosts[0][2]
        ):
            heapq.heappop(server.waiting_hosts)
        return server.waiting_hosts[0] if server.waiting_hosts else None

    def _compact_waiting(self, server: Server) -> None:
        if len(server.waiting_hosts) > _MAX_STALE_ENTRIES + 2 * len(server.hosts):
            server.waiting_hosts = [
                entry for entry in server.waiting_hosts if entry[3].stamp == entry[2]
            ]
            heapq.heapify(server.waiting_hosts)

    def _best_of_due(self, limit: int, now: float) -> Iterator[Host]:
        """Yield the best due hosts in order, walking the heap from its top."""
        due, found = self._due, 0
        places = [(due[0], 0)] if due else []
        while places and found < limit:
            entry, index = heapq.heappop(places)
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(due):
                    heapq.heappush(places, (due[child], child))
            _, _, stamp, host = entry
            if host.stamp == stamp and self._may_be_asked(host, now):
                found += 1
                yield host

    def _within(self, until: float) -> Iterator[tuple[float, Host]]:
        """Yield hosts due by ``until``, walking the heap from its top.

        At most :data:`_MAX_INSPECTED` entries: only crawls far beyond capacity have more due in
        seconds.
        """
        waiting, indices = self._waiting, [0]
        for index in indices:
            if index >= len(waiting):
                continue
            due_at, stamp, entity = waiting[index]
            if due_at > until:
                continue
            if len(indices) < _MAX_INSPECTED:
                indices += (2 * index + 1, 2 * index + 2)
            if entity.stamp != stamp:
                continue
            if isinstance(entity, Server):
                best = self._best_waiting(entity)
                if best is not None:
                    yield due_at, best[3]
            else:
                yield due_at, entity

    def _beats(self, host: Host, priority: float) -> bool:
        return self.worth(host) > priority and not host.pace.failures
