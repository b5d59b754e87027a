"""What a link that leaves its queue means for the rest: mirrors, traps, hosts, learner, order."""

from __future__ import annotations

from focused.crawl.apprenticeship import Apprenticeship
from focused.crawl.host_care import HostCare
from focused.crawl.policy import Steering
from focused.crawl.steps import Settled
from focused.crawl.traps import Traps
from focused.frontier.exploration import barren_after
from focused.frontier.frontier import Frontier, Offer
from focused.frontier.politeness import HostPace
from focused.web.page import FailureKind, Outcome


class Aftermath:
    """Tells all who learn from a settled link, in their order; the caller commits."""

    def __init__(
        self,
        frontier: Frontier,
        care: HostCare,
        traps: Traps,
        apprenticeship: Apprenticeship,
        steering: Steering | None,
    ) -> None:
        self._frontier = frontier
        self._care = care
        self._traps = traps
        self._apprenticeship = apprenticeship
        self._steering = steering

    def of_exclusion(self, offer: Offer, settled: Settled, now: float) -> None:
        """The offered link was settled without a fetch."""
        self._frontier.settle(offer, offer.host.pace, now)
        if settled.failure is not FailureKind.MIRROR:
            self._care.mirrors.failed(offer.link.url)
        self._queue_freed(now)
        self._steer(settled, now)

    def of_refusal(self, settled: Settled, now: float) -> None:
        """A link that waited was taken out of its queue and settled without a fetch."""
        self._care.mirrors.failed(settled.link.url)
        self._queue_freed(now)
        self._steer(settled, now)

    def of_page(
        self, offer: Offer, outcome: Outcome, settled: Settled, pace: HostPace, now: float
    ) -> None:
        """The offered link was asked for, and is not tried again."""
        if settled.outcome == "fetched":
            self._care.fetched(offer.host, offer.link.url, settled)
        elif settled.outcome != "feed":
            self._care.mirrors.failed(offer.link.url)
        self._traps.settled(offer.link, outcome, settled)
        offer.host.asked += 1
        if settled.outcome != "redirected" and settled.duplicate_of != offer.link.url:
            offer.host.barren = barren_after(offer.host.barren, settled.brought)
        self._frontier.settle(offer, pace, now)
        self._queue_freed(now)
        self._apprenticeship.learn(settled)
        if settled.outcome == "fetched":
            self._apprenticeship.refresh(offer.host, now)
        self._steer(settled, now)

    def _queue_freed(self, now: float) -> None:
        for link in self._care.mirrors.take_freed():
            self._frontier.push(link, now)

    def _steer(self, settled: Settled, now: float) -> None:
        if self._steering is not None:
            self._frontier.reprioritise(self._steering.after(settled), now)
