"""Depth-first: a stack (Cho, Garcia-Molina, Page: WWW 1998 mention it).

Of one page's links the last comes first; a link that is met again returns to the top.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.orderings.base import PolicyInputs, constant_scorer


def last_found_first(score: float, found_seq: int) -> float:
    """Order by discovery, latest first."""
    return float(found_seq)


def policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    return Policy("dfs", constant_scorer(), ordering=last_found_first, patient=False)
