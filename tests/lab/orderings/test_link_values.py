"""Unbounded values as scores and priorities."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused_lab.orderings.link_values import (
    MAX_PRIORITY,
    LinkValues,
    next_update,
    order_by_log_value,
    score_to_value,
    value_to_score,
)

amounts = st.floats(1e-9, 1e9)


@given(amounts)
def test_an_amount_survives_its_way_through_a_score(amount):
    score = float(value_to_score(amount))
    assert 0.0 < score < 1.0
    assert score_to_value(score) == pytest.approx(amount, rel=1e-6)


@given(amounts)
def test_ten_per_cent_more_is_a_tenth_more_in_priority(amount):
    less, more = (
        order_by_log_value(float(value_to_score(each)), 0) for each in (amount, amount * 1.1)
    )
    assert more - less == pytest.approx(0.1, abs=0.01)


def test_seeds_come_before_any_amount_and_nothing_comes_last():
    assert order_by_log_value(1.0, 0) == MAX_PRIORITY
    assert order_by_log_value(0.0, 0) == -MAX_PRIORITY
    assert order_by_log_value(float(value_to_score(1e12)), 0) < MAX_PRIORITY


def test_all_steps_together_cost_about_five_times_the_last():
    steps = [next_update(0)]
    while steps[-1] < 1_000_000:
        steps.append(next_update(steps[-1]))
    assert steps[:5] == [100, 200, 300, 400, 500]
    assert sum(steps) < 5.5 * steps[-1]
    assert all(later >= earlier + 100 for earlier, later in pairwise(steps))


def test_only_links_that_wait_and_whose_amount_changed_by_a_tenth_are_moved():
    ledger = LinkValues()
    near, far, fetched = (ledger.queue(url, 1.0) for url in ("near", "far", "fetched"))
    ledger.settle("fetched")
    ledger.amounts[near], ledger.amounts[far], ledger.amounts[fetched] = 1.05, 2.0, 2.0
    assert ledger.moves() == {"far": pytest.approx(math.log(2.0))}
    assert ledger.moves() == {}


def test_small_changes_add_up_to_a_move():
    ledger = LinkValues()
    number = ledger.queue("url", 1.0)
    ledger.amounts[number] = 0.93
    assert ledger.moves() == {}
    ledger.amounts[number] = 0.86
    assert ledger.moves().keys() == {"url"}
