"""PageRank on the crawled graph."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused_lab.orderings.pagerank import DAMPING, page_rank
from tests.lab.orderings.policy_walk import Walk, made

A = "http://a.test/"
edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True, max_size=30)


def eigen_solution(links: list[tuple[int, int]], pages: int) -> np.ndarray:
    """The dominant eigenvector of the dense Google matrix, mean 1."""
    moves = np.zeros((pages, pages))
    for source, target in links:
        moves[target, source] = 1.0
    counts = moves.sum(axis=0)
    moves[:, counts == 0] = 1.0
    google = DAMPING * moves / moves.sum(axis=0) + (1.0 - DAMPING) / pages
    values, vectors = np.linalg.eig(google)
    vector = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    return vector * pages / vector.sum()


@given(edges)
def test_power_iteration_finds_the_eigenvector(links):
    sources, targets = (np.array([e[end] for e in links], dtype=np.intc) for end in (0, 1))
    ranks = page_rank(sources, targets, np.ones(8))
    assert ranks.mean() == pytest.approx(1.0)
    assert ranks == pytest.approx(eigen_solution(links, 8), abs=1e-3)


def test_by_hand_two_pages_that_link_to_a_third():
    # a and b have x = 0.1 + 0.9 c / 3, c leads nowhere and has what is left of 3.
    sources, targets = np.array([0, 1], dtype=np.intc), np.array([2, 2], dtype=np.intc)
    x = (0.1 + 0.9) / 1.6
    assert page_rank(sources, targets, np.ones(3)) == pytest.approx([x, x, 3.0 - 2.0 * x], abs=1e-3)


def test_between_steps_a_link_has_its_parents_shares():
    walk = Walk(made("pagerank"), A, f"{A}2")
    walk.fetch(A, f"{A}x", f"{A}y")
    assert walk.priority(f"{A}x") == pytest.approx(math.log(0.1 + 0.9 / 2))
    walk.fetch(f"{A}2", f"{A}x")
    assert walk.priority(f"{A}x") == pytest.approx(math.log(0.1 + 0.9 / 2 + 0.9))
    walk.fetch(f"{A}x", f"{A}z")
    assert walk.priority(f"{A}z") == pytest.approx(math.log(0.1 + 0.9 * (0.1 + 0.9 / 2 + 0.9)))


def test_at_a_step_all_waiting_links_have_the_rank_of_the_whole_graph():
    seeds = [f"{A}{n}" for n in range(100)]
    targets = [f"{A}target-{n}" for n in range(10)]
    walk = Walk(made("pagerank"), *seeds)
    links = []
    for n, seed in enumerate(seeds):
        chosen = sorted({n % 10, n % 7, n % 3})
        walk.fetch(seed, *[targets[each] for each in chosen])
        links += [(n, 100 + each) for each in chosen]
    assert walk.moved
    exact = np.log(eigen_solution(links, 110)[100:])
    assert [walk.priority(url) for url in targets] == pytest.approx(list(exact), abs=0.1)
    assert walk.order[0] == targets[int(np.argmax(exact))]


def test_a_redirect_hands_its_rank_on():
    seeds = [f"{A}{n}" for n in range(99)]
    walk = Walk(made("pagerank"), *seeds)
    for seed in seeds[:70]:
        walk.fetch(seed, f"{A}old")
    walk.redirect(f"{A}old", f"{A}new")
    for seed in seeds[70:]:
        walk.fetch(seed, f"{A}other")
    assert walk.order == [f"{A}new", f"{A}other"]
    # The hundredth page. Two links further, 0.81 of what seventy gave is more than what 29 gave.
    walk.fetch(f"{A}new", f"{A}behind-new")
    assert walk.order == [f"{A}behind-new", f"{A}other"]
    assert walk.moved[f"{A}behind-new"] > walk.priority(f"{A}other")
