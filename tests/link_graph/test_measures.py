"""Measures of the link graph, held against NetworkX and against counting by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from focused.errors import ConfigurationError
from focused.link_graph import link_ranking, structure
from focused.link_graph.build import build_graph
from focused.link_graph.distillation import distill_topic
from focused.link_graph.link_ranking import LoadedLists, hits, pagerank
from focused.link_graph.page_graph import PageGraph
from focused.link_graph.structure import (
    bow_tie,
    communities,
    neighbourhood,
    reachable,
    shortest_path,
)
from tests.support.crawl_folders import page, write_crawl


def graph_of(
    folder: Path, links: Sequence[tuple[str, str]], relevance: Mapping[str, float]
) -> PageGraph:
    rows = [page(url, relevance=value) for url, value in relevance.items()]
    table = [{"source": source, "target": target} for source, target in links]
    crawl = write_crawl(folder / "crawl", rows, links=table)
    build_graph([crawl], folder / "graph")
    return PageGraph(folder / "graph")


def url(number: int) -> str:
    return f"https://h{number % 7}.example/{number:03}"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> PageGraph:
    """200 pages; the last ten have no links of their own."""
    rng = random.Random(3)
    links = [
        (url(source), url(min(int(rng.paretovariate(0.6)), 199)))
        for source in range(190)
        for _ in range(rng.randrange(8))
    ]
    relevance = {url(number): round(rng.random(), 2) for number in range(0, 200, 2)}
    return graph_of(tmp_path_factory.mktemp("web"), links, relevance)


@pytest.fixture(scope="module")
def same(web: PageGraph) -> nx.DiGraph[str]:
    urls = list(web.urls)
    made: nx.DiGraph[str] = nx.DiGraph()
    made.add_nodes_from(urls)
    for sources, targets in web.out.pairs():
        made.add_edges_from((urls[s], urls[t]) for s, t in zip(sources, targets, strict=True))
    return made


def test_pagerank_is_that_of_networkx(web: PageGraph, same: nx.DiGraph[str]) -> None:
    ranks = pagerank(web.into, web.out.degrees(), tolerance=1e-10)
    expected = nx.pagerank(same, tol=1e-12)
    assert ranks.sum() == pytest.approx(1)
    assert dict(zip(web.urls, ranks, strict=True)) == pytest.approx(expected, abs=1e-8)


def test_topic_sensitive_pagerank_is_that_of_networkx(
    web: PageGraph, same: nx.DiGraph[str]
) -> None:
    wanted = np.nan_to_num(web.relevance())
    ranks = pagerank(web.into, web.out.degrees(), teleport=wanted, tolerance=1e-10)
    teleport = dict(zip(web.urls, wanted.tolist(), strict=True))
    expected = nx.pagerank(same, personalization=teleport, tol=1e-12)
    assert dict(zip(web.urls, ranks, strict=True)) == pytest.approx(expected, abs=1e-8)
    with pytest.raises(ConfigurationError, match="relevance above 0"):
        pagerank(web.into, web.out.degrees(), teleport=0 * wanted)


def test_hits_is_that_of_networkx(web: PageGraph, same: nx.DiGraph[str]) -> None:
    found = hits(web.out, web.into, max_iterations=500)
    hubs, authorities = nx.hits(same, max_iter=1000)
    for ours, theirs in ((found.hubs, hubs), (found.authorities, authorities)):
        whole = dict(zip(web.urls, ours / ours.sum(), strict=True))
        assert whole == pytest.approx(theirs, abs=1e-5)


def test_decoded_lists_give_the_same_sums(web: PageGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_ranking, "_LINKS_A_SUM", 16)
    values = np.random.default_rng(0).random(len(web))
    sums = link_ranking.sum_over_links(web.into, values)
    loaded = LoadedLists(web.into.load())
    assert link_ranking.sum_over_links(loaded, values) == pytest.approx(sums)
    assert sums.tolist() == pytest.approx(
        [values[web.predecessors(node)].sum() for node in range(len(web))]
    )


def test_the_bow_tie_is_that_of_networkx(web: PageGraph, same: nx.DiGraph[str]) -> None:
    tie = bow_tie(web)
    core = max(nx.strongly_connected_components(same), key=len)
    one = next(iter(core))
    assert tie.core == len(core) > 20
    assert tie.upstream == len(nx.ancestors(same, one) - core)
    assert tie.downstream == len(nx.descendants(same, one) - core) > 0
    assert tie.core + tie.upstream + tie.downstream + tie.other == len(web)
    assert tie.components == nx.number_strongly_connected_components(same)
    assert tie.weak_components == nx.number_weakly_connected_components(same)


def test_a_graph_that_is_too_large_has_no_bow_tie(
    web: PageGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "MAX_COMPONENT_LINKS", 10)
    with pytest.raises(ConfigurationError, match="--components"):
        bow_tie(web)


def test_shortest_paths_are_those_of_networkx(web: PageGraph, same: nx.DiGraph[str]) -> None:
    lengths = nx.single_source_shortest_path_length(same, web.urls[0])
    assert len(lengths) < len(web)
    for node in range(len(web)):
        path = shortest_path(web, 0, node)
        if path is None:
            assert web.urls[node] not in lengths
            continue
        assert len(path) - 1 == lengths[web.urls[node]]
        steps = pairwise(path)
        assert all(same.has_edge(*web.urls.urls(list(step))) for step in steps)
    near = reachable(web.out, np.array([0]), max_distance=2)
    assert set(web.urls.urls(near)) == {name for name, far in lengths.items() if far <= 2}


def test_neighbourhoods_go_both_ways(web: PageGraph, same: nx.DiGraph[str]) -> None:
    ego = nx.ego_graph(same, web.urls[5], radius=2, undirected=True)
    found = web.urls.urls(neighbourhood(web, 5, 2))
    assert set(found) == set(ego) - {web.urls[5]}


def test_communities_are_those_that_were_made() -> None:
    groups = np.repeat([0, 1, 2], [12, 8, 5])
    links = csr_array((groups[:, None] == groups).astype(np.float64))
    assert communities(links).tolist() == groups.tolist()
    assert len(set(communities(csr_array((3, 3))).tolist())) == 3


TOPIC, PORTAL = "https://topic.example/", "https://portal.example/"


def test_distillation_finds_the_hub_and_the_authority_of_the_topic(tmp_path: Path) -> None:
    """A portal with more in-links is off topic, and its pages vote for each other."""
    hubs = [f"https://hub{number}.example/" for number in range(3)]
    fans = [f"https://fan{number}.example/" for number in range(6)]
    own = [f"{PORTAL}{number}" for number in range(20)]
    links = [(hub, TOPIC) for hub in hubs]
    links += [(hubs[0], "https://second.example/"), (hubs[0], hubs[1])]
    links += [(fan, PORTAL) for fan in fans] + [(page, PORTAL) for page in own]
    relevance = dict.fromkeys([*hubs, TOPIC, "https://second.example/"], 0.9)
    relevance |= dict.fromkeys([*fans, *own, PORTAL], 0.05)
    with graph_of(tmp_path, links, relevance) as graph:
        found = distill_topic(graph, within_hosts=False)
        urls = graph.urls.urls(found.nodes)
        authorities = dict(zip(urls, found.authorities.tolist(), strict=True))
        scores = dict(zip(urls, found.hubs.tolist(), strict=True))
        assert authorities[TOPIC] == 1.0 and authorities[PORTAL] < 0.05
        assert max(scores, key=scores.__getitem__) == hubs[0] and scores[hubs[0]] == 1.0
        assert len(graph.predecessors(graph.urls.node(PORTAL))) == 26


def test_a_host_votes_once(tmp_path: Path) -> None:
    one, other = "https://one.example/", "https://other.example/"
    crowd = [f"https://crowd.example/{number}" for number in range(10)]
    links = [(page, one) for page in crowd]
    links += [(f"https://h{number}.example/", other) for number in range(3)]
    relevance = dict.fromkeys({url for link in links for url in link}, 1.0)
    with graph_of(tmp_path, links, relevance) as graph:
        place = np.searchsorted(graph.pages.nodes, [graph.urls.node(url) for url in (one, other)])
        by_host = distill_topic(graph, within_hosts=False).authorities[place]
        by_page = distill_topic(graph, within_hosts=True).authorities[place]
        assert by_host[0] < by_host[1] and by_page[0] > by_page[1]


def test_a_graph_without_links_that_count_has_no_hubs(tmp_path: Path) -> None:
    inside = [("https://a.example/1", "https://a.example/2")]
    with graph_of(tmp_path, inside, {"https://a.example/1": 1.0}) as graph:
        found = distill_topic(graph, within_hosts=False)
        assert found.nodes.tolist() == [0]
        assert found.hubs.tolist() == found.authorities.tolist() == [0.0]
