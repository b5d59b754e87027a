"""Orderings: from what is known of a link to its place in the queue.

An ordering turns a link's predicted score and its place in the order of
discovery into a priority; larger comes first. Ties go to the earlier found.
"""

from __future__ import annotations

from collections.abc import Callable

Ordering = Callable[[float, int], float]
"""``(score in [0, 1], found_seq) -> priority``; ``found_seq`` counts up from 0."""


def most_promising_first(score: float, found_seq: int) -> float:
    """Order by the score alone."""
    return score


def breadth_first(score: float, found_seq: int) -> float:
    """First found, first fetched (Najork and Wiener, WWW 2001)."""
    return -float(found_seq)
