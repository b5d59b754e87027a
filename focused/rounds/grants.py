"""The pages of a budget, granted round by round, and the links worth waiting for.

Partitions crawl like a single crawl, which takes its best link first, and waits for it a moment
when its host is not due: the last pages go to the best links of all, and a partition fetches
nothing while another has a clearly better link.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from focused.rounds.messages import Progress, Ready

_ROUNDS = 60
"""Rounds in which a budget of pages is fetched, unless it is so large that they take longer."""
_MIN_PAGES = 10
_MAX_PRIORITIES = 2_000


class PageGrants:
    """What each partition may fetch; ``pages`` None is without limit."""

    def __init__(self, pages: int | None, granted: Mapping[int, int]) -> None:
        self.granted = dict(granted)
        """What each partition may have fetched in all."""
        self._pages = pages
        self._at_once = 1 if pages is None else max(_MIN_PAGES, math.ceil(pages / _ROUNDS))
        """The pages of a round, of all partitions together."""

    @property
    def round_pages(self) -> float:
        """The pages after which a round has brought enough."""
        return math.inf if self._pages is None else self._at_once

    def limit(self, partition: int) -> int | None:
        """Return what a partition may have fetched in all; None is without limit."""
        return None if self._pages is None else self.granted[partition]

    def needs_more(self, partition: int, progress: Progress | None) -> bool:
        """Whether a partition has fetched all that it was granted, and a link that is due."""
        if progress is None or progress.best is None or self._pages is None:
            return False
        return progress.fetched >= self.granted[partition]

    def wanted_priorities(self, fetched: int) -> int:
        """The best links that each partition is to tell: more than one in the last rounds."""
        # Pages in flight are not known yet, and what was granted in vain is to be taken back.
        if self._for_each(2 * len(self.granted), (self._pages or 0) - fetched):
            return 1
        return min(self._at_once, _MAX_PRIORITIES)

    def grant(self, number: int, ready: Mapping[int, Ready]) -> None:
        """Grant the pages of a round: enough to each, or the last ones to the best links."""
        for n, each in ready.items():
            # What it did not use is taken back.
            self.granted[n] = int(each.counters["fetched"]) + each.in_flight
        for n, pages in self._shares(number, ready).items():
            self.granted[n] += pages

    def _shares(self, number: int, ready: Mapping[int, Ready]) -> Mapping[int, int]:
        if self._pages is None:
            return {}
        left = max(self._pages - sum(self.granted.values()), 0)
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
        enough = self._at_once
        each = enough if self._pages is None else min(enough, left // partitions)
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
