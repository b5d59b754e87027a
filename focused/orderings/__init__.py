"""Policies from the literature and our own, a file each (the trivial ones in :mod:`simple`).

Each file has a function ``make_policy(inputs) -> Policy`` and names its source. Live and simulated
crawls use the same :class:`focused.crawl.policy.Policy`. No policy sees a label; the oracles, which
do, are in :mod:`focused.experiments.oracles`.
"""

from __future__ import annotations

from focused.crawl.policy import LinkReprioritiser, Policy
from focused.orderings.base import PolicyFactory, PolicyInputs
from focused.orderings.registry import POLICIES, find_policy

__all__ = [
    "POLICIES",
    "LinkReprioritiser",
    "Policy",
    "PolicyFactory",
    "PolicyInputs",
    "find_policy",
]
