"""Request purposes: what a crawl does before and after a fetch, by what the fetch is for.

Each queued link and each fetch in flight names its purpose. The loop looks up the handler of that
name: ``prepare`` turns an offered link into a lease, or settles it without a fetch; ``settle``
processes the outcome. The core fetches pages and robots.txt; features add purposes of their own
(:mod:`focused.crawl.features`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Protocol

from focused.crawl.crawl_state import CrawlState
from focused.crawl.crawl_stats import Stage
from focused.crawl.enqueue import LinkFilter
from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.leases import DirectRequests, Lease
from focused.crawl.listeners import Listeners, SettledEvent
from focused.crawl.page_parser import EarlyResult, ParsedPage
from focused.crawl.responses import ResponseProcessor
from focused.crawl.robots_fetcher import RobotsFetcher
from focused.crawl.steps import ROBOTS, RefusedRequest, SettledFetch
from focused.frontier.disk_frontier import Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.host_table import HostTable
from focused.frontier.queued_link import PAGE
from focused.web.page import FailureKind, Outcome
from focused.web.robots.robots_rules import RobotsFile
from focused.web.urls import host_of, robots_url

logger = logging.getLogger(__name__)


class RequestHandler(Protocol):
    """Handles the links and fetches of one purpose. The loop commits after each call."""

    def prepare(self, offer: Offer, now: float) -> Lease | RefusedRequest | None:
        """Return the lease of what the offered link needs: its host's robots.txt, or itself.

        None when the link was settled without a fetch, RefusedRequest when the driver made the
        request and has to be told.
        """

    def settle(
        self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult
    ) -> SettledFetch | None:
        """Process the outcome of a fetch; return the result for a page.

        ``parsed`` is the response's page or robots.txt, None if it was not parsed yet.
        """


@dataclass(frozen=True, slots=True)
class HostAccess:
    """How hosts are requested: policy, robots.txt, requests outside the frontier."""

    known: HostTable
    policy: HostPolicy
    robots: RobotsFetcher
    direct_requests: DirectRequests

    def robots_first(self, offer: Offer, now: float) -> Lease | None:
        """Return the lease of the robots.txt that the offered link waits for, None if known."""
        url = offer.link.url
        if self.policy.robots_cache.needs_fetch(offer.host, url, now):
            return Lease(offer, ROBOTS, robots_url(url))
        return None

    def pace_after(self, offer: Offer, url: str, outcome: Outcome, now: float) -> HostPace:
        """Record that the host answered a request for ``url``; return its pace from now on."""
        self.policy.answered(url, outcome)
        return self.policy.next_pace(offer.host, outcome, now)

    def due_at(self, url: str) -> float:
        """Return when the URL's host may be requested again."""
        return self.known.get(host_of(url)).pace.due_at

    def delay(self, url: str, until: float, now: float) -> None:
        """Request the URL's host not before ``until``."""
        host = self.known.get(host_of(url))
        host.pace = replace(host.pace, due_at=max(host.pace.due_at, until))
        self.known.refresh(host, now)

    def touch(self, url: str, outcome: Outcome, now: float) -> None:
        """Restart the delay of the URL's host, for a response that settles no link."""
        self.policy.touch(self.known.get(host_of(url)), now, outcome)

    def restart_delays(self, now: float) -> None:
        """Let every host wait its delay, as if it had been requested now."""
        self.policy.resume([(host, now) for host in self.known])


class RobotsRequests:
    """Fetches the robots.txt of a host before its first page."""

    def __init__(self, robots: RobotsFetcher) -> None:
        self._robots = robots

    def prepare(self, offer: Offer, now: float) -> Lease:
        """Return the lease of the robots.txt of the offered link's host."""
        return Lease(offer, ROBOTS, robots_url(offer.link.url))

    def settle(self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult) -> None:
        """Store the rules; the offered link stays queued."""
        assert not isinstance(parsed, ParsedPage)  # see Crawl.may_parse
        self._robots.settle(lease, outcome, now, parsed)


class PageRequests:
    """Fetches pages for the first time."""

    def __init__(
        self,
        state: CrawlState,
        hosts: HostAccess,
        link_filter: LinkFilter,
        responses: ResponseProcessor,
        listeners: Listeners,
        max_tries: int,
    ) -> None:
        self._state = state
        self._hosts = hosts
        self._link_filter = link_filter
        self._responses = responses
        self._listeners = listeners
        self._max_tries = max_tries

    def prepare(self, offer: Offer, now: float) -> Lease | RefusedRequest | None:
        """See :class:`RequestHandler`."""
        link, host, policy = offer.link, offer.host, self._hosts.policy
        refusal = self._link_filter.refusal_when_due(host, link)
        if refusal is None and link.tries >= self._max_tries:
            # Failed links leave the queue earlier: the process died each time it parsed this page.
            logger.error("%s: given up, the crawl ended each time it parsed this page", link.url)
            refusal = FailureKind.INTERNAL_ERROR
        if refusal is None:
            first = self._hosts.robots_first(offer, now)
            if first is not None:
                return first
            # The driver checks its own requests against robots.txt: it has to tell their senders.
            if link.payload or policy.robots_cache.allows(host, link.url):
                return Lease(offer, PAGE, link.url, is_page=True)
            refusal = FailureKind.ROBOTS
        has_row = refusal is FailureKind.INTERNAL_ERROR or policy.has_row(host, refusal)
        settled = self._responses.exclude(link, refusal, now, has_row=has_row)
        self._listeners.notify(SettledEvent(settled, now, offer=offer, pace=host.pace))
        return None if link.payload is None else RefusedRequest(link, refusal)

    def settle(
        self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult
    ) -> SettledFetch:
        """See :class:`RequestHandler`."""
        assert not isinstance(parsed, RobotsFile)
        offer = lease.offer
        settled = self._responses.settle(offer.link, outcome, now, parsed)
        pace = self._hosts.pace_after(offer, offer.link.url, outcome, now)
        if settled.will_retry:
            self._state.frontier.retry(offer, pace, now)
            return settled
        with self._state.stages(Stage.TRAINING):
            self._listeners.notify(SettledEvent(settled, now, outcome, offer, pace))
        return settled
