"""Listeners for settled links: what a crawl updates when a link leaves its queue for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from focused.crawl.policy import LinkReprioritiser
from focused.crawl.steps import SettledFetch
from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink, unproductive_after
from focused.web.page import Outcome


@dataclass(frozen=True, slots=True)
class SettledEvent:
    """One settled link.

    ``outcome`` is None when no request was sent. ``offer`` and ``pace`` are None when the link
    was taken out of its queue beforehand.
    """

    settled: SettledFetch
    now: float
    outcome: Outcome | None = None
    offer: Offer | None = None
    pace: HostPace | None = None


class SettledPageListener(Protocol):
    """Reacts to each settled link. The crawl calls its listeners in order and commits after."""

    def on_settled(self, event: SettledEvent) -> None:
        """Process one settled link."""


class Listeners:
    """The listeners of a crawl, in the order in which they are called."""

    def __init__(self, listeners: Iterable[SettledPageListener]) -> None:
        self._calls = [listener.on_settled for listener in listeners]

    def notify(self, event: SettledEvent) -> None:
        """Call each listener."""
        for call in self._calls:
            call(event)


class FrontierUpdater:
    """Settles the link in the frontier and updates its host's exploration counts."""

    def __init__(
        self, frontier: DiskFrontier, take_released: Callable[[], Sequence[QueuedLink]]
    ) -> None:
        """``take_released`` returns skipped links to queue again."""
        self._frontier = frontier
        self._take_released = take_released

    def on_settled(self, event: SettledEvent) -> None:
        """Take the link out of its queue and queue the links that were skipped for it."""
        offer, settled = event.offer, event.settled
        if offer is not None and event.pace is not None:
            host = offer.host
            if event.outcome is not None:
                host.asked += 1
                if settled.outcome != "redirected" and settled.duplicate_of != offer.link.url:
                    host.unproductive = unproductive_after(host.unproductive, settled.new_relevance)
            self._frontier.settle(offer, event.pace, event.now)
        for link in self._take_released():
            self._frontier.push(link, event.now)


class QueueReprioritiser:
    """Moves queued links as the policy's :class:`LinkReprioritiser` says."""

    def __init__(self, frontier: DiskFrontier, reprioritiser: LinkReprioritiser) -> None:
        self._frontier = frontier
        self._reprioritiser = reprioritiser

    def on_settled(self, event: SettledEvent) -> None:
        """Apply the policy's new priorities."""
        self._frontier.reprioritise(self._reprioritiser.after(event.settled), event.now)
