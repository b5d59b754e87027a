"""Requests for robots.txt: the crawl's own, with where they are redirected, and a driver's.

A redirect leads to another host, perhaps: that is asked when it may be, past
the frontier (:mod:`focused.crawl.visits`).
"""

from __future__ import annotations

from collections.abc import Callable

from focused.crawl.host_care import HostCare
from focused.crawl.leases import Lease, Leases
from focused.crawl.robots_gate import MAX_REDIRECTS
from focused.crawl.steps import Purpose
from focused.crawl.visits import Visits
from focused.frontier.frontier import Frontier
from focused.frontier.host import Host
from focused.web.page import Outcome, Redirected
from focused.web.url import host_of, robots_url


class RobotsErrands:
    """What is asked for robots.txt, and what becomes of the answers; the caller commits."""

    def __init__(
        self,
        frontier: Frontier,
        care: HostCare,
        leases: Leases,
        visits: Visits,
        queue_sitemap: Callable[[str, float], None],
        record: Callable[[Outcome, float], None],
    ) -> None:
        """``queue_sitemap`` takes the URL of a sitemap that a robots.txt names, and now.

        ``record`` archives what came.
        """
        self._frontier = frontier
        self._care = care
        self._leases = leases
        self._visits = visits
        self._queue_sitemap = queue_sitemap
        self.record = record
        """Archives what came of a request for robots.txt, or of one that leads to it."""
        self._redirected: list[Lease] = []

    @property
    def are_waiting(self) -> bool:
        """Whether any was redirected to a host that may not be asked yet."""
        return bool(self._redirected)

    def take_due(self, now: float) -> Lease | None:
        """Return one that was redirected and is to be asked for now."""
        for lease in self._redirected:
            assert lease.visit is not None
            if self._visits.wait_s(lease.visit, now) == 0:
                self._redirected.remove(lease)
                self._visits.go(lease.visit, now)
                return lease
        return None

    def earliest(self, now: float) -> float | None:
        """When to look again at those that were redirected; None when there are none."""
        waits = (self._visits.wait_s(lease.visit, now) for lease in self._redirected if lease.visit)
        return min((now + wait_s for wait_s in waits), default=None)

    def settle(self, lease: Lease, outcome: Outcome, now: float) -> None:
        """Take in what the crawl's own request brought."""
        host = lease.offer.host
        self.record(outcome, now)
        self._care.answered(lease.url, outcome)
        if lease.visit is not None:
            # What robots.txt itself brought is noted below, for the host that it is of.
            self._visits.leave(lease.visit, None if lease.visit.host is host else outcome, now)
        if isinstance(outcome, Redirected) and lease.hops < MAX_REDIRECTS:
            if lease.visit is None or lease.visit.host is host:
                self._care.touch(host, now, outcome)
                self._frontier.hosts.refresh(host, now)
            visit = self._visits.arrive(outcome.target, now)
            onward = Lease(lease.offer, Purpose.ROBOTS, outcome.target, lease.hops + 1, visit)
            self._redirected.append(onward)
            return
        self._care.note_robots(host, lease.offer.link.url, outcome, now)
        self._frontier.put_back(lease.offer, host.pace, now)
        self._queue_sitemaps(host, lease.offer.link.url, now)

    def may_fetch(self, url: str, now: float, sent: str = "") -> bool | None:
        """Whether robots.txt allows a URL that is not of the frontier; None: not asked yet.

        ``sent`` is the URL as the request has it, where that is not the normalised one.
        """
        host = self._frontier.hosts.get(host_of(url))
        if self._care.must_ask_robots(host, url, now):
            return None
        return self._care.robots_allow(host, sent or url)

    def asks(self, site: str) -> bool:
        """Whether the robots.txt at the URL ``site`` is being asked for by the crawl itself."""
        asked = (*self._leases, *self._redirected)
        return any(
            lease.purpose is Purpose.ROBOTS and robots_url(lease.offer.link.url) == site
            for lease in asked
        )

    def learn(self, url: str, outcome: Outcome, now: float) -> None:
        """Take in a robots.txt that a driver fetched for a URL not of the frontier."""
        host = self._frontier.hosts.get(host_of(url))
        self.record(outcome, now)
        self._care.note_robots(host, url, outcome, now)
        self._queue_sitemaps(host, url, now)
        self._frontier.hosts.refresh(host, now)

    def _queue_sitemaps(self, host: Host, url: str, now: float) -> None:
        for sitemap in self._care.sitemaps(host, url):
            self._queue_sitemap(sitemap, now)
