"""Our own policy, that of the live crawl: highest score of the apprentice first."""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.frontier.priorities import Exploration
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer
from focused.orderings.base import PolicyInputs

EXPLORATION = Exploration(new_host_bonus=3.0, unproductive_penalty=2.0)
"""In nats. Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md)."""

WORTH_WAITING_FOR = 0.5
"""In nats: about 1.6 times the odds of being on topic."""


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from the live crawl's link scorer.

    A custom scorer that does not learn orders by its scores, which are no nats, and without an
    exploration bonus.
    """
    if not isinstance(inputs.apprentice, OnlineLinkScorer):
        return Policy("focused", inputs.apprentice)
    return focused_policy("focused", inputs.apprentice)


def focused_policy(name: str, scorer: LinkScorer, exploration: Exploration = EXPLORATION) -> Policy:
    """Create the policy, or an ablation of it, from a scorer whose scores are nats."""
    return Policy(name, scorer, worth_waiting_for=WORTH_WAITING_FOR, exploration=exploration)
