"""Whose scores are probabilities, to be held against what came; the others' only order links."""

from __future__ import annotations

_OURS = "focused"


def has_probability_scores(policy: str) -> bool:
    """Whether the policy of that name means its scores as probabilities.

    The apprentice does, and does so with a part left out. Baselines score for
    the order alone (breadth-first gives every link 0), and of a policy of one's
    own nothing is known.
    """
    return policy == _OURS or policy.startswith(f"{_OURS}-without-")
