"""Hubs and authorities in the console."""

from pathlib import Path

from focused.console.server import read_link_report
from focused.link_graph.build import build_graph
from tests.support.crawl_folders import page, write_crawl

A, B, C = (f"https://{name}.example/" for name in "abc")


def crawl(folder: Path, *pages: str) -> Path:
    rows = [page(url, relevance=0.9) for url in pages]
    links = [{"source": source, "target": pages[-1]} for source in pages[:-1]]
    return write_crawl(folder, rows, links=links)


def test_without_a_link_graph_there_is_no_report(tmp_path):
    assert read_link_report(tmp_path / "graph") is None


def test_a_graph_that_was_built_again_is_read_again(tmp_path):
    build_graph([crawl(tmp_path / "first", A, B)], tmp_path / "graph")
    report = read_link_report(tmp_path / "graph")
    assert report is not None
    assert [one["url"] for one in report["authorities"]] == [B]
    build_graph([crawl(tmp_path / "second", A, C)], tmp_path / "graph")
    report = read_link_report(tmp_path / "graph")
    assert report is not None
    assert {one["url"] for one in report["authorities"]} == {C}
