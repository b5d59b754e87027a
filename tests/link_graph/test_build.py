"""The graph of crawls: what their tables say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from focused.errors import ConfigurationError, StateError
from focused.link_graph.build import _locked, build_graph
from focused.link_graph.page_graph import PageGraph
from tests.support.corpus_crawl import ARTICLE, HOME, OTHER, crawl_corpus_web
from tests.support.crawl_folders import failed, page, write_crawl

Links = Sequence[tuple[str, str]]
A, B, C, D = (f"https://{name}.example/" for name in "abcd")


def crawl(folder: Path, pages: Sequence[str], links: Links, **columns: Any) -> Path:
    rows = [page(url, **columns) for url in pages]
    return write_crawl(folder, rows, links=[{"source": s, "target": t} for s, t in links])


def links_of(graph: PageGraph) -> set[tuple[str, str]]:
    forward = {
        (graph.urls[source], url)
        for source in range(len(graph))
        for url in graph.urls.urls(graph.out[source])
    }
    backward = {
        (url, graph.urls[target])
        for target in range(len(graph))
        for url in graph.urls.urls(graph.into[target])
    }
    assert forward == backward and graph.links == len(forward)
    return forward


def test_links_redirects_and_relevance_are_in_the_graph(tmp_path):
    rows = [
        page(A, relevance=0.25),
        page(B, relevance=None, outcome="redirected", points_to=C),
        failed(D, "timeout"),
    ]
    links = [(A, B), (A, B), (A, A), (A, D)]
    folder = write_crawl(
        tmp_path / "crawl", rows, links=[{"source": s, "target": t} for s, t in links]
    )
    info = build_graph([folder], tmp_path / "graph")
    assert (info.nodes, info.links) == (4, 3)
    graph = PageGraph(tmp_path / "graph")
    assert list(graph.urls) == [A, B, C, D]
    assert links_of(graph) == {(A, B), (A, D), (B, C)}
    assert graph.relevance().tolist()[0] == 0.25 and np.isnan(graph.relevance()[1:]).all()


def test_the_host_graph_counts_links_of_pages(tmp_path):
    links = [(A, B), (A + "x", B), (A, A + "x"), (A, B + "y"), (B, C)]
    folder = crawl(tmp_path / "crawl", [A, A + "x", B], links)
    build_graph([folder], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert graph.hosts.names == ("a.example", "b.example", "c.example")
    assert graph.hosts.pages.tolist() == [2, 2, 1]
    assert graph.hosts.links.toarray().tolist() == [[1, 3, 0], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(ConfigurationError, match=r"z\.example: no page"):
        graph.hosts.node("z.example")


def test_several_crawls_are_one_graph(tmp_path):
    one = crawl(tmp_path / "one", [A], [(A, B)], relevance=0.2)
    two = crawl(tmp_path / "two", [A, B], [(A, C), (B, C)], relevance=0.7)
    build_graph([one, two], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert links_of(graph) == {(A, B), (A, C), (B, C)}
    assert graph.pages.relevance.tolist() == [0.7, 0.7]
    assert [each.target for each in graph.anchors(source=A)] == [B, C]


def test_urls_with_equal_hashes_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("focused.link_graph.build._KEY", "length")
    folder = crawl(tmp_path / "crawl", [A], [(A, B), (B, C)])
    build_graph([folder], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert links_of(graph) == {(A, B), (B, C)}


def test_the_archive_of_a_cluster_is_read(tmp_path):
    for part, (source, target) in {"000": (A, B), "001": (B, C)}.items():
        made = crawl(tmp_path / part, [source], [(source, target)])
        for table in ("pages", "links"):
            folder = tmp_path / "crawl" / table
            folder.mkdir(parents=True, exist_ok=True)
            (made / f"{table}.parquet").rename(folder / f"{part}.parquet")
    build_graph([tmp_path / "crawl"], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert links_of(graph) == {(A, B), (B, C)}
    assert [each.target for each in graph.anchors(source=B)] == [C]


def test_a_second_build_at_the_same_time_is_refused(tmp_path):
    folder = crawl(tmp_path / "crawl", [A], [(A, B)])

    def build_again(step: str) -> None:
        with pytest.raises(StateError, match="another build"):
            build_graph([folder], tmp_path / "graph")

    build_graph([folder], tmp_path / "graph", progress=build_again)
    assert (tmp_path / "graph/graph.json").exists()


def test_nofollow_links_can_be_left_out(tmp_path):
    rows = [{"source": A, "target": B, "nofollow": True}, {"source": A, "target": C}]
    folder = write_crawl(tmp_path / "crawl", [page(A)], links=rows)
    build_graph([folder], tmp_path / "graph", nofollow=False)
    graph = PageGraph(tmp_path / "graph")
    assert links_of(graph) == {(A, C)}


def test_a_later_build_replaces_the_graph(tmp_path):
    build_graph([crawl(tmp_path / "one", [A], [(A, B), (A, C)])], tmp_path / "graph")
    build_graph([crawl(tmp_path / "two", [A, D], [(A, B), (D, A)])], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert list(graph.urls) == [A, B, D]
    assert links_of(graph) == {(A, B), (D, A)}
    assert graph.info.generation == 2


def test_a_finished_crawl_has_a_graph_with_anchors(tmp_path):
    folder = crawl_corpus_web(tmp_path)
    build_graph([folder], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    home = graph.urls.node(HOME)
    assert {ARTICLE, OTHER} <= set(graph.urls.urls(graph.out[home]))
    (link,) = graph.anchors(source=HOME, target=ARTICLE)
    assert link.anchor == "the whale article" and not link.nofollow


def test_folders_that_are_no_graph_are_refused(tmp_path):
    folder = crawl(tmp_path / "crawl", [A], [(A, B)])
    with pytest.raises(StateError, match="holds no link graph"):
        PageGraph(folder)
    with pytest.raises(ConfigurationError, match="has other files"):
        build_graph([folder], folder)
    build_graph([folder], tmp_path / "graph")
    empty = crawl(tmp_path / "empty", [A], [])
    with pytest.raises(ConfigurationError, match="no page with links was fetched"):
        build_graph([empty], tmp_path / "third")
    (tmp_path / "graph/graph.json").write_text('{"format": 99}')
    with pytest.raises(StateError, match=r"graph\.json: is damaged"):
        PageGraph(tmp_path / "graph")


def test_a_failed_build_leaves_the_graph_as_it_was(tmp_path):
    folder = crawl(tmp_path / "crawl", [A], [(A, B)])
    build_graph([folder], tmp_path / "graph")
    (folder / "links.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(StateError, match=r"links\.parquet: is damaged"):
        build_graph([folder], tmp_path / "graph")
    graph = PageGraph(tmp_path / "graph")
    assert links_of(graph) == {(A, B)}
    assert {path.name for path in (tmp_path / "graph").iterdir()} == {"graph.json", "generation-1"}


def test_a_folder_that_is_no_crawl_makes_no_folder_of_a_graph(tmp_path):
    with pytest.raises(StateError, match="no such folder"):
        build_graph([tmp_path / "none"], tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_a_refused_build_leaves_the_folder_of_one_that_has_just_begun(tmp_path):
    folder = crawl(tmp_path / "crawl", [A], [(A, B)])
    graph = tmp_path / "graph"
    with _locked(graph):
        with pytest.raises(StateError, match="another build"):
            build_graph([folder], graph)
        assert graph.is_dir()
