"""Our own: the apprentice's prediction, most promising first, as the live crawl has it."""

from __future__ import annotations

from focused.policies.policy import Aids, Policy
from focused.frontier.ordering import most_promising_first


def policy(aids: Aids) -> Policy:
    """Make the policy from the live crawl's own link scorer."""
    return Policy("focused", aids.apprentice, most_promising_first, patient=True)
