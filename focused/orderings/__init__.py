"""The orderings of a crawl: our own, best-first and breadth-first.

A policy is a function ``make_policy(inputs) -> Policy``. Live and simulated crawls use the same
:class:`focused.crawl.policy.Policy`, and no policy sees a label. Orderings of the literature are
entry points of the group ``focused.orderings``, which any distribution may have.
"""

from __future__ import annotations

from focused.crawl.policy import LinkReprioritiser, Policy
from focused.orderings.base import (
    POLICIES,
    PolicyFactory,
    PolicyInputs,
    find_policy,
    ordering_names,
)

__all__ = [
    "POLICIES",
    "LinkReprioritiser",
    "Policy",
    "PolicyFactory",
    "PolicyInputs",
    "find_policy",
    "ordering_names",
]
