"""Compressed lists of successors: what is written comes back, one list or many."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.link_graph import adjacency as module
from focused.link_graph.adjacency import (
    Adjacency,
    AdjacencyWriter,
    decode_numbers,
    encode_numbers,
)

graphs = st.integers(1, 40).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes), st.sets(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=120)
    )
)


def write(folder: Path, nodes: int, links: list[tuple[int, int]], batch: int = 7) -> Adjacency:
    path = folder / "links.bin"
    with path.open("wb") as file:
        writer = AdjacencyWriter(file, nodes)
        for begin in range(0, len(links), batch):
            sources, targets = np.array(links[begin : begin + batch], dtype=np.int64).T
            writer.add(sources, targets)
        assert writer.finish() == len(links)
    return Adjacency(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(graphs, st.data())
def test_lists_come_back(
    tmp_path: Path, graph: tuple[int, set[tuple[int, int]]], data: st.DataObject
) -> None:
    nodes, links = graph
    with pytest.MonkeyPatch.context() as patch:
        # Several blocks, which end in all ways.
        patch.setattr(module, "LINKS_PER_BLOCK", 5)
        patch.setattr(module, "NODES_PER_BLOCK", 3)
        patch.setattr(module, "_CHUNK_LINKS", 10)
        stored = write(tmp_path, nodes, sorted(links))
    lists = [sorted(t for s, t in links if s == node) for node in range(nodes)]
    assert [stored.successors(node).tolist() for node in range(nodes)] == lists
    assert stored.degrees().tolist() == [len(each) for each in lists]
    asked = data.draw(st.lists(st.integers(0, nodes - 1), max_size=10))
    found = stored.successors_of(np.array(asked, dtype=np.int64))
    assert [found[place].tolist() for place in range(len(asked))] == [lists[n] for n in asked]
    whole = stored.load()
    assert [whole[node].tolist() for node in range(nodes)] == lists
    pairs = [np.stack(pair, axis=1).tolist() for pair in stored.pairs()]
    assert [tuple(pair) for part in pairs for pair in part] == sorted(links)


@given(st.lists(st.integers(0, 2**62), max_size=50))
def test_numbers_of_any_size_come_back(numbers: list[int]) -> None:
    assert decode_numbers(encode_numbers(np.array(numbers, dtype=np.int64))).tolist() == numbers


def test_a_page_of_many_links_is_one_block(tmp_path: Path) -> None:
    links = [(0, 1), *((1, target) for target in range(20_000)), (9_000, 3)]
    stored = write(tmp_path, 20_000, links, batch=100_000)
    assert stored.successors(1).tolist() == list(range(20_000))
    assert stored.successors(9_000).tolist() == [3]
    starts = [first for first, _ in stored.scan()]
    assert starts[0] == 0 and max(b - a for a, b in pairwise(starts)) <= module.NODES_PER_BLOCK


def test_repeated_lists_cost_little(tmp_path: Path) -> None:
    navigation = np.sort(np.random.default_rng(0).choice(10_000, 30, replace=False)).tolist()
    stored = write(tmp_path, 10_000, [(s, t) for s in range(2_000) for t in navigation], 10**6)
    assert stored.bits_per_link < 0.5


def test_a_node_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    stored = write(tmp_path, 3, [(0, 1)])
    for node in (-1, 3):
        with pytest.raises(IndexError, match=r"\[0, 3\)"):
            stored.successors(node)
        with pytest.raises(IndexError, match=r"\[0, 3\)"):
            stored.successors_of(np.array([0, node]))
