"""Share one budget of pages among partitions, so that they crawl like a single crawl.

A single crawl takes its best link first, and waits for it a moment when its host is not due. So do
partitions: each tells the priorities of its best links. The next pages go to the best links of all
partitions, and a partition fetches nothing while another has a clearly better link.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from focused.rounds.messages import Ready

_ROUNDS = 60
"""Rounds in which a budget of pages is fetched, unless it is so large that they take longer."""
_MIN_PAGES = 10
_MAX_PRIORITIES = 2_000


@dataclass(frozen=True, slots=True)
class PageGrants:
    """Grants the pages of a budget round by round; ``pages`` None is without limit."""

    pages: int | None

    @property
    def at_once(self) -> int:
        """The pages of a round, of all partitions together."""
        return 1 if self.pages is None else max(_MIN_PAGES, math.ceil(self.pages / _ROUNDS))

    def wanted_priorities(self, partitions: int, fetched: int) -> int:
        """The best links that each partition is to tell: more than one in the last rounds."""
        # Pages in flight are not known yet, and what was granted in vain is to be taken back.
        if self._for_each(2 * partitions, (self.pages or 0) - fetched):
            return 1
        return min(self.at_once, _MAX_PRIORITIES)

    def share(self, number: int, ready: Mapping[int, Ready], granted: int) -> Mapping[int, int]:
        """Return what to grant in a round: enough to each, or the last pages to the best links.

        ``granted`` are the pages that all partitions have been granted so far.
        """
        if self.pages is None:
            return {}
        left = max(self.pages - granted, 0)
        if each := self._for_each(len(ready), left):
            return dict.fromkeys(ready, each)
        best = share_out(left, {n: each.priorities for n, each in ready.items()})
        if best:
            return best
        # Without a link that is due now, all have their turn.
        waiting = deque(n for n, each in ready.items() if each.queued)
        waiting.rotate(-number)
        return dict.fromkeys(islice(waiting, left), 1)

    def _for_each(self, partitions: int, left: int) -> int:
        """The pages that each of so many partitions gets; 0 if the best links are to get them."""
        enough = self.at_once
        each = enough if self.pages is None else min(enough, left // partitions)
        return each if each >= min(enough, _MAX_PRIORITIES) else 0


def priority_floors(
    priorities: Mapping[int, Sequence[float]], worth_waiting_for: float
) -> Mapping[int, float]:
    """Return the priority below which each partition fetches nothing, by partition.

    It is the best priority of the other partitions less ``worth_waiting_for``.
    """
    best = sorted((each[0] for each in priorities.values() if each), reverse=True)
    floors = [value - worth_waiting_for for value in best] + [-math.inf, -math.inf]
    return {
        partition: floors[1] if own and own[0] == best[0] else floors[0]
        for partition, own in priorities.items()
    }


def share_out(pages: int, priorities: Mapping[int, Sequence[float]]) -> Mapping[int, int]:
    """Return how many of the best ``pages`` links belong to each partition that has some.

    Among equals the lower partition comes first.
    """
    if not priorities:
        return {}
    owners = np.repeat(list(priorities), [len(best) for best in priorities.values()])
    values = np.concatenate([np.asarray(best, dtype=np.float64) for best in priorities.values()])
    chosen = owners[np.argsort(-values, kind="stable")[:pages]]
    numbers, counts = np.unique(chosen, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
