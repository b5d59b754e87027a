"""Ordering policies: from what is known of a link to its place in the queue.

A policy turns a link's predicted score and its place in the order of
discovery into a priority; larger comes first. Ties go to the earlier found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from focused.errors import ConfigurationError

Ordering = Callable[[float, int], float]
"""``(score in [0, 1], found_seq) -> priority``; ``found_seq`` counts up from 0."""


def most_promising_first(score: float, found_seq: int) -> float:
    """Order by the apprentice's score alone."""
    return score


def breadth_first(score: float, found_seq: int) -> float:
    """First found, first fetched (Najork and Wiener, WWW 2001)."""
    return -float(found_seq)


ORDERINGS: Mapping[str, Ordering] = {
    "focused": most_promising_first,
    "bfs": breadth_first,
}


def ordering_named(name: str) -> Ordering:
    """Return the policy. Raises ConfigurationError for an unknown name."""
    try:
        return ORDERINGS[name]
    except KeyError:
        known = ", ".join(ORDERINGS)
        raise ConfigurationError(
            f"FOCUSED_POLICY: no policy is named {name!r}; there are {known}"
        ) from None
