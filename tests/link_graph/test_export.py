"""Exports of the link graph, read again by other programs' readers."""

import networkx as nx
import pyarrow.parquet as pq
import pytest

from focused.errors import ConfigurationError
from focused.link_graph.build import build_graph
from focused.link_graph.page_graph import ExportedGraph, PageGraph, write_graph
from tests.support.crawl_folders import page, write_crawl

A, B, C = "https://a.example/?x=1&y=<2>", "https://a.example/b", "https://c.example/"
LINKS = {(A, B), (A, C), (B, C)}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> PageGraph:
    folder = tmp_path_factory.mktemp("export")
    rows = [page(A, relevance=0.5), page(B, relevance=None)]
    links = [{"source": source, "target": target} for source, target in sorted(LINKS)]
    build_graph([write_crawl(folder / "crawl", rows, links=links)], folder / "graph")
    return PageGraph(folder / "graph")


def test_graphml_is_read_by_networkx(graph, tmp_path):
    write_graph(ExportedGraph.pages(graph), tmp_path / "web.graphml")
    read = nx.read_graphml(tmp_path / "web.graphml")
    urls = nx.get_node_attributes(read, "url")
    assert {(urls[source], urls[target]) for source, target in read.edges} == LINKS
    relevance = {urls[n]: value for n, value in nx.get_node_attributes(read, "relevance").items()}
    assert relevance == {A: 0.5}


def test_fetched_pages_are_exported_with_the_links_among_them(graph, tmp_path):
    write_graph(ExportedGraph.pages(graph, fetched_only=True), tmp_path / "web.parquet")
    rows = pq.read_table(tmp_path / "web.parquet").to_pylist()
    assert [(row["source"], row["target"]) for row in rows] == [(A, B)]
    assert pq.read_table(tmp_path / "web.nodes.parquet")["name"].to_pylist() == [A, B]


def test_parquet_has_links_and_nodes(graph, tmp_path):
    write_graph(ExportedGraph.pages(graph), tmp_path / "web.parquet")
    rows = pq.read_table(tmp_path / "web.parquet").to_pylist()
    assert {(row["source"], row["target"]) for row in rows} == LINKS
    nodes = pq.read_table(tmp_path / "web.nodes.parquet").to_pylist()
    assert [row["name"] for row in nodes] == [A, B, C]
    assert [row["relevance"] for row in nodes] == [0.5, None, None]


def test_the_host_graph_counts_links_of_pages(graph, tmp_path):
    write_graph(ExportedGraph.hosts(graph), tmp_path / "hosts.parquet")
    (row,) = pq.read_table(tmp_path / "hosts.parquet").to_pylist()
    assert row == {"source": "a.example", "target": "c.example", "links": 2}


def test_another_suffix_is_refused(graph, tmp_path):
    with pytest.raises(ConfigurationError, match=r"neither \.graphml nor"):
        write_graph(ExportedGraph.pages(graph), tmp_path / "web.gexf")
    assert not list(tmp_path.iterdir())
