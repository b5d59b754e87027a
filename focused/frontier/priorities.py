"""Orderings: from what is known of a link to its place in the queue.

An ordering turns a link's predicted score and its place in the order of
discovery into a priority; larger comes first. Ties go to the earlier found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Ordering = Callable[[float, int], float]
"""``(score in [0, 1], found_seq) -> priority``; ``found_seq`` counts up from 0."""


def highest_score_first(score: float, found_seq: int) -> float:
    """Order by the score alone."""
    return score


def breadth_first(score: float, found_seq: int) -> float:
    """First found, first fetched (Najork and Wiener, WWW 2001)."""
    return -float(found_seq)


@dataclass(frozen=True, slots=True)
class Exploration:
    """``new_host_bonus`` and ``unproductive_penalty`` are in the unit of priorities, 0 or more; both 0: none."""

    new_host_bonus: float = 0.0
    unproductive_penalty: float = 0.0

    def bonus(self, asked: int, unproductive: float) -> float:
        """What is added to the priority of a host's best link.

        ``asked`` pages of the host were settled; ``unproductive`` of them brought nothing
        (:func:`unproductive_after`). A host that was never asked gets ``new_host_bonus``, which
        outweighs a difference of d for at most (``new_host_bonus`` / d)^2 pages a host.
        One that brings nothing loses ``unproductive_penalty`` each time its unproductive pages are e
        times as many: of two hosts that bring nothing the one with the better links,
        by d, is asked for at most exp(d / ``unproductive_penalty``) times as many pages, and a
        few for ``new_host_bonus``.
        """
        return self.new_host_bonus / math.sqrt(
            1.0 + asked
        ) - self.unproductive_penalty * math.log1p(unproductive)


NO_EXPLORATION = Exploration()


def unproductive_after(unproductive: float, relevance: float) -> float:
    """The unproductive pages of a host after one more of ``relevance`` in [0, 1]: as far as it was not.

    A page surely on topic begins the count anew, a doubtful one halves it.
    """
    return (unproductive + 1.0) * (1.0 - relevance)
