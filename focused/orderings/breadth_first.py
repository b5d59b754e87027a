"""Breadth-first, the baseline (Najork, Wiener: WWW 2001)."""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.frontier.priorities import breadth_first
from focused.orderings.base import PolicyInputs, constant_scorer


def policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    return Policy("bfs", constant_scorer(), ordering=breadth_first, patient=False)
