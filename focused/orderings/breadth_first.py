"""First found, first fetched: the baseline (Najork, Wiener: WWW 2001)."""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.frontier.priorities import breadth_first
from focused.orderings.base import PolicyInputs, constant_scorer


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; needs no aid."""
    return Policy("bfs", constant_scorer(), ordering=breadth_first, patient=False)
