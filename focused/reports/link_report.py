"""The part of a report that a link graph gives: the hubs and authorities of the topic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from focused.link_graph.adjacency import Nodes
from focused.link_graph.distillation import distill_topic
from focused.link_graph.link_ranking import Values
from focused.link_graph.page_graph import PageGraph

_BEST = 10


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """A page with its score as a hub or authority, in (0, 1], and its relevance in [0, 1]."""

    url: str
    score: float
    relevance: float


@dataclass(frozen=True, slots=True)
class LinkReport:
    """Size of the graph, and the best ten authorities and hubs; see :mod:`focused.link_graph`."""

    pages: int
    links: int
    hosts: int
    authorities: tuple[LinkedPage, ...]
    hubs: tuple[LinkedPage, ...]


def build_link_report(folder: Path) -> LinkReport:
    """Read the link graph in ``folder``. Raises StateError if there is none."""
    with PageGraph(folder) as graph:
        found = distill_topic(graph)
        return LinkReport(
            pages=len(graph),
            links=graph.links,
            hosts=len(graph.hosts.names),
            authorities=_best(graph, found.nodes, found.authorities),
            hubs=_best(graph, found.nodes, found.hubs),
        )


def _best(graph: PageGraph, nodes: Nodes, scores: Values) -> tuple[LinkedPage, ...]:
    best = np.argsort(-scores, kind="stable")[:_BEST]
    best = best[scores[best] > 0]
    relevance = graph.relevance()[nodes[best]]
    rows = zip(graph.urls.urls(nodes[best]), scores[best].tolist(), relevance.tolist(), strict=True)
    return tuple(LinkedPage(*row) for row in rows)
