"""The hosts of a frontier: which may be asked now, and whose best link is best.

Held in memory (a host is a few hundred bytes), written through to the store.
Two heaps with lazy deletion: hosts that wait for their time, and hosts that
are due, by their best link. An entry counts only while its stamp is the
host's newest.
"""

from __future__ import annotations

import heapq
import json
import struct
from dataclasses import dataclass, field
from typing import Any

from focused.frontier.politeness import HostPace
from focused.frontier.queued import priority_of
from focused.frontier.store import StateStore


@dataclass(slots=True, eq=False)
class Host:
    """One host's state.

    ``best`` is the priority of its best link that is not under way, None when
    there is none; ``leased`` is the queue key of the link under way, since ``leased_at``.
    ``robots`` is the state of its robots.txt rules by scheme, opaque here.
    """

    name: str
    number: int
    pace: HostPace = field(default_factory=HostPace)
    fetched: int = 0
    robots: dict[str, Any] = field(default_factory=dict)
    best: float | None = None
    leased: bytes | None = None
    leased_at: float = 0.0
    stamp: int = 0

    @property
    def prefix(self) -> bytes:
        """The queue key prefix of its links."""
        return struct.pack(">I", self.number)


class HostTable:
    """All hosts of a crawl, and the order in which they may be asked."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._by_name: dict[str, Host] = {}
        self._waiting: list[tuple[float, int, Host]] = []
        self._due: list[tuple[float, float, int, Host]] = []
        self._stamps = 0
        self.with_links = 0
        self._busy: set[Host] = set()
        for name, raw in store.scan("host_ids"):
            self._load(name.decode(), raw)

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def busy(self) -> int:
        """How many hosts are being asked."""
        return len(self._busy)

    def get(self, name: str) -> Host:
        """Return the host, a new one when it was unknown."""
        host = self._by_name.get(name)
        if host is None:
            host = Host(name, len(self._by_name))
            self._by_name[name] = host
            self._store.put("host_ids", name.encode(), host.prefix)
        return host

    def known(self, name: str) -> Host | None:
        """Return the host, or None."""
        return self._by_name.get(name)

    def refresh(self, host: Host, now: float) -> None:
        """Give the host its place again after its links, time or state changed."""
        had = host.best is not None
        keys = (key for key, _ in self._store.scan("queue", host.prefix) if key != host.leased)
        best_key = next(keys, None)
        host.best = None if best_key is None else priority_of(best_key)
        self.with_links += (host.best is not None) - had
        self._place(host, now)

    def take(self, host: Host, queue_key: bytes, now: float) -> None:
        """The link is under way: its host is offered to nobody else."""
        host.leased = queue_key
        host.leased_at = now
        self._busy.add(host)
        self.refresh(host, now)

    def give_back(self, host: Host, now: float) -> None:
        """The fetch is over."""
        host.leased = None
        self._busy.discard(host)
        self.refresh(host, now)

    def save(self, host: Host) -> None:
        """Write the host's state into the open transaction."""
        pace = host.pace
        row = [host.fetched, pace.due_at, pace.failures, pace.crawl_delay_s]
        self._store.put("hosts", host.prefix, json.dumps([*row, host.robots]).encode())

    def best_due(self, now: float) -> Host | None:
        """Return the free host that may be asked now and has the best link, or None."""
        while self._waiting and self._waiting[0][0] <= now:
            _, stamp, host = heapq.heappop(self._waiting)
            if host.stamp == stamp:
                self._place(host, now)
        while self._due:
            _, _, stamp, host = self._due[0]
            if host.stamp == stamp:
                return host
            heapq.heappop(self._due)
        return None

    def next_due_at(self) -> float | None:
        """Return when the first waiting host falls due; None when none waits."""
        while self._waiting:
            due_at, stamp, host = self._waiting[0]
            if host.stamp == stamp:
                return due_at
            heapq.heappop(self._waiting)
        return None

    def better_soon(self, priority: float, now: float, patience_s: float) -> float | None:
        """Return when to look again for a link better than ``priority``; None: do not wait.

        Counts hosts that fall due within ``patience_s``, and busy ones that
        were asked less than that ago: a slow host holds up nobody for longer.
        Linear in waiting and busy hosts.
        """
        until = now + patience_s
        soon = [
            due_at
            for due_at, stamp, host in self._waiting
            if due_at <= until and host.stamp == stamp and _better(host, priority)
        ]
        soon += [
            host.leased_at + patience_s
            for host in self._busy
            if host.leased_at + patience_s > now and _better(host, priority)
        ]
        return min(soon, default=None)

    def _place(self, host: Host, now: float) -> None:
        self._stamps += 1
        host.stamp = 0 if host.leased or host.best is None else self._stamps
        if not host.stamp or host.best is None:
            return
        if host.pace.due_at > now:
            heapq.heappush(self._waiting, (host.pace.due_at, host.stamp, host))
        else:
            heapq.heappush(self._due, (-host.best, host.pace.due_at, host.stamp, host))

    def _load(self, name: str, prefix: bytes) -> None:
        (number,) = struct.unpack(">I", prefix)
        host = Host(name, number)
        raw = self._store.get("hosts", prefix)
        if raw is not None:
            host.fetched, due_at, failures, crawl_delay_s, host.robots = json.loads(raw)
            host.pace = HostPace(due_at, failures, crawl_delay_s)
        self._by_name[name] = host
        self.refresh(host, now=float("-inf"))


def _better(host: Host, priority: float) -> bool:
    # A host in trouble is nothing to wait for.
    return host.best is not None and host.best > priority and not host.pace.failures
