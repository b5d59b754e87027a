"""Requests that come to a host past the frontier: each waits until host and address are free.

A robots.txt on another host, a pipeline's picture. From the moment it arrives
its host is offered to nobody else, so that it has to wait for no more than
what is under way; those of one host leave in the order of arrival.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from focused.crawl.host_care import HostCare
from focused.crawl.leases import Lease, Leases
from focused.frontier.frontier import Hosts
from focused.frontier.host import Host
from focused.web.page import Outcome, Redirected
from focused.web.url import host_of

LOOK_AGAIN_S = 0.05


@dataclass(eq=False, slots=True)
class Visit:
    """One such request, until it is over."""

    url: str
    host: Host
    sent: bool = False
    over: bool = False


class Visits:
    """The requests that wait for their host, or are under way."""

    def __init__(self, hosts: Hosts, care: HostCare, leases: Leases) -> None:
        self._hosts = hosts
        self._care = care
        self._leases = leases
        self._queues: dict[Host, deque[Visit]] = {}

    def arrive(self, url: str, now: float) -> Visit:
        """A request for the normalised ``url`` is to be sent."""
        visit = Visit(url, self._hosts.get(host_of(url)))
        self._queues.setdefault(visit.host, deque()).append(visit)
        self._hosts.reserve(visit.host, now)
        return visit

    def wait_s(self, visit: Visit, now: float) -> float:
        """Seconds until it is to be looked at again; 0 when it may be sent now."""
        host, server = visit.host, visit.host.server
        if self._queues[host][0] is not visit:
            return LOOK_AGAIN_S
        due_at = max(host.pace.due_at, 0.0 if server is None else server.due_at)
        if due_at > now:
            return due_at - now
        return LOOK_AGAIN_S if self.is_busy(host) else 0.0

    def is_busy(self, host: Host, but: Lease | None = None) -> bool:
        """Whether a request to the host or its address is under way, ``but`` not counted."""
        asked = [self._hosts.get(host_of(lease.url)) for lease in self._leases if lease is not but]
        own = None if but is None else but.visit
        firsts = [visits[0] for visits in self._queues.values()]
        asked += [visit.host for visit in firsts if visit.sent and visit is not own]
        return any(
            each is host or (each.server is not None and each.server is host.server)
            for each in asked
        )

    def stands_at(self, lease: Lease | None, url: str, address: str, now: float) -> bool:
        """The host of a request that is about to leave stands at ``address``: may it leave?

        False while the address is not to be asked. ``lease`` is the request's own; one of a
        visit must be on hold.
        """
        host = self._hosts.get(host_of(url))
        if host.address != address:
            self._care.stands_at(host, address)
        server = host.server
        return server is None or (server.due_at <= now and not self.is_busy(host, lease))

    def hold(self, visit: Visit) -> None:
        """It was about to be sent, and waits after all."""
        visit.sent = False

    def go(self, visit: Visit, now: float) -> None:
        """It is sent now: its host's delay begins anew."""
        visit.sent = True
        self._care.touch(visit.host, now)
        self._hosts.refresh(visit.host, now)

    def leave(self, visit: Visit, outcome: Outcome | None, now: float) -> None:
        """It is over: if it was sent the host's delay counts from now.

        ``outcome`` is None where what came says nothing of the host, or is told elsewhere.
        """
        host, queue = visit.host, self._queues[visit.host]
        queue.remove(visit)
        visit.over = True
        if outcome is not None:
            self._care.answered(visit.url, outcome)
        if visit.sent and (outcome is None or isinstance(outcome, Redirected)):
            self._care.touch(host, now, outcome)
        elif visit.sent and outcome is not None:
            host.pace = self._care.pace_after(host, outcome, now)
        self._hosts.let_go(host, now)
        if queue:
            self._hosts.reserve(host, now)
        else:
            del self._queues[host]
