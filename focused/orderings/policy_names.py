"""The names of the policies that reports and statistics treat specially."""

from __future__ import annotations

_OURS = "focused"


def has_probability_scores(policy: str) -> bool:
    """Whether the scores of this policy are probabilities.

    The apprentice's are, also in ablations. Baselines only rank links, and custom policies are
    unknown.
    """
    return policy == _OURS or policy.startswith(f"{_OURS}-without-")
