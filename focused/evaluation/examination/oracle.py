"""The greedy oracle: sees the labels of what is in the frontier, and nothing beyond it.

Takes an on-topic link whenever it holds one, the earliest found; otherwise
goes breadth-first. No upper bound: it cannot tell which off-topic page leads
to the topic, and a policy that can may beat it.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.policies.per_link import PerLink
from focused.policies.policy import Aids, Policy
from focused.web.page import Judgement, Link

_A_LITTLE = 1e-12  # found_seq is below 10**9: never as much as a label


def relevant_then_breadth_first(score: float, found_seq: int) -> float:
    """Order by score; between equals, on whatever host, by the order of discovery."""
    return score - _A_LITTLE * found_seq


def policy(aids: Aids) -> Policy:
    """Make the policy from the labels."""

    def labels(judgement: Judgement, links: Sequence[Link]) -> list[float]:
        return [float(aids.is_relevant(link.url)) for link in links]

    return Policy("oracle", PerLink(labels), relevant_then_breadth_first, patient=True)
