"""Our own: the apprentice's prediction, most promising first, as the live crawl has it.

Its ablations leave one of the apprentice's features out.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.learning.apprentice import Apprentice
from focused.learning.protocols import LinkScorer
from focused.policies.policy import Aids

EXPLORATION = 6.0
"""In nats: what the best link of a host is worth more before any page of the host is known."""

WORTH_WAITING_FOR = 0.5
"""In nats: half as likely again to be on topic."""


def policy(aids: Aids) -> Policy:
    """Make the policy from the live crawl's own link scorer."""
    return _policy("focused", aids.apprentice)


def without(aids: Aids, *, feature: str) -> Policy:
    """Make the policy from an apprentice that gives ``feature`` no weight."""
    name = f"focused-without-{feature.replace('_', '-')}"
    return _policy(name, Apprentice(aids.judge, without=[feature]))


def _policy(name: str, scorer: LinkScorer, exploration: float = EXPLORATION) -> Policy:
    return Policy(name, scorer, worth_waiting_for=WORTH_WAITING_FOR, exploration=exploration)
