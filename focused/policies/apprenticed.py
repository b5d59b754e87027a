"""Our own: the apprentice's prediction, most promising first, as the live crawl has it.

Its ablations leave one of the apprentice's features out.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.learning.apprentice import Apprentice
from focused.policies.policy import Aids


def policy(aids: Aids) -> Policy:
    """Make the policy from the live crawl's own link scorer."""
    return Policy("focused", aids.apprentice)


def without(aids: Aids, *, feature: str) -> Policy:
    """Make the policy from an apprentice that gives ``feature`` no weight."""
    name = f"focused-without-{feature.replace('_', '-')}"
    return Policy(name, Apprentice(aids.judge, without=feature))
