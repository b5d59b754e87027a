"""Which links stand together: in one list, table, paragraph or section."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from focused.web.walk import RawLink


def group_by_block(links: Sequence[RawLink]) -> list[tuple[int, int]]:
    """Return, for each link, its block's number and how many of the links that block holds.

    A link's block is the nearest around it that holds another of the links,
    the whole page at last. Numbers run from 0 in the links' document order.

    The time is that of sorting, however blocks nest: a block that is passed
    over holds one link alone, so no block is passed over twice.
    """
    order = sorted(range(len(links)), key=lambda i: links[i].start)
    starts = [links[i].start for i in order]
    groups = [(0, 1)] * len(links)
    known: dict[int, tuple[int, int]] = {}
    before = -1
    for i, after in zip(order, [*starts[1:], sys.maxsize], strict=False):
        block = links[i].block
        while before < block.start and block.end < after and block.parent is not None:
            block = block.parent
        group = known.get(id(block))
        if group is None:
            held = bisect_right(starts, block.end) - bisect_left(starts, block.start)
            group = known[id(block)] = (len(known), held)
        groups[i] = group
        before = links[i].start
    return groups
