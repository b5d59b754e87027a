"""Sorted URLs and lists of links on disk: what is written comes back, and damage is an error."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.errors import ConfigurationError, StateError
from focused.link_graph import stored_arrays
from focused.link_graph.stored_arrays import (
    SuccessorLists,
    UrlTable,
    open_lists,
    write_lists,
    write_urls,
)

graphs = st.integers(1, 40).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes), st.sets(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=120)
    )
)


def stored_lists(folder: Path, nodes: int, links: list[tuple[int, int]]) -> SuccessorLists:
    keys = np.array([source * nodes + target for source, target in links], np.int64)
    batches = [keys[begin : begin + 7] for begin in range(0, len(keys), 7)]
    write_lists(folder / "links", nodes, len(links), batches)
    return open_lists(folder / "links", nodes)


def stored_urls(folder: Path, urls: list[str]) -> UrlTable:
    batches = pa.table({"url": pa.array(urls, pa.string())}).to_reader(max_chunksize=3)
    write_urls(folder / "urls.arrow", batches)
    return UrlTable(folder / "urls.arrow", len(urls))


def offsets_and_bytes(offsets: list[int]) -> tuple[pa.Buffer, pa.Buffer]:
    return pa.py_buffer(np.array(offsets, np.int32).tobytes()), pa.py_buffer(b"a\xffb")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(graphs, st.data())
def test_lists_come_back(tmp_path, graph, data):
    nodes, links = graph
    stored = stored_lists(tmp_path, nodes, sorted(links))
    lists = [sorted(t for s, t in links if s == node) for node in range(nodes)]
    assert [stored[node].tolist() for node in range(nodes)] == lists
    assert stored.degrees.tolist() == [len(each) for each in lists]
    asked = data.draw(st.lists(st.integers(0, nodes - 1), max_size=10))
    found = stored.select(np.array(asked, dtype=np.int64))
    assert [found[place].tolist() for place in range(len(asked))] == [lists[n] for n in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_arrays, "_LINKS_A_PART", 10)
        pairs = [np.stack(pair, axis=1).tolist() for pair in stored.pairs()]
    assert [tuple(pair) for part in pairs for pair in part] == sorted(links)


def test_a_node_that_does_not_exist_is_an_error(tmp_path):
    stored = stored_lists(tmp_path, 3, [(0, 1)])
    for node in (-1, 3):
        with pytest.raises(IndexError, match=r"\[0, 3\)"):
            stored[node]


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.sets(texts.map("https://a.example/{}".format), max_size=20), texts)
def test_urls_have_their_node_and_come_back(tmp_path, urls, other):
    ordered = sorted(urls)
    table = stored_urls(tmp_path, ordered)
    assert list(table) == ordered == table.urls(range(len(urls)))
    assert [table.find(url) for url in ordered] == list(range(len(urls)))
    assert table.find(other) is None


def test_an_unknown_url_is_named(tmp_path):
    table = stored_urls(tmp_path, ["https://a.example/"])
    with pytest.raises(ConfigurationError, match=r"https://b\.example/: no page"):
        table.node("https://b.example/")
    with pytest.raises(IndexError, match="node 1"):
        table[1]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """The files of a graph of three nodes."""
    stored_urls(tmp_path, [f"https://a.example/{n}" for n in range(3)])
    stored_lists(tmp_path, 3, [(0, 1), (1, 2)])
    return tmp_path


def open_all(graph: Path) -> None:
    UrlTable(graph / "urls.arrow", 3)
    open_lists(graph / "links", 3)


@pytest.mark.parametrize("name", ["urls.arrow", "links.bounds.npy", "links.targets.npy"])
def test_a_truncated_or_missing_file_is_an_error(graph, name):
    whole = (graph / name).read_bytes()
    for damaged in (whole[:-4], b""):
        (graph / name).write_bytes(damaged)
        with pytest.raises(StateError, match=rf"{name}: is damaged"):
            open_all(graph)
    (graph / name).unlink()
    with pytest.raises(StateError, match=rf"{name}: is missing"):
        open_all(graph)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("bounds", [0, 1, 2]),
        ("bounds", [0, 2, 1, 2]),
        ("bounds", [1, 1, 2, 2]),
        ("bounds", [0, 1, 2, 3]),
        ("bounds", [0.0, 1.0, 2.0, 2.0]),
        ("bounds", []),
        ("targets", [1, 3]),
        ("targets", [-1, 2]),
        ("targets", [[1, 2]]),
    ],
)
def test_arrays_that_are_no_lists_of_the_graph_are_an_error(graph, name, array):
    np.save(graph / f"links.{name}.npy", np.array(array))
    with pytest.raises(StateError, match=r"links\.\w+\.npy: is damaged"):
        open_all(graph)


def test_objects_are_not_loaded(graph):
    np.save(graph / "links.targets.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(StateError, match=r"targets\.npy: is damaged"):
        open_all(graph)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"url": ["https://a.example/"]}),
        pa.table({"name": ["a", "b", "c"]}),
        pa.table({"url": pa.array([1, 2, 3])}),
        pa.table({"url": pa.StringArray.from_buffers(3, *offsets_and_bytes([0, 1, 9**9, 2]))}),
        pa.table({"url": pa.StringArray.from_buffers(3, *offsets_and_bytes([0, 1, 2, 3]))}),
    ],
    ids=["fewer", "another column", "another type", "offsets", "no UTF-8"],
)
def test_urls_that_are_not_those_of_the_graph_are_an_error(graph, table):
    write_urls(graph / "urls.arrow", table.to_reader())
    with pytest.raises(StateError, match=r"urls\.arrow: is damaged"):
        open_all(graph)
