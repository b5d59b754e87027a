"""One budget of pages, shared out to the best links of all partitions."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.budget import (
    Demand,
    next_grants,
    priority_floors,
    share_out,
    unused_pages,
)

PRIORITIES = st.lists(st.floats(-20, 20), max_size=8).map(lambda each: sorted(each, reverse=True))
DEMANDS = st.dictionaries(
    st.integers(0, 9), st.builds(Demand, st.integers(0, 50), st.integers(0, 60), PRIORITIES)
)


def test_the_pages_go_to_the_best_links_of_all_partitions() -> None:
    assert share_out(3, {0: [5.0, 1.0], 1: [4.0, 3.0], 2: [2.0]}) == {0: 1, 1: 2}


def test_among_equal_links_the_lower_partition_comes_first() -> None:
    assert share_out(1, {4: [1.0], 2: [1.0]}) == {4: 1}


def test_without_links_nothing_is_granted() -> None:
    assert share_out(3, {}) == {}
    assert next_grants(10, {0: Demand(0, 0, [])}, 0.5, 10) == {}


def test_a_partition_waits_for_clearly_better_links_of_the_others() -> None:
    floors = priority_floors({0: [3.0, 2.9], 1: [1.0], 2: []}, 0.5)
    assert floors == {0: 0.5, 1: 2.5, 2: 2.5}


def test_of_two_equally_good_partitions_none_waits_for_the_other() -> None:
    assert priority_floors({0: [3.0], 1: [3.0]}, 0.5) == {0: 2.5, 1: 2.5}


def test_a_partition_alone_waits_for_nobody() -> None:
    assert priority_floors({7: [3.0]}, 0.5) == {7: -math.inf}


def test_without_patience_nobody_waits() -> None:
    assert set(priority_floors({0: [3.0], 1: [1.0]}, math.inf).values()) == {-math.inf}


def test_clearly_worse_links_get_no_pages() -> None:
    demands = {0: Demand(0, 0, [3.0, 2.0]), 1: Demand(0, 0, [2.7])}
    assert next_grants(100, demands, 0.5, 10) == {0: 1, 1: 1}


def test_links_that_have_pages_get_no_more() -> None:
    demands = {0: Demand(7, 5, [3.0, 2.9, 2.8]), 1: Demand(0, 0, [2.7])}
    assert next_grants(100, demands, 0.5, 10) == {0: 1, 1: 1}


def test_pages_that_a_partition_may_not_use_are_taken_back() -> None:
    demands = {
        0: Demand(9, 5, [3.0]),
        1: Demand(9, 5, [1.0]),
        2: Demand(9, 6, []),
        3: Demand(9, 9, []),
    }
    assert unused_pages(demands, 0.5) == {1: 4, 2: 3}


@given(DEMANDS, st.integers(0, 400), st.integers(0, 40), st.floats(0, 30))
def test_neither_the_budget_nor_the_pages_ahead_are_exceeded(
    demands: dict[int, Demand], budget: int, ahead: int, worth_waiting_for: float
) -> None:
    granted = sum(each.granted for each in demands.values())
    grants = next_grants(budget, demands, worth_waiting_for, ahead)
    assert all(pages > 0 for pages in grants.values())
    if grants:
        assert granted + sum(grants.values()) <= budget
        assert sum(each.left for each in demands.values()) + sum(grants.values()) <= ahead
