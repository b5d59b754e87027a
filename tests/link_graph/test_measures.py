"""Measures of the link graph, held against NetworkX and against counting by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from focused.errors import ConfigurationError
from focused.link_graph import stored_arrays
from focused.link_graph.build import build_graph
from focused.link_graph.measures import distill_topic, pagerank
from focused.link_graph.page_graph import PageGraph
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


def test_pagerank_is_that_of_networkx(web, same):
    ranks = pagerank(web.into, web.out.degrees, tolerance=1e-10)
    expected = nx.pagerank(same, tol=1e-12)
    assert ranks.sum() == pytest.approx(1)
    assert dict(zip(web.urls, ranks, strict=True)) == pytest.approx(expected, abs=1e-8)


def test_topic_sensitive_pagerank_is_that_of_networkx(web, same):
    wanted = np.nan_to_num(web.relevance())
    ranks = pagerank(web.into, web.out.degrees, teleport=wanted, tolerance=1e-10)
    teleport = dict(zip(web.urls, wanted.tolist(), strict=True))
    expected = nx.pagerank(same, personalization=teleport, tol=1e-12)
    assert dict(zip(web.urls, ranks, strict=True)) == pytest.approx(expected, abs=1e-8)
    with pytest.raises(ConfigurationError, match="relevance above 0"):
        pagerank(web.into, web.out.degrees, teleport=0 * wanted)


def test_lists_are_summed_in_parts(web, monkeypatch):
    expected = pagerank(web.into, web.out.degrees)
    monkeypatch.setattr(stored_arrays, "_LINKS_A_PART", 16)
    assert pagerank(web.into, web.out.degrees) == pytest.approx(expected)


TOPIC, PORTAL = "https://topic.example/", "https://portal.example/"


def test_distillation_finds_the_hub_and_the_authority_of_the_topic(tmp_path):
    """A portal with more in-links is off topic, and its pages vote for each other."""
    hubs = [f"https://hub{number}.example/" for number in range(3)]
    fans = [f"https://fan{number}.example/" for number in range(6)]
    own = [f"{PORTAL}{number}" for number in range(20)]
    links = [(hub, TOPIC) for hub in hubs]
    links += [(hubs[0], "https://second.example/"), (hubs[0], hubs[1])]
    links += [(fan, PORTAL) for fan in fans] + [(page, PORTAL) for page in own]
    relevance = dict.fromkeys([*hubs, TOPIC, "https://second.example/"], 0.9)
    relevance |= dict.fromkeys([*fans, *own, PORTAL], 0.05)
    graph = graph_of(tmp_path, links, relevance)
    found = distill_topic(graph)
    urls = graph.urls.urls(found.nodes)
    authorities = dict(zip(urls, found.authorities.tolist(), strict=True))
    scores = dict(zip(urls, found.hubs.tolist(), strict=True))
    assert authorities[TOPIC] == 1.0 and authorities[PORTAL] < 0.05
    assert max(scores, key=scores.__getitem__) == hubs[0] and scores[hubs[0]] == 1.0
    assert len(graph.into[graph.urls.node(PORTAL)]) == 26


def test_a_graph_without_links_that_count_has_no_hubs(tmp_path):
    inside = [("https://a.example/1", "https://a.example/2")]
    graph = graph_of(tmp_path, inside, {"https://a.example/1": 1.0})
    found = distill_topic(graph)
    assert found.nodes.tolist() == [0]
    assert found.hubs.tolist() == found.authorities.tolist() == [0.0]
