"""Requests for robots.txt: the crawl's own, with where they are redirected, and a driver's.

A redirect leads to another host, perhaps: that is asked when it may be, past
the frontier (:mod:`focused.crawl.leases`).
"""

from __future__ import annotations

from collections.abc import Callable

from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.hosts.robots_cache import MAX_REDIRECTS
from focused.crawl.leases import DirectRequests, Lease, Leases
from focused.crawl.steps import FetchPurpose
from focused.frontier.host import Host
from focused.frontier.interface import Frontier
from focused.web.page import Outcome, Redirected
from focused.web.urls import host_of, robots_url


class RobotsFetcher:
    """What is asked for robots.txt, and what becomes of the answers; the caller commits."""

    def __init__(
        self,
        frontier: Frontier,
        host_policy: HostPolicy,
        leases: Leases,
        direct_requests: DirectRequests,
        queue_sitemap: Callable[[str, float], None],
        record: Callable[[Outcome, float], None],
    ) -> None:
        """``queue_sitemap`` takes the URL of a sitemap that a robots.txt names, and now.

        ``record`` archives what came.
        """
        self._frontier = frontier
        self._host_policy = host_policy
        self._leases = leases
        self._direct_requests = direct_requests
        self._queue_sitemap = queue_sitemap
        self.record = record
        """Archives what came of a request for robots.txt, or of one that leads to it."""
        self._redirected: list[Lease] = []

    @property
    def has_waiting(self) -> bool:
        """Whether any was redirected to a host that may not be asked yet."""
        return bool(self._redirected)

    def take_due(self, now: float) -> Lease | None:
        """Return one that was redirected and is to be asked for now."""
        for lease in self._redirected:
            assert lease.direct_request is not None
            if self._direct_requests.wait_s(lease.direct_request, now) == 0:
                self._redirected.remove(lease)
                self._direct_requests.mark_sent(lease.direct_request, now)
                return lease
        return None

    def earliest(self, now: float) -> float | None:
        """When to look again at those that were redirected; None when there are none."""
        waits = (
            self._direct_requests.wait_s(lease.direct_request, now)
            for lease in self._redirected
            if lease.direct_request
        )
        return min((now + wait_s for wait_s in waits), default=None)

    def settle(self, lease: Lease, outcome: Outcome, now: float) -> None:
        """Take in what the crawl's own request brought."""
        host = lease.offer.host
        self.record(outcome, now)
        self._host_policy.answered(lease.url, outcome)
        if lease.direct_request is not None:
            # What robots.txt itself brought is noted below, for the host that it is of.
            self._direct_requests.finish(
                lease.direct_request, None if lease.direct_request.host is host else outcome, now
            )
        if isinstance(outcome, Redirected) and lease.hops < MAX_REDIRECTS:
            if lease.direct_request is None or lease.direct_request.host is host:
                self._host_policy.touch(host, now, outcome)
                self._frontier.hosts.refresh(host, now)
            direct_request = self._direct_requests.add(outcome.target, now)
            onward = Lease(
                lease.offer, FetchPurpose.ROBOTS, outcome.target, lease.hops + 1, direct_request
            )
            self._redirected.append(onward)
            return
        self._host_policy.record_robots_fetch(host, lease.offer.link.url, outcome, now)
        self._frontier.put_back(lease.offer, host.pace, now)
        self._queue_sitemaps(host, lease.offer.link.url, now)

    def may_fetch(self, url: str, now: float, sent: str = "") -> bool | None:
        """Whether robots.txt allows a URL that is not of the frontier; None: not asked yet.

        ``sent`` is the URL as the request has it, where that is not the normalised one.
        """
        host = self._frontier.hosts.get(host_of(url))
        if self._host_policy.needs_robots(host, url, now):
            return None
        return self._host_policy.robots_allows(host, sent or url)

    def is_fetching(self, site: str) -> bool:
        """Whether the robots.txt at the URL ``site`` is being asked for by the crawl itself."""
        asked = (*self._leases, *self._redirected)
        return any(
            lease.purpose is FetchPurpose.ROBOTS and robots_url(lease.offer.link.url) == site
            for lease in asked
        )

    def learn(self, url: str, outcome: Outcome, now: float) -> None:
        """Take in a robots.txt that a driver fetched for a URL not of the frontier."""
        host = self._frontier.hosts.get(host_of(url))
        self.record(outcome, now)
        self._host_policy.record_robots_fetch(host, url, outcome, now)
        self._queue_sitemaps(host, url, now)
        self._frontier.hosts.refresh(host, now)

    def _queue_sitemaps(self, host: Host, url: str, now: float) -> None:
        for sitemap in self._host_policy.sitemaps(host, url):
            self._queue_sitemap(sitemap, now)
