"""Priorities of links (orderings) and of hosts (exploration); larger comes first.

An ordering turns a link's score and its position in the order of discovery into a priority. Ties go
to the link found earlier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Ordering = Callable[[float, int], float]
"""``(score in [0, 1], found_seq) -> priority``; ``found_seq`` counts up from 0."""


def highest_score_first(score: float, found_seq: int) -> float:
    """Order by score."""
    return score


def breadth_first(score: float, found_seq: int) -> float:
    """Order by discovery (Najork and Wiener, WWW 2001)."""
    return -float(found_seq)


@dataclass(frozen=True, slots=True)
class Exploration:
    """Weights of the exploration bonus, in units of priority; both 0: no exploration."""

    new_host_bonus: float = 0.0
    unproductive_penalty: float = 0.0

    def bonus(self, asked: int, unproductive: float) -> float:
        """Return what is added to the priority of a host's best link.

        Like a confidence bound (UCB1: Auer, Cesa-Bianchi, Fischer 2002, "Finite-time analysis of
        the multiarmed bandit problem"), the bonus falls with the root of the pages ``asked`` for,
        from ``new_host_bonus`` on: it outweighs a difference of d for at most (``new_host_bonus`` /
        d)^2 pages. A host loses ``unproductive_penalty`` each time its ``unproductive`` pages are e
        times as many. The bound is per host; sites with unlimited host names are limited by the
        scope.
        """
        return self.new_host_bonus / math.sqrt(
            1.0 + asked
        ) - self.unproductive_penalty * math.log1p(unproductive)


NO_EXPLORATION = Exploration()


def unproductive_after(unproductive: float, relevance: float) -> float:
    """Return the unproductive count after a page of ``relevance`` in [0, 1].

    A page surely on topic resets it, a doubtful one halves it.
    """
    return (unproductive + 1.0) * (1.0 - relevance)
