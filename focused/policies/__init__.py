"""Policies that order a crawl: each says how links are scored, queued and moved.

A file per policy, each with a function ``policy(aids) -> Policy`` and its
source. All are driven alike, by the crawl itself, live or simulated; they
differ in nothing but what stands in their :class:`focused.crawl.policy.Policy`.
None sees a label: the oracles, which do, are the examination's.
"""

from __future__ import annotations

from focused.crawl.policy import Policy, Steering
from focused.policies.policy import Aids, PolicyMaker
from focused.policies.registry import POLICIES, policy_named

__all__ = ["POLICIES", "Aids", "Policy", "PolicyMaker", "Steering", "policy_named"]
