"""Fetches in flight: leases of queued links, and direct requests outside the frontier.

A direct request goes to a host without a queued link: a robots.txt on another host, a pipeline's
image. Its host is offered to nobody else from the moment it is added, so it waits only for what is
in flight. Direct requests to one host are sent in the order they were added.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.steps import Fetch
from focused.frontier.disk_frontier import Offer
from focused.frontier.host import Host
from focused.frontier.host_table import HostTable
from focused.web.page import Outcome, Redirected
from focused.web.urls import host_of


@dataclass(frozen=True, slots=True)
class Lease:
    """One fetch in flight: the offered link's page, or what has to be known before it.

    ``direct_request`` is set for a robots.txt that was redirected ``hops`` times. ``headers`` make
    the request conditional. ``is_page``: the link's own page is fetched.
    """

    offer: Offer
    purpose: str
    url: str
    hops: int = 0
    direct_request: DirectRequest | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_page: bool = False


class Leases:
    """The fetches in flight by number; each is closed once."""

    def __init__(self) -> None:
        self._open: dict[int, Lease] = {}
        self._numbers = count(1)
        self.pages = 0
        """The number of leases for pages."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._open.values())

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def has_url(self, url: str) -> bool:
        """Whether the page of a URL, or the robots.txt before it, is in flight."""
        return any(lease.offer.link.url == url for lease in self._open.values())

    def open(self, lease: Lease) -> Fetch:
        """Open a lease."""
        number = next(self._numbers)
        self._open[number] = lease
        self.pages += lease.is_page
        return Fetch(
            number, lease.url, lease.purpose, lease.offer.link, lease.headers, lease.is_page
        )

    def close(self, number: int) -> Lease:
        """Close a lease; KeyError when it is not open."""
        lease = self._open.pop(number)
        self.pages -= lease.is_page
        return lease

    def of(self, number: int) -> Lease | None:
        """Return the lease of that number, or None."""
        return self._open.get(number)

    def numbers(self) -> list[int]:
        """Return the numbers of all open leases."""
        return list(self._open)


POLL_INTERVAL_S = 0.05


@dataclass(eq=False, slots=True)
class DirectRequest:
    """A request outside the frontier.

    ``page_lease`` is the lease of the page that needs the response to be rendered: its host is in
    flight until then, and does not wait for itself.
    """

    url: str
    host: Host
    page_lease: int | None = None
    sent: bool = False


class DirectRequests:
    """Direct requests that wait for their host or are in flight."""

    def __init__(self, hosts: HostTable, host_policy: HostPolicy, leases: Leases) -> None:
        self._hosts = hosts
        self._host_policy = host_policy
        self._leases = leases
        self._queues: dict[Host, deque[DirectRequest]] = {}

    def add(self, url: str, now: float, page_lease: int | None = None) -> DirectRequest:
        """Add a request for a normalised URL and reserve its host."""
        request = DirectRequest(url, self._hosts.get(host_of(url)), page_lease)
        self._queues.setdefault(request.host, deque()).append(request)
        self._hosts.reserve(request.host, now)
        return request

    def wait_s(self, request: DirectRequest, now: float) -> float:
        """Return the seconds until to ask again; 0 when the request may be sent."""
        host, server = request.host, request.host.server
        if self._queues[host][0] is not request:
            return POLL_INTERVAL_S
        due_at = max(host.pace.due_at, 0.0 if server is None else server.due_at)
        if due_at > now:
            return due_at - now
        page = None if request.page_lease is None else self._leases.of(request.page_lease)
        return POLL_INTERVAL_S if self.is_busy(host, page) else 0.0

    def is_busy(self, host: Host, but: Lease | None = None) -> bool:
        """Whether host or address has a request in flight; the lease ``but`` doesn't count."""
        # Redirects of a robots.txt lead to other hosts.
        requests = [each.direct_request or each.offer for each in self._leases if each is not but]
        own = None if but is None else but.direct_request
        first = (queue[0] for queue in self._queues.values())
        requests += [request for request in first if request.sent and request is not own]
        hosts = [each.host for each in requests]
        return host in hosts or host.server in [each.server for each in hosts if each.server]

    def may_connect(self, lease: Lease | None, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent to the address that its host resolved to.

        ``lease`` is the request's own. A direct request must be held back while it asks.
        """
        host = self._hosts.get(host_of(url))
        if host.address != address:
            self._host_policy.assign_address(host, address)
        server = host.server
        return server is None or (server.due_at <= now and not self.is_busy(host, lease))

    def hold_back(self, request: DirectRequest) -> None:
        """Delay a request that was marked as sent."""
        request.sent = False

    def mark_sent(self, request: DirectRequest, now: float) -> None:
        """Record that the request is sent, which restarts the host's delay."""
        request.sent = True
        self._host_policy.touch(request.host, now)
        self._hosts.refresh(request.host, now)

    def finish(self, request: DirectRequest, outcome: Outcome | None, now: float) -> None:
        """Remove the request; if it was sent, the host's delay counts from now.

        ``outcome`` None says nothing of the host.
        """
        host, queue = request.host, self._queues[request.host]
        queue.remove(request)
        if outcome is not None:
            self._host_policy.answered(request.url, outcome)
        if request.sent and (outcome is None or isinstance(outcome, Redirected)):
            self._host_policy.touch(host, now, outcome)
        elif request.sent and outcome is not None:
            host.pace = self._host_policy.next_pace(host, outcome, now)
        self._hosts.release_reservation(host, now)
        if queue:
            self._hosts.reserve(host, now)
        else:
            del self._queues[host]
