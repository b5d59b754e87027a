"""First found, first fetched: the baseline (Najork, Wiener: WWW 2001)."""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.frontier.ordering import breadth_first
from focused.policies.per_link import unscored
from focused.policies.policy import Aids


def policy(aids: Aids) -> Policy:
    """Make the policy; needs no aid."""
    return Policy("bfs", unscored(), ordering=breadth_first, patient=False)
