"""The command ``focused graph``, and the graph in the report."""

import json
from functools import partial
from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest

from focused.link_graph.build import LinkTables
from tests.support.command import focused
from tests.support.crawl_folders import good_page, page, write_crawl

HUB, TOPIC, OWN, FAR = (
    "https://hub.example/",
    "https://topic.example/",
    "https://topic.example/own",
    "https://far.example/\x1b[2J",
)
LINKS = [(HUB, TOPIC), (TOPIC, OWN), (OWN, TOPIC), (OWN, FAR), (HUB, OWN)]


graph = partial(focused, "graph")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [good_page(HUB, parent=None), good_page(TOPIC), page(OWN)]
    links = [{"source": s, "target": t, "anchor": f"to {t[8:11]}"} for s, t in LINKS]
    folder = tmp_path_factory.mktemp("crawls") / "whales"
    return write_crawl(folder, rows, links=links, settings={"policy": "focused"})


@pytest.fixture(scope="module")
def folder(crawl: Path) -> Path:
    done = graph("build", crawl)
    made = crawl.with_name("whales-graph")
    assert done.stderr.splitlines()[-1] == f"focused: 4 pages and 5 links are in {made}"
    return made


def test_ctrl_c_in_a_query_ends_a_build_without_a_traceback(crawl, tmp_path, monkeypatch):
    def query(tables):
        raise RuntimeError("Query interrupted")  # as DuckDB does

    monkeypatch.setattr(LinkTables, "number", query)
    done = graph("build", crawl, "--out", tmp_path / "graph", status=1)
    assert "Aborted!" in done.output


def test_links_of_a_page_are_listed(folder):
    assert graph("out", folder, HUB).stdout.split() == [TOPIC, OWN]
    # As people type it.
    assert graph("in", folder, "Topic.example").stdout.split() == [HUB, OWN]
    limited = graph("in", folder, TOPIC, "--limit", 1)
    assert limited.stdout.split() == [HUB]
    assert "and 1 more; --limit shows them" in limited.stderr
    rows = json.loads(graph("in", folder, TOPIC, "--anchors", "--json").stdout)
    assert rows[0] == {"url": HUB, "anchor": "to top", "nofollow": False}


def test_control_characters_are_escaped(folder):
    assert "\\x1b[2J" in graph("out", folder, OWN).stdout
    assert "\x1b" not in graph("top", folder, "--by", "in-degree").output


def test_links_of_a_host_are_counted(folder):
    rows = json.loads(graph("out", folder, "hub.example", "--hosts", "--json").stdout)
    assert rows == [{"host": "topic.example", "links": 2}]
    graph("in", folder, "x.example", "--hosts", status=2)


def test_statistics(folder):
    found = json.loads(graph("stats", folder, "--json").stdout)
    assert (found["pages"], found["fetched"], found["links"], found["hosts"]) == (4, 3, 5, 3)
    assert found["largest in-degree"] == 2 and found["links between hosts"] == 3
    assert "links: 5" in graph("stats", folder).stdout


@pytest.mark.parametrize(
    ("by", "best"),
    [
        ("in-degree", TOPIC),
        ("authority", TOPIC),
        ("hub", HUB),
        ("pagerank", OWN),
        ("topic-pagerank", OWN),
    ],
)
def test_the_best_pages_by_each_measure(folder, by, best):
    rows = json.loads(graph("top", folder, "--by", by, "--json", "--limit", 2).stdout)
    scores = {row["url"]: row[by] for row in rows}
    assert scores[best] == max(scores.values())


def test_the_best_hosts(folder):
    rows = json.loads(graph("top", folder, "--hosts", "--by", "in-degree", "--json").stdout)
    assert rows[0]["in-degree"] == 1 and len(rows) == 3
    assert "pagerank" in graph("top", folder, "--hosts", "--by", "pagerank").stdout
    assert "hosts have in-degree and pagerank" in graph("top", folder, "--hosts", status=2).stderr


def test_the_graph_is_exported(folder, tmp_path):
    graph("export", folder, tmp_path / "web.graphml", "--fetched")
    assert len(nx.read_graphml(tmp_path / "web.graphml").edges) == 4
    graph("export", folder, tmp_path / "hosts.parquet", "--hosts")
    assert len(pq.read_table(tmp_path / "hosts.parquet")) == 2
    graph("export", folder, tmp_path / "none" / "a.parquet", status=2)


def test_what_cannot_be_done_is_explained(crawl, folder, tmp_path):
    assert "no page of this link graph" in graph("in", folder, "http://x/", status=2).stderr
    assert "holds no link graph" in graph("stats", crawl, status=2).stderr
    assert "has other files" in graph("build", crawl, "--out", crawl, status=2).stderr
    assert "no such folder" in graph("build", tmp_path / "none", status=2).stderr
