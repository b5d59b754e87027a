"""The ordering policy of a crawl: what makes a link's priority. The loop chooses by it.

A scorer predicts each link's relevance when its page is classified. An ordering turns the score
into a priority. An optional reprioritiser moves queued links later. :class:`LinkOrder` is what the
state stores of it, for tools that edit the frontier of a stopped crawl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from focused.crawl.steps import SettledFetch
from focused.errors import StateError
from focused.frontier.queued_link import NO_EXPLORATION, Exploration, Ordering, highest_score_first
from focused.link_scoring.link_features import clipped_log_odds
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer
from focused.storage.tables import Tables


class LinkReprioritiser(Protocol):
    """Moves queued links as pages are settled."""

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Return new priorities by normalised URL after a link was settled.

        Called for every settled link, after its page's own links were queued. URLs that are not
        queued are ignored.
        """


@dataclass(frozen=True, slots=True)
class Policy:
    """How a crawl orders its fetches.

    ``scorer`` predicts in [0, 1]; ``ordering`` turns that into a priority, any real number. A
    ``patient`` policy waits up to politeness.patience for a link whose priority is higher by at
    least ``worth_waiting_for``. ``exploration`` adds a bonus for little known hosts, in units of
    priority. An online scorer (:class:`focused.link_scoring.protocols.OnlineLinkScorer`) is trained
    on each classified page and scores links again when they are offered; ``ordering`` then takes
    its rank score.
    """

    name: str
    scorer: LinkScorer
    ordering: Ordering = highest_score_first
    patient: bool = True
    worth_waiting_for: float = 0.1
    exploration: Exploration = NO_EXPLORATION
    reprioritiser: LinkReprioritiser | None = None

    def calibrate_scores(self, scores: Sequence[float]) -> Sequence[float]:
        """Return the scores of links with features as they are shown and stored."""
        calibrate = getattr(self.scorer, "calibrate_scores", None)
        return scores if calibrate is None else calibrate(scores)

    def wait_threshold(self, patience_s: float) -> float:
        """Return the difference of priorities for which a link waits; infinite without patience."""
        return self.worth_waiting_for if self.patient and patience_s > 0 else math.inf


MIN_PRIORITY_CHANGE = 0.1
"""A queued link whose priority changed by less stays in place: moving it takes three writes."""
_LINK_ORDER_META = "order"
_MAX_LOG_ODDS = 14.0


@dataclass(frozen=True, slots=True)
class LinkOrder:
    """How priorities follow from scores.

    ``learns``: links are scored again when offered, and priorities are in nats. ``by_score``:
    priorities follow from scores alone.
    """

    learns: bool = False
    by_score: bool = False
    exploration: Exploration = NO_EXPLORATION

    def priority(self, score: float) -> float | None:
        """Return the priority of a score in [0, 1]; None where scores don't determine it."""
        return priority_from_score(score, learns=self.learns) if self.by_score else None


def priority_from_score(score: float, *, learns: bool) -> float:
    """Convert a score in [0, 1] to the scale of priorities; a seed's 1 comes first."""
    return clipped_log_odds(score, _MAX_LOG_ODDS) if learns else score


def link_order_of(policy: Policy) -> LinkOrder:
    """Return the policy's link order."""
    return LinkOrder(
        learns=isinstance(policy.scorer, OnlineLinkScorer),
        by_score=policy.ordering is highest_score_first and policy.reprioritiser is None,
        exploration=policy.exploration,
    )


def save_link_order(tables: Tables, order: LinkOrder) -> None:
    """Write the link order into the open transaction."""
    tables.put_meta(_LINK_ORDER_META, order)


def load_link_order(tables: Tables) -> LinkOrder:
    """Read the link order of a crawl's state; StateError when there is none."""
    try:
        return msgspec.convert(tables.get_meta(_LINK_ORDER_META), LinkOrder)
    except msgspec.ValidationError as error:
        raise StateError(
            f"the crawl's state lacks the order of its links ({error}): it was begun a "
            "moment ago, or by another version. Let the crawl go on for a while, and try again."
        ) from error
