"""Policies that order a crawl: each says how links are scored, queued and moved.

A file per policy, each with a function ``policy(inputs) -> Policy`` and its
source. All are driven alike, by the crawl itself, live or simulated; they
differ in nothing but what stands in their :class:`focused.crawl.policy.Policy`.
None sees a label: the oracles, which do, are the examination's.
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
