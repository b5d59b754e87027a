"""Share one budget of pages among partitions, so that they crawl like a single crawl.

A single crawl takes its best link first, and waits for it a moment when its host is not due. So do
partitions: each tells the priorities of its best links. The next pages go to the best links of all
partitions, and a partition fetches nothing while another has a clearly better link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np


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
