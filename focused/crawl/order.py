"""How a crawl orders its links, as far as a tool must know that never sees the crawl's policy.

The crawl keeps it with its state, so that who tends a stopped crawl puts links
where the crawl itself would.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from focused.crawl.policy import Policy
from focused.errors import StateError
from focused.frontier.exploration import NONE, Exploration
from focused.frontier.ordering import most_promising_first
from focused.frontier.tables import Tables
from focused.learning.evidence import log_odds_within
from focused.learning.protocols import LearningScorer

MOVED = 0.02
"""A link that fell or rose by less, in priority, stays where it is: a move costs three writes."""
_KEY = "order"
_SURE_NATS = 14.0


@dataclass(frozen=True, slots=True)
class Order:
    """``learns``: links are scored again at their turn, and priorities are in nats.

    ``by_score``: priorities follow from scores; otherwise they are the policy's
    own reckoning. ``exploration`` is what is hoped of hosts.
    """

    learns: bool = False
    by_score: bool = False
    exploration: Exploration = NONE

    def priority(self, score: float) -> float | None:
        """Where a score in [0, 1] puts a link; None where scores do not order."""
        return worth_of(score, learns=self.learns) if self.by_score else None


def worth_of(score: float, *, learns: bool) -> float:
    """A score in [0, 1] in the unit in which links are compared; a seed's 1 comes before all."""
    return log_odds_within(score, _SURE_NATS) if learns else score


def order_of(policy: Policy) -> Order:
    """The policy's order."""
    return Order(
        learns=isinstance(policy.scorer, LearningScorer),
        by_score=policy.ordering is most_promising_first and policy.steering is None,
        exploration=policy.exploration,
    )


def keep_order(tables: Tables, order: Order) -> None:
    """Write the crawl's order into the open transaction."""
    tables.put_meta(_KEY, order)


def kept_order(tables: Tables) -> Order:
    """The order of the crawl whose state this is; StateError when none was kept."""
    try:
        return msgspec.convert(tables.get_meta(_KEY), Order)
    except msgspec.ValidationError as error:
        raise StateError(
            f"the crawl's state does not tell how it orders its links ({error}): it was begun a "
            "moment ago, or by another version. Let the crawl go on for a while, and try again."
        ) from error
