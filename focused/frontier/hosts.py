"""The hosts of a frontier: which may be asked now, and whose best link is best.

Held in memory (a host is a few hundred bytes), written through to the store.
Two heaps with lazy deletion: hosts that wait for their time, and hosts that
are due, by their best link. An entry counts only while its stamp is the
host's newest.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from focused.frontier.exploration import NONE, Exploration
from focused.frontier.politeness import HostPace
from focused.frontier.queued import priority_of
from focused.frontier.rows import pack, unpack
from focused.frontier.store import StateStore

_HOST_ROW = struct.Struct(">QQddId")
"""Pages asked for, fetched, barren; due at, failures in a row, crawl delay in seconds."""


@dataclass(slots=True, eq=False)
class Host:
    """One host's state.

    ``best`` is the priority of its best link that is not under way, None when
    there is none; ``hope`` is what is added to that. Of ``asked`` pages, those
    that failed included, ``fetched`` came; ``barren`` of late brought nothing
    (:func:`focused.frontier.exploration.barren_after`). ``leased`` is the queue
    key of the link under way, since ``leased_at``. ``robots`` is the state of
    its robots.txt rules by scheme, opaque here.
    """

    name: str
    number: int
    pace: HostPace = field(default_factory=HostPace)
    asked: int = 0
    fetched: int = 0
    barren: float = 0.0
    robots: dict[str, Any] = field(default_factory=dict)
    best: float | None = None
    hope: float = 0.0
    leased: bytes | None = None
    leased_at: float = 0.0
    stamp: int = 0
    prefix: bytes = field(init=False)
    """Of the queue keys of its links."""
    robots_saved: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.prefix = struct.pack(">I", self.number)
        self.robots_saved = dict(self.robots)


class HostTable:
    """All hosts of a crawl, and the order in which they may be asked."""

    def __init__(self, store: StateStore, exploration: Exploration = NONE) -> None:
        """``exploration``: see :meth:`worth`."""
        self._store = store
        self._exploration = exploration
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

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_name.values())

    @property
    def busy(self) -> int:
        """How many hosts are being asked."""
        return len(self._busy)

    def worth(self, host: Host) -> float:
        """The priority of the host's best link, and what is hoped of the host."""
        return float("-inf") if host.best is None else host.best + host.hope

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
        """Give the host its place again after its time changed, or links left its queue."""
        keys = (key for key, _ in self._store.scan("queue", host.prefix) if key != host.leased)
        self._set_best(host, next(keys, None))
        self._place(host, now)

    def link_came(self, host: Host, queue_key: bytes, now: float) -> None:
        """A link came into the host's queue, or moved up in it."""
        if _comes_before(queue_key, host):
            self._set_best(host, queue_key)
            self._place(host, now)

    def take(self, host: Host, queue_key: bytes, following: bytes | None, now: float) -> None:
        """The best link is under way: its host is offered to nobody else.

        ``following`` is the queue key of the host's next best, if there is one.
        """
        host.leased = queue_key
        host.leased_at = now
        self._busy.add(host)
        self._set_best(host, following)
        self._place(host, now)

    def give_back(self, host: Host, now: float, *, still_queued: bool) -> None:
        """The fetch is over; its link left the queue, or not."""
        leased, host.leased = host.leased, None
        self._busy.discard(host)
        if still_queued and leased is not None and _comes_before(leased, host):
            self._set_best(host, leased)
        self._place(host, now)

    def save(self, host: Host) -> None:
        """Write the host's state into the open transaction."""
        pace = host.pace
        row = _HOST_ROW.pack(
            host.asked,
            host.fetched,
            host.barren,
            pace.due_at,
            pace.failures,
            pace.crawl_delay_s,
        )
        self._store.put("hosts", host.prefix, row)
        # Rules are as long as the site wants, and change once a day.
        if host.robots != host.robots_saved:
            self._store.put("robots", host.prefix, pack(host.robots))
            host.robots_saved = dict(host.robots)

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
        """Return when to look again for a host worth more than ``priority``; None: do not wait.

        Counts hosts that fall due within ``patience_s``, and busy ones that
        were asked less than that ago: a slow host holds up nobody for longer.
        Linear in waiting and busy hosts.
        """
        until = now + patience_s
        # Written out, for it is asked of every waiting host at every offer. A host in trouble
        # is nothing to wait for.
        soon = [
            due_at
            for due_at, stamp, host in self._waiting
            if due_at <= until
            and host.stamp == stamp
            and self.worth(host) > priority
            and not host.pace.failures
        ]
        soon += [
            host.leased_at + patience_s
            for host in self._busy
            if host.leased_at + patience_s > now
            and self.worth(host) > priority
            and not host.pace.failures
        ]
        return min(soon, default=None)

    def _set_best(self, host: Host, queue_key: bytes | None) -> None:
        had = host.best is not None
        host.best = None if queue_key is None else priority_of(queue_key)
        self.with_links += (host.best is not None) - had

    def _place(self, host: Host, now: float) -> None:
        self._stamps += 1
        host.stamp = 0 if host.leased or host.best is None else self._stamps
        if not host.stamp or host.best is None:
            return
        host.hope = self._exploration.hope(host.asked, host.barren)
        if host.pace.due_at > now:
            heapq.heappush(self._waiting, (host.pace.due_at, host.stamp, host))
        else:
            heapq.heappush(self._due, (-self.worth(host), host.pace.due_at, host.stamp, host))

    def _load(self, name: str, prefix: bytes) -> None:
        (number,) = struct.unpack(">I", prefix)
        robots = self._store.get("robots", prefix)
        host = Host(name, number, robots={} if robots is None else unpack(robots))
        raw = self._store.get("hosts", prefix)
        if raw is not None:
            host.asked, host.fetched, host.barren, *pace = _HOST_ROW.unpack(raw)
            host.pace = HostPace(*pace)
        self._by_name[name] = host
        self.refresh(host, now=float("-inf"))


def _comes_before(queue_key: bytes, host: Host) -> bool:
    return host.best is None or priority_of(queue_key) > host.best
