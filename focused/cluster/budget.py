"""Share one budget of pages among partitions, in rounds.

A single crawl takes its best links first. In each round the partitions tell the priorities of their
best links, and the round's pages go to the best links of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def share_out(pages: int, priorities: Mapping[int, Sequence[float]]) -> Mapping[int, int]:
    """Return the pages of each partition in a round of ``pages``.

    ``priorities`` are those of each partition's best links, at most ``pages`` of them. Without
    enough links the round is smaller. Among equals the lower partition comes first.
    """
    owners = np.repeat(list(priorities), [len(best) for best in priorities.values()])
    values = np.concatenate([np.asarray(best, dtype=np.float64) for best in priorities.values()])
    chosen = owners[np.argsort(-values, kind="stable")[:pages]]
    numbers, counts = np.unique(chosen, return_counts=True)
    shares = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return {partition: shares.get(partition, 0) for partition in priorities}
