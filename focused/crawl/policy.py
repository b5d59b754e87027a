"""A policy: what decides the order of a crawl's fetches, in one value.

A scorer predicts each link when its page is judged; an ordering turns that
into a place in the queue; a steering, where there is one, moves queued links
when later pages tell more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from focused.crawl.steps import Settled
from focused.frontier.exploration import NONE, Exploration
from focused.frontier.ordering import Ordering, most_promising_first
from focused.learning.protocols import LinkScorer


class Steering(Protocol):
    """Watches a crawl and moves its queued links."""

    def after(self, settled: Settled) -> Mapping[str, float]:
        """Take in what became of one link; return new priorities by normalised URL.

        Called for every link that leaves the queue for good, after its page's
        own links were queued. URLs that are not queued are passed over.
        """


@dataclass(frozen=True, slots=True)
class Policy:
    """How a crawl orders its fetches.

    ``scorer`` predicts in [0, 1], ``ordering`` makes priorities of that, any
    real numbers. ``patient`` policies may wait for a clearly better link
    whose host is not due yet, as long as the topic's politeness.patience
    says; better by ``worth_waiting_for`` in priority: waiting for what is hardly
    better costs time and brings nothing. ``exploration``, in priority, is what is hoped
    of little known hosts, and of dry ones not. A scorer that learns
    (``LearningScorer`` in :mod:`focused.learning.protocols`) is taught each
    judged page, and asked again for a link's score when the link's turn comes;
    what it calls the link's worth takes the place of the score in ``ordering``.
    """

    name: str
    scorer: LinkScorer
    ordering: Ordering = most_promising_first
    patient: bool = True
    worth_waiting_for: float = 0.1
    exploration: Exploration = NONE
    steering: Steering | None = None
