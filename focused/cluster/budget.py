"""Share one budget of pages among partitions, so that they crawl like a single crawl.

A single crawl takes its best link first, and waits for it a moment when its host is not due. So do
partitions: each tells the priorities of its best links about once a second. The next pages are
granted to the best links of all partitions, and a partition fetches nothing while another has a
clearly better link (:func:`priority_floors`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

MIN_PAGES_AHEAD = 10
"""Pages that are granted ahead in a slow crawl."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The pages granted to a partition, and those ``used``: fetched or in flight.

    ``priorities`` are those of its best links that it may fetch soon, best first
    (:meth:`focused.crawl.loop.Crawl.best_priorities`).
    """

    granted: int
    used: int
    priorities: Sequence[float]

    @property
    def left(self) -> int:
        """The pages granted and not used."""
        return max(self.granted - self.used, 0)


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


def unused_pages(demands: Mapping[int, Demand], worth_waiting_for: float) -> Mapping[int, int]:
    """Return the pages to take back from partitions that may fetch nothing now."""
    floor = _floor(demands, worth_waiting_for)
    return {
        partition: demand.left
        for partition, demand in demands.items()
        if demand.left and (not demand.priorities or demand.priorities[0] < floor)
    }


def next_grants(
    budget: int, demands: Mapping[int, Demand], worth_waiting_for: float, pages_ahead: int
) -> Mapping[int, int]:
    """Return the pages to grant to partitions next, for the best links of all.

    Together they have at most ``pages_ahead`` pages that they have not used, and ``budget`` in all.
    Twice the pages that were fetched since the last call suffice, but :data:`MIN_PAGES_AHEAD`.
    """
    pages = min(
        budget - sum(demand.granted for demand in demands.values()),
        pages_ahead - sum(demand.left for demand in demands.values()),
    )
    if pages <= 0:
        return {}
    floor = _floor(demands, worth_waiting_for)
    # The first links are those that the pages left are for.
    return share_out(
        pages,
        {
            partition: [value for value in demand.priorities[demand.left :] if value >= floor]
            for partition, demand in demands.items()
        },
    )


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


def _floor(demands: Mapping[int, Demand], worth_waiting_for: float) -> float:
    best = [demand.priorities[0] for demand in demands.values() if demand.priorities]
    return max(best) - worth_waiting_for if best else -math.inf
