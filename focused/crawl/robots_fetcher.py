"""Requests for robots.txt, by the crawl and by the driver, with their redirects.

:meth:`focused.crawl.purposes.HostAccess.robots_first` asks for that of a host without rules. A
redirect to another host is a direct request (:mod:`focused.crawl.leases`).
"""

from __future__ import annotations

from collections.abc import Callable

from focused.crawl.crawl_state import CrawlState
from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.hosts.robots_cache import MAX_REDIRECTS
from focused.crawl.leases import DirectRequests, Lease
from focused.crawl.steps import ROBOTS
from focused.frontier.host import Host
from focused.web.page import Failed, Outcome, Redirected
from focused.web.robots.robots_file import RobotsFile
from focused.web.urls import host_of, robots_url


class RobotsFetcher:
    """Tracks requests for robots.txt and processes their outcomes; the caller commits."""

    def __init__(
        self,
        state: CrawlState,
        host_policy: HostPolicy,
        direct_requests: DirectRequests,
        queue_sitemap: Callable[[str, float], object],
    ) -> None:
        """``queue_sitemap`` takes a sitemap's URL and the time."""
        self._frontier = state.frontier
        self._host_policy = host_policy
        self._leases = state.leases
        self._direct_requests = direct_requests
        self._queue_sitemap = queue_sitemap
        self.record = state.archive.record
        """Archives the outcome of a request for robots.txt."""
        self._redirected: list[Lease] = []

    @property
    def has_waiting(self) -> bool:
        """Whether a redirected request waits for its host."""
        return bool(self._redirected)

    def take_due(self, now: float) -> Lease | None:
        """Return a redirected request that may be sent now, or None."""
        for lease in self._redirected:
            assert lease.direct_request is not None
            if self._direct_requests.wait_s(lease.direct_request, now) == 0:
                self._redirected.remove(lease)
                self._direct_requests.mark_sent(lease.direct_request, now)
                return lease
        return None

    def earliest(self, now: float) -> float | None:
        """Return when to check the redirected requests again, or None."""
        waits = (
            self._direct_requests.wait_s(lease.direct_request, now)
            for lease in self._redirected
            if lease.direct_request
        )
        return min((now + wait_s for wait_s in waits), default=None)

    def settle(
        self, lease: Lease, outcome: Outcome, now: float, parsed: RobotsFile | Failed | None = None
    ) -> None:
        """Process the outcome of the crawl's own request; ``parsed`` is its file if parsed already.

        A file that could not be parsed counts as unreachable.
        """
        host = lease.offer.host
        self.record(outcome, now)
        self._host_policy.answered(lease.url, outcome)
        if lease.direct_request is not None:
            # The outcome is recorded below for the host that the robots.txt belongs to.
            self._direct_requests.finish(
                lease.direct_request, None if lease.direct_request.host is host else outcome, now
            )
        if isinstance(outcome, Redirected) and lease.hops < MAX_REDIRECTS:
            if lease.direct_request is None or lease.direct_request.host is host:
                self._host_policy.touch(host, now, outcome)
                self._frontier.hosts.refresh(host, now)
            direct_request = self._direct_requests.add(outcome.target, now)
            onward = Lease(lease.offer, ROBOTS, outcome.target, lease.hops + 1, direct_request)
            self._redirected.append(onward)
            return
        self._record_fetch(host, lease.offer.link.url, outcome, now, parsed)
        self._frontier.put_back(lease.offer, host.pace, now)
        self._queue_sitemaps(host, lease.offer.link.url, now)

    def may_fetch(self, url: str, now: float, sent: str = "") -> bool | None:
        """Whether robots.txt allows a URL outside the frontier; None: it has to be fetched first.

        ``sent`` is the URL as the request spells it, if it's not normalised.
        """
        host = self._frontier.hosts.get(host_of(url))
        if self._host_policy.robots_cache.needs_fetch(host, url, now):
            return None
        return self._host_policy.robots_cache.allows(host, sent or url)

    def is_fetching(self, site: str) -> bool:
        """Whether the crawl itself is fetching the robots.txt at ``site``."""
        pending = (*self._leases, *self._redirected)
        return any(
            lease.purpose == ROBOTS and robots_url(lease.offer.link.url) == site
            for lease in pending
        )

    def learn(
        self, url: str, outcome: Outcome, now: float, parsed: RobotsFile | Failed | None = None
    ) -> None:
        """Store a robots.txt that the driver fetched for a URL outside the frontier."""
        host = self._frontier.hosts.get(host_of(url))
        self.record(outcome, now)
        self._record_fetch(host, url, outcome, now, parsed)
        self._queue_sitemaps(host, url, now)
        self._frontier.hosts.refresh(host, now)

    def _record_fetch(
        self,
        host: Host,
        url: str,
        outcome: Outcome,
        now: float,
        parsed: RobotsFile | Failed | None,
    ) -> None:
        if isinstance(parsed, Failed):
            outcome, parsed = parsed, None
        self._host_policy.record_robots_fetch(host, url, outcome, now, parsed)

    def _queue_sitemaps(self, host: Host, url: str, now: float) -> None:
        for sitemap in self._host_policy.sitemaps(host, url):
            self._queue_sitemap(sitemap, now)
