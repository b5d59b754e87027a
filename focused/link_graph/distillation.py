"""Topic distillation: the hubs and authorities of a topic, among the pages that a crawl fetched.

HITS with weights. A link passes on what its source and target are relevant, so that neither drifts
off topic (Chakrabarti, van den Berg, Dom: Focused Crawling, WWW 1999, section 3.3; Bharat and
Henzinger: Improved Algorithms for Topic Distillation, SIGIR 1998). On demand, links within a host
are left out, and the links of one host to a page count as one together, likewise those of a page to
one host (Bharat and Henzinger), because whoever makes a site could vote for it with each page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.link_graph.adjacency import Nodes
from focused.link_graph.link_ranking import Values, iterate_hits
from focused.link_graph.page_graph import PageGraph
from focused.web.urls import host_of


@dataclass(frozen=True, slots=True)
class Distillation:
    """Scores of the pages that were fetched: ``nodes``, shape (n,), ascending.

    ``hubs`` and ``authorities`` are in [0, 1]; the best page has 1. Both are 0 for pages without
    links that count.
    """

    nodes: Nodes
    hubs: Values
    authorities: Values


def distill_topic(graph: PageGraph, *, within_hosts: bool = True) -> Distillation:
    """Rate the fetched pages of a graph as hubs and authorities of its topic.

    The relevance is the classifier's. ``within_hosts`` counts all links alike; without it, links
    within a host are left out, and the links of a host share one vote.
    """
    rated = graph.pages
    known = ~np.isnan(rated.relevance)
    nodes, relevance = rated.nodes[known], rated.relevance[known]
    return distill_pages(graph, nodes, relevance, within_hosts=within_hosts)


def distill_pages(
    graph: PageGraph, nodes: Nodes, relevance: Values, *, within_hosts: bool = True
) -> Distillation:
    """Rate ``nodes``, ascending, by the links among them; ``relevance`` in [0, 1] of each."""
    links = links_among(graph, nodes)
    sources, targets = links.nonzero()
    if within_hosts:
        hub_weights = authority_weights = np.ones(len(sources))
    else:
        hosts = _host_numbers(graph, nodes)
        other = hosts[sources] != hosts[targets]
        sources, targets = sources[other], targets[other]
        authority_weights = 1.0 / _group_sizes(hosts[sources], targets)
        hub_weights = 1.0 / _group_sizes(hosts[targets], sources)
    shape = links.shape
    to_authorities = csr_array(
        (authority_weights * relevance[sources], (targets, sources)), shape=shape
    )
    to_hubs = csr_array((hub_weights * relevance[targets], (sources, targets)), shape=shape)
    scores = iterate_hits(
        lambda hubs: relevance * (to_authorities @ hubs),
        lambda authorities: to_hubs @ authorities,
        np.ones(len(nodes)),
    )
    return Distillation(nodes, _to_best(scores.hubs), _to_best(scores.authorities))


def scores_by_url(graph: PageGraph) -> dict[str, tuple[float, float]]:
    """Return the scores of fetched pages as authority and hub, by URL; see :func:`distill_topic`.

    Holds about 200 bytes a page.
    """
    found = distill_topic(graph)
    scores = zip(found.authorities.tolist(), found.hubs.tolist(), strict=True)
    return dict(zip(graph.urls.urls(found.nodes), scores, strict=True))


def links_among(graph: PageGraph, nodes: Nodes) -> csr_array:
    """Return the links among ``nodes``, ascending, shape (n, n)."""
    lists = graph.successors_of(nodes)
    sources = np.repeat(np.arange(len(nodes)), lists.degrees)
    places = np.searchsorted(nodes, lists.targets)
    inside = places < len(nodes)
    inside[inside] = nodes[places[inside]] == lists.targets[inside]
    ones = np.ones(int(inside.sum()))
    return csr_array((ones, (sources[inside], places[inside])), shape=(len(nodes), len(nodes)))


def _host_numbers(graph: PageGraph, nodes: Nodes) -> NDArray[np.int64]:
    numbers: dict[str, int] = {}
    hosts = [numbers.setdefault(host_of(url), len(numbers)) for url in graph.urls.urls(nodes)]
    return np.array(hosts, dtype=np.int64)


def _group_sizes(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many places have the same pair of values as each place."""
    keys = one * (other.max(initial=0) + 1) + other
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sizes: NDArray[np.int64] = counts[places]
    return sizes


def _to_best(scores: Values) -> Values:
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores
