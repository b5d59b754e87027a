"""A policy: what decides the order of a crawl's fetches, in one value.

A scorer predicts each link when its page is judged; an ordering turns that
into a place in the queue; a reprioritiser, where there is one, moves queued links
when later pages tell more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from focused.crawl.steps import SettledFetch
from focused.errors import StateError
from focused.frontier.priorities import NO_EXPLORATION, Exploration, Ordering, highest_score_first
from focused.link_scoring.link_features import clipped_log_odds
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer
from focused.storage.tables import Tables


class LinkReprioritiser(Protocol):
    """Watches a crawl and moves its queued links."""

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
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
    (``LearningScorer`` in :mod:`focused.link_scoring.protocols`) is taught each
    judged page, and asked again for a link's score when the link's turn comes;
    what it calls the link's worth takes the place of the score in ``ordering``.
    """

    name: str
    scorer: LinkScorer
    ordering: Ordering = highest_score_first
    patient: bool = True
    worth_waiting_for: float = 0.1
    exploration: Exploration = NO_EXPLORATION
    reprioritiser: LinkReprioritiser | None = None


MIN_PRIORITY_CHANGE = 0.02
"""A link that fell or rose by less, in priority, stays where it is: a move costs three writes."""
_LINK_ORDER_META = "order"
_MAX_LOG_ODDS = 14.0


@dataclass(frozen=True, slots=True)
class LinkOrder:
    """``learns``: links are scored again at their turn, and priorities are in nats.

    ``by_score``: priorities follow from scores; otherwise they are the policy's
    own reckoning. ``exploration`` is what is hoped of hosts.
    """

    learns: bool = False
    by_score: bool = False
    exploration: Exploration = NO_EXPLORATION

    def priority(self, score: float) -> float | None:
        """Where a score in [0, 1] puts a link; None where scores do not order."""
        return priority_from_score(score, learns=self.learns) if self.by_score else None


def priority_from_score(score: float, *, learns: bool) -> float:
    """A score in [0, 1] in the unit in which links are compared; a seed's 1 comes before all."""
    return clipped_log_odds(score, _MAX_LOG_ODDS) if learns else score


def link_order_of(policy: Policy) -> LinkOrder:
    """The policy's order."""
    return LinkOrder(
        learns=isinstance(policy.scorer, OnlineLinkScorer),
        by_score=policy.ordering is highest_score_first and policy.reprioritiser is None,
        exploration=policy.exploration,
    )


def save_link_order(tables: Tables, order: LinkOrder) -> None:
    """Write the crawl's order into the open transaction."""
    tables.put_meta(_LINK_ORDER_META, order)


def load_link_order(tables: Tables) -> LinkOrder:
    """The order of the crawl whose state this is; StateError when none was kept."""
    try:
        return msgspec.convert(tables.get_meta(_LINK_ORDER_META), LinkOrder)
    except msgspec.ValidationError as error:
        raise StateError(
            f"the crawl's state does not tell how it orders its links ({error}): it was begun a "
            "moment ago, or by another version. Let the crawl go on for a while, and try again."
        ) from error
