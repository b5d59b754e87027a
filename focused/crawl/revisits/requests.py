"""Handle the requests of revisits, and of the pages that cannot exist which precede some."""

from __future__ import annotations

from focused.crawl.leases import Lease
from focused.crawl.page_parser import EarlyResult
from focused.crawl.purposes import HostAccess
from focused.crawl.revisits.collection import REVISIT
from focused.crawl.revisits.revisits import ChangeDetector, RevisitProcessor
from focused.crawl.steps import SettledFetch
from focused.frontier.host import HostPace
from focused.frontier.interface import Frontier, Offer
from focused.web.page import Failed, FailureKind, Outcome
from focused.web.robots.robots_rules import RobotsFile


class RevisitRequests:
    """Fetches pages of the collection again; see :class:`focused.crawl.purposes.RequestHandler`."""

    def __init__(
        self,
        detector: ChangeDetector,
        processor: RevisitProcessor,
        hosts: HostAccess,
        frontier: Frontier,
    ) -> None:
        self._detector = detector
        self._processor = processor
        self._hosts = hosts
        self._frontier = frontier

    def prepare(self, offer: Offer, now: float) -> Lease | None:
        """Lease the page, or a page that cannot exist; None if robots.txt forbids it by now."""
        url, host = offer.link.url, offer.host
        first = self._hosts.robots_first(offer, now)
        if first is not None:
            return first
        if not self._hosts.policy.robots_allows(host, url):
            self._processor.settle(offer.link, Failed(url, FailureKind.ROBOTS), now, None)
            self._end(offer, host.pace, now)
            return None
        missing = self._detector.missing_url_to_request(url, now)
        if missing is not None and self._hosts.policy.robots_allows(host, missing):
            return Lease(offer, REVISIT, missing)
        headers = self._detector.conditional_headers(url, now)
        return Lease(offer, REVISIT, url, headers=headers, is_page=True)

    def settle(
        self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult
    ) -> SettledFetch | None:
        """Process the outcome; after a page that cannot exist the offered link stays queued."""
        assert not isinstance(parsed, RobotsFile)
        offer = lease.offer
        if not lease.is_page:
            self._processor.settle_missing_page(offer.link, outcome, now, parsed)
            pace = self._hosts.pace_after(offer, lease.url, outcome, now)
            self._frontier.put_back(offer, pace, now)
            return None
        settled = self._processor.settle(offer.link, outcome, now, parsed)
        self._end(offer, self._hosts.pace_after(offer, lease.url, outcome, now), now)
        return settled

    def _end(self, offer: Offer, pace: HostPace, now: float) -> None:
        self._frontier.settle(offer, pace, now)
        self._frontier.forget(offer.host.name, offer.link.key)
