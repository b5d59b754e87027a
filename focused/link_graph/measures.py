"""Measures of pages by their links: PageRank, and the hubs and authorities of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.link_graph.page_graph import PageGraph
from focused.link_graph.stored_arrays import Nodes, SuccessorLists

DAMPING = 0.85
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-8

Values = NDArray[np.float64]
"""A number for each node, shape (nodes,)."""


def pagerank(
    into: SuccessorLists,
    out_degrees: NDArray[np.int64],
    *,
    teleport: Values | None = None,
    tolerance: float = 1e-6,
) -> Values:
    """Return PageRank (Brin and Page 1998); it sums to 1.

    ``into`` has the predecessors. ``teleport``, not negative, is where the random surfer goes on
    who follows no link: everywhere alike without it. With the pages of a topic it gives
    topic-sensitive PageRank (Haveliwala 2002). Pages without links lead there, too. It ends when
    the sum of all changes is below ``tolerance``. Raises ConfigurationError if ``teleport`` is 0.
    """
    nodes = len(out_degrees)
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
    for _ in range(_MAX_ITERATIONS):
        shares = np.divide(rank, out_degrees, out=np.zeros(nodes), where=leads_on)
        lost = 1.0 - DAMPING * rank[leads_on].sum()
        new = DAMPING * _sum_over_links(into, shares) + lost * start
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < tolerance:
            break
    return rank


def _sum_over_links(lists: SuccessorLists, values: Values) -> Values:
    """Return the sum of ``values`` over the successors of each node; reads the lists from disk."""
    sums = np.zeros(len(values))
    for first, part in lists.parts():
        running = np.concatenate(([0.0], np.cumsum(values[part.targets])))
        sums[first : first + len(part.bounds) - 1] = np.diff(running[part.bounds])
    return sums


@dataclass(frozen=True, slots=True)
class Distillation:
    """Scores of the pages that were fetched: ``nodes``, shape (n,), ascending.

    ``hubs`` and ``authorities`` are in [0, 1]; the best page has 1. Both are 0 for pages without
    links that count.
    """

    nodes: Nodes
    hubs: Values
    authorities: Values


def distill_topic(graph: PageGraph) -> Distillation:
    """Rate the fetched pages of a graph as hubs and authorities of its topic.

    The relevance is the classifier's.
    """
    rated = graph.pages
    known = ~np.isnan(rated.relevance)
    return distill_pages(graph, rated.nodes[known], rated.relevance[known])


def distill_pages(graph: PageGraph, nodes: Nodes, relevance: Values) -> Distillation:
    """Rate ``nodes``, ascending, by the links among them; ``relevance`` in [0, 1] of each.

    HITS (Kleinberg 1999) with weights: a link passes on what its source and target are relevant, so
    that neither drifts off topic (Chakrabarti, van den Berg, Dom: Focused Crawling, WWW 1999,
    section 3.3; Bharat and Henzinger: Improved Algorithms for Topic Distillation, SIGIR 1998).
    """
    links = graph.links_among(nodes)
    hubs, authorities = _normalized(np.ones(len(nodes))), np.zeros(len(nodes))
    for _ in range(_MAX_ITERATIONS):
        new_authorities = _normalized(relevance * (links.T @ (relevance * hubs)))
        new_hubs = _normalized(links @ (relevance * new_authorities))
        change = np.abs(new_hubs - hubs).sum() + np.abs(new_authorities - authorities).sum()
        hubs, authorities = new_hubs, new_authorities
        if change < _TOLERANCE * max(len(nodes), 1):
            break
    return Distillation(nodes, _to_best(hubs), _to_best(authorities))


def scores_by_url(graph: PageGraph) -> dict[str, tuple[float, float]]:
    """Return the scores of fetched pages as authority and hub, by URL; see :func:`distill_topic`.

    Holds about 200 bytes a page.
    """
    found = distill_topic(graph)
    scores = zip(found.authorities.tolist(), found.hubs.tolist(), strict=True)
    return dict(zip(graph.urls.urls(found.nodes), scores, strict=True))


class LinkedPage(NamedTuple):
    """A page with its score by a measure, and its relevance in [0, 1], NaN if it is unknown."""

    url: str
    score: float
    relevance: float


def best_pages(graph: PageGraph, nodes: Nodes, scores: Values, limit: int) -> list[LinkedPage]:
    """Return those of ``nodes`` with the best ``scores`` above 0, the best first."""
    best = np.argsort(-scores, kind="stable")[:limit]
    best = best[scores[best] > 0]
    relevance = graph.relevance()[nodes[best]]
    rows = zip(graph.urls.urls(nodes[best]), scores[best].tolist(), relevance.tolist(), strict=True)
    return [LinkedPage(*row) for row in rows]


def _normalized(values: Values) -> Values:
    norm = float(np.linalg.norm(values))
    return values / norm if norm > 0 else values


def _to_best(scores: Values) -> Values:
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores
