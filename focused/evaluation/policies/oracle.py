"""The greedy oracle: sees the labels of what is in the frontier, and nothing beyond it.

Takes an on-topic link whenever it holds one, the earliest found; otherwise
goes breadth-first. A bound of sorts: it cannot tell which off-topic page
leads to the topic, so a policy that can may beat it.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.evaluation.policies.per_link import PerLink
from focused.evaluation.policies.policy import Aids, Policy
from focused.frontier.ordering import most_promising_first
from focused.web.page import Judgement, Link


def policy(aids: Aids) -> Policy:
    """Make the policy from the labels."""

    def labels(judgement: Judgement, links: Sequence[Link]) -> list[float]:
        return [float(aids.is_relevant(link.url)) for link in links]

    return Policy("oracle", PerLink(labels), most_promising_first, patient=True)
