"""Policies to compare: each says how links are scored, and how scores order the queue.

A file per policy, each with a function ``policy(aids) -> Policy`` and its
source. All are driven alike, by the crawl itself; they differ in nothing but
what stands in their :class:`Policy`.
"""

from __future__ import annotations

from focused.policies.policy import Aids, Policy
from focused.policies.registry import POLICIES, policy_named

__all__ = ["POLICIES", "Aids", "Policy", "policy_named"]
