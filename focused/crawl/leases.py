"""What is under way: leased fetches, and robots.txt requests that were sent elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from focused.crawl.steps import Fetch, Purpose
from focused.frontier.frontier import Hosts, Offer
from focused.frontier.host import Host
from focused.web.url import host_of


@dataclass(frozen=True, slots=True)
class Lease:
    """One fetch: of the offered link's page, or of its site's robots.txt."""

    offer: Offer
    purpose: Purpose
    url: str
    hops: int = 0


class Leases:
    """Numbers the fetches under way; each is closed once."""

    def __init__(self) -> None:
        self._open: dict[int, Lease] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, number: int) -> bool:
        return number in self._open

    @property
    def pages(self) -> int:
        """How many of them are for pages."""
        return sum(lease.purpose is Purpose.PAGE for lease in self._open.values())

    def open(self, lease: Lease) -> Fetch:
        """Hand out a fetch."""
        self._last += 1
        self._open[self._last] = lease
        return Fetch(self._last, lease.url, lease.purpose, lease.offer.link)

    def close(self, number: int) -> Lease:
        """Take a fetch back; raises KeyError when it is not under way."""
        return self._open.pop(number)

    def numbers(self) -> list[int]:
        """The numbers of all fetches under way."""
        return list(self._open)


class RobotsHops:
    """robots.txt requests that were redirected and wait until their target may be asked."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._waiting: list[tuple[float, Lease]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, due_at: float, lease: Lease) -> None:
        """Ask for the lease's URL from ``due_at`` on."""
        self._waiting.append((due_at, lease))

    def take_due(self, now: float) -> tuple[Lease, Host] | None:
        """Return one that may be asked for now, with the host that will be asked."""
        for index, (due_at, lease) in enumerate(self._waiting):
            target = self._hosts.get(host_of(lease.url))
            elsewhere = target is not lease.offer.host
            if due_at > now or (elsewhere and (target.leased or target.pace.due_at > now)):
                continue
            del self._waiting[index]
            return lease, target
        return None

    def earliest(self, now: float) -> float | None:
        """When to look again; None when nothing waits for a time to come."""
        times = [
            max(due_at, self._hosts.get(host_of(lease.url)).pace.due_at)
            for due_at, lease in self._waiting
        ]
        return min((time for time in times if time > now), default=None)
