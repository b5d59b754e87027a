"""The names of the policies that reports and statistics treat specially."""

from __future__ import annotations

BASELINE = "bfs"
FOCUSED = "focused"
ABLATION_PREFIX = f"{FOCUSED}-without-"
"""Prefix of the names of our own policy's ablations."""


def has_probability_scores(policy: str) -> bool:
    """Whether the scores of this policy are probabilities.

    The apprentice's are, also in ablations. Baselines only rank links, and custom policies are
    unknown.
    """
    return policy == FOCUSED or policy.startswith(ABLATION_PREFIX)
