"""How much is hoped of a host, beside its best link: new hosts are tried, dry ones left.

A bandit's trade of knowing for finding. What is hoped of a host falls with
the root of the pages asked for there, as confidence bounds do (Auer,
Cesa-Bianchi, Fischer 2002, "Finite-time analysis of the multiarmed bandit
problem", UCB1), and with the logarithm of those that brought nothing since the
last good one. The bound is a host's; a site with names
without end is for the scope to hold (``deny_hosts``, ``max_depth``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exploration:
    """``unknown`` and ``dry`` are in the unit of priorities, 0 or more; both 0: none."""

    unknown: float = 0.0
    dry: float = 0.0

    def hope(self, asked: int, barren: float) -> float:
        """What is added to the priority of a host's best link.

        ``asked`` pages of the host were settled; ``barren`` of them brought nothing
        (:func:`barren_after`). A host that was never asked gets ``unknown``, which
        outweighs a difference of d for at most (``unknown`` / d)^2 pages a host.
        One that brings nothing loses ``dry`` each time its barren pages are e
        times as many: of two hosts that bring nothing the one with the better links,
        by d, is asked for at most exp(d / ``dry``) times as many pages, and a
        few for ``unknown``.
        """
        return self.unknown / math.sqrt(1.0 + asked) - self.dry * math.log1p(barren)


NONE = Exploration()


def barren_after(barren: float, relevance: float) -> float:
    """The barren pages of a host after one more of ``relevance`` in [0, 1]: as far as it was not.

    A page surely on topic begins the count anew, a doubtful one halves it.
    """
    return (barren + 1.0) * (1.0 - relevance)
