"""The structure of a graph: paths, neighbourhoods, components, the bow-tie, communities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.errors import ConfigurationError
from focused.link_graph.adjacency import Adjacency, Nodes
from focused.link_graph.page_graph import PageGraph

MAX_COMPONENT_LINKS = 50_000_000
"""Components are computed in memory, 40 bytes a link."""


def shortest_path(graph: PageGraph, source: int, target: int) -> list[int] | None:
    """Return the nodes of a shortest path along links, both ends included; None without one."""
    before = np.full(len(graph), -1, dtype=np.int64)
    before[source] = source
    frontier = np.array([source], dtype=np.int64)
    while before[target] < 0 and len(frontier):
        lists = graph.successors_of(frontier)
        sources = np.repeat(frontier, lists.degrees)
        new = before[lists.targets] < 0
        reached, first = np.unique(lists.targets[new], return_index=True)
        before[reached] = sources[new][first]
        frontier = reached
    if before[target] < 0:
        return None
    path = [target]
    while path[-1] != source:
        path.append(int(before[path[-1]]))
    return path[::-1]


def reachable(adjacency: Adjacency, starts: Nodes, *, max_distance: int | None = None) -> Nodes:
    """Return the nodes within ``max_distance`` links of ``starts``, themselves included."""
    reached = np.zeros(adjacency.nodes, dtype=np.bool_)
    reached[starts] = True
    frontier = np.unique(starts)
    distance = 0
    while len(frontier) and (max_distance is None or distance < max_distance):
        found = np.unique(adjacency.successors_of(frontier).targets)
        frontier = found[~reached[found]]
        reached[frontier] = True
        distance += 1
    return np.flatnonzero(reached)


def neighbourhood(graph: PageGraph, node: int, distance: int) -> Nodes:
    """Return the nodes within ``distance`` links of a node, in any direction, without it."""
    reached = np.array([node], dtype=np.int64)
    frontier = reached
    for _ in range(distance):
        lists = (graph.successors_of(frontier).targets, graph.predecessors_of(frontier).targets)
        frontier = np.setdiff1d(np.concatenate(lists), reached)
        reached = np.union1d(reached, frontier)
    others: Nodes = reached[reached != node]
    return others


@dataclass(frozen=True, slots=True)
class BowTie:
    """Numbers of nodes of the bow-tie (Broder et al. 2000).

    ``core`` is the largest strongly connected component, ``upstream`` (IN) leads to it,
    ``downstream`` (OUT) is reached from it, and ``other`` holds tendrils, tubes and what is
    disconnected. ``components`` counts the strongly connected components, ``weak_components`` the
    weakly connected ones, of which the largest has ``largest_weak`` nodes.
    """

    core: int
    upstream: int
    downstream: int
    other: int
    components: int
    weak_components: int
    largest_weak: int


def bow_tie(graph: PageGraph) -> BowTie:
    """Return the bow-tie. Raises ConfigurationError for graphs above 50 million links."""
    from scipy.sparse.csgraph import connected_components

    if graph.links > MAX_COMPONENT_LINKS:
        raise ConfigurationError(
            f"components are computed in memory, for up to {MAX_COMPONENT_LINKS:,} links; this "
            f"graph has {graph.links:,}: leave out --components"
        )
    links = to_matrix(graph.out)
    components, of_node = connected_components(links, directed=True, connection="strong")
    weak, weak_of_node = connected_components(links, directed=True, connection="weak")
    core = np.flatnonzero(of_node == np.bincount(of_node).argmax()) if len(of_node) else of_node
    downstream = reachable(graph.out, core)
    upstream = reachable(graph.into, core)
    in_tie = len(upstream) + len(downstream) - len(core)
    return BowTie(
        core=len(core),
        upstream=len(upstream) - len(core),
        downstream=len(downstream) - len(core),
        other=len(graph) - in_tie,
        components=int(components),
        weak_components=int(weak),
        largest_weak=int(np.bincount(weak_of_node).max(initial=0)),
    )


def to_matrix(adjacency: Adjacency) -> csr_array:
    """Return the links as a sparse matrix, 1 for each link, shape (nodes, nodes)."""
    lists = adjacency.load()
    ones = np.ones(len(lists.targets), dtype=np.int8)
    return csr_array((ones, lists.targets, lists.bounds), shape=(adjacency.nodes, adjacency.nodes))


def communities(links: Any, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the community of each node, 0 the largest, by the Louvain algorithm.

    ``links`` is a sparse matrix of weights; its direction is ignored (Blondel et al. 2008). Raises
    ModuleNotFoundError without the extra ``graph``.
    """
    from scipy.sparse import csr_matrix
    from sknetwork.clustering import Louvain

    if not links.nnz:
        return np.arange(links.shape[0])
    symmetric = csr_matrix(links + links.T, dtype=np.float64)
    louvain = Louvain(random_state=seed, sort_clusters=True)
    found: NDArray[np.int64] = louvain.fit_predict(symmetric).astype(np.int64)
    return found
