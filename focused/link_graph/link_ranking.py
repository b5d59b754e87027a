"""PageRank and HITS over stored graphs of any size: each iteration reads the lists from disk.

What a pass holds in memory is a few numbers a node. Graphs of up to 20 million links are decoded
once instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.link_graph.adjacency import Adjacency, SuccessorLists

DAMPING = 0.85
_MAX_LOADED_LINKS = 20_000_000
_LINKS_A_SUM = 4_000_000

Values = NDArray[np.float64]
"""A number for each node, shape (nodes,)."""


class LinkLists(Protocol):
    """Lists of successors that can be read in order, such as :class:`Adjacency`."""

    nodes: int

    def scan(self) -> Iterator[tuple[int, SuccessorLists]]:
        """Yield the lists of all nodes with the first node of each part."""
        ...


class LoadedLists:
    """The lists of a graph, decoded in memory."""

    def __init__(self, lists: SuccessorLists) -> None:
        self.nodes = len(lists.bounds) - 1
        self._lists = lists

    def scan(self) -> Iterator[tuple[int, SuccessorLists]]:
        """Yield the lists of all nodes with the first node of each part."""
        bounds, begin = self._lists.bounds, 0
        while begin < self.nodes:
            full = int(np.searchsorted(bounds, bounds[begin] + _LINKS_A_SUM))
            end = min(max(full, begin + 1), self.nodes)
            targets = self._lists.targets[bounds[begin] : bounds[end]]
            yield begin, SuccessorLists(bounds[begin : end + 1] - bounds[begin], targets)
            begin = end


def load_if_small(adjacency: Adjacency) -> LinkLists:
    """Return the lists decoded in memory, or the adjacency itself if it is large."""
    return LoadedLists(adjacency.load()) if adjacency.links <= _MAX_LOADED_LINKS else adjacency


def sum_over_links(lists: LinkLists, values: Values) -> Values:
    """Return the sum of ``values`` over the successors of each node."""
    sums = np.zeros(lists.nodes)
    for first, part in lists.scan():
        running = np.concatenate(([0.0], np.cumsum(values[part.targets])))
        sums[first : first + len(part.bounds) - 1] = np.diff(running[part.bounds])
    return sums


def pagerank(
    into: LinkLists,
    out_degrees: NDArray[np.int64],
    *,
    teleport: Values | None = None,
    damping: float = DAMPING,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Values:
    """Return PageRank (Brin and Page 1998); it sums to 1.

    ``into`` has the predecessors. ``teleport``, not negative, is where the random surfer goes on
    who follows no link: everywhere alike without it. With the pages of a topic it gives
    topic-sensitive PageRank (Haveliwala 2002). Pages without links lead there, too. It ends when
    the sum of all changes is below ``tolerance``. Raises ConfigurationError if ``teleport`` is 0.
    """
    nodes = into.nodes
    if not nodes:
        return np.zeros(0)
    start: Values = np.ones(nodes) if teleport is None else np.asarray(teleport, np.float64)
    if not start.sum() > 0:
        raise ConfigurationError(
            "topic-sensitive PageRank needs pages with a relevance above 0; this graph has none"
        )
    start = start / start.sum()
    rank: Values = start
    leads_on = out_degrees > 0
    for _ in range(max_iterations):
        shares = np.divide(rank, out_degrees, out=np.zeros(nodes), where=leads_on)
        lost = 1.0 - damping * rank[leads_on].sum()
        new = damping * sum_over_links(into, shares) + lost * start
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < tolerance:
            break
    return rank


class HubsAndAuthorities(NamedTuple):
    """The score of each node as a hub and as an authority; each has Euclidean norm 1, or is 0."""

    hubs: Values
    authorities: Values


def hits(out: LinkLists, into: LinkLists, *, max_iterations: int = 100) -> HubsAndAuthorities:
    """Return hubs and authorities of the whole graph (Kleinberg 1999)."""
    return iterate_hits(
        lambda hubs: sum_over_links(into, hubs),
        lambda authorities: sum_over_links(out, authorities),
        np.ones(out.nodes),
        max_iterations=max_iterations,
    )


def iterate_hits(
    authorities_of: Callable[[Values], Values],
    hubs_of: Callable[[Values], Values],
    hubs: Values,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
) -> HubsAndAuthorities:
    """Alternate between authorities of hubs and hubs of authorities until both stay."""
    hubs, authorities = _normalized(hubs), np.zeros_like(hubs)
    for _ in range(max_iterations):
        new_authorities = _normalized(authorities_of(hubs))
        new_hubs = _normalized(hubs_of(new_authorities))
        change = np.abs(new_hubs - hubs).sum() + np.abs(new_authorities - authorities).sum()
        hubs, authorities = new_hubs, new_authorities
        if change < tolerance * max(len(hubs), 1):
            break
    return HubsAndAuthorities(hubs, authorities)


def _normalized(values: Values) -> Values:
    norm = float(np.linalg.norm(values))
    return values / norm if norm > 0 else values
