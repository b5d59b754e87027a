"""Simulated revisits and their measures."""

import math

import pytest

from focused.durations import DAY_S
from focused.revisit.policies import find_revisit_policy
from focused_lab.freshness.simulator import measure_page, simulate
from focused_lab.freshness.windows import PageLife, Window

NEVER = math.inf


def life(*changes: float, created_at: float = 0.0, deleted_at: float = NEVER) -> PageLife:
    return PageLife(0, 0, created_at, deleted_at, changes)


def test_a_copy_is_fresh_until_the_page_changes():
    result = measure_page(life(4.0), [0.0, 6.0], 0.0, 10.0)
    assert (result.time_s, result.fresh_s) == (10.0, 4.0 + 4.0)


def test_age_grows_from_the_first_change_that_the_copy_lacks():
    result = measure_page(life(4.0, 5.0), [0.0, 6.0], 0.0, 10.0)
    assert result.age_s2 == pytest.approx(2.0**2 / 2)


def test_a_change_that_is_overwritten_before_the_next_visit_is_not_caught():
    result = measure_page(life(4.0, 5.0), [0.0, 6.0], 0.0, 10.0)
    assert (result.changes, result.caught) == (2, 1)


def test_nothing_before_the_warm_up_is_measured():
    result = measure_page(life(4.0), [0.0, 6.0], 5.0, 10.0)
    assert (result.time_s, result.fresh_s, result.changes) == (5.0, 4.0, 0)
    assert result.age_s2 == pytest.approx(2.0**2 / 2 - 1.0**2 / 2)


def test_a_deleted_page_is_stale_until_a_visit_finds_it_gone():
    result = measure_page(life(deleted_at=4.0), [0.0, 6.0], 0.0, 10.0)
    assert (result.time_s, result.fresh_s) == (6.0, 4.0)


def test_a_created_page_enters_the_collection_at_its_creation():
    result = measure_page(life(created_at=3.0), [3.0], 0.0, 10.0)
    assert (result.time_s, result.fresh_s) == (7.0, 7.0)


def test_uniform_visits_each_page_at_the_mean_interval():
    pages = tuple(life() for _ in range(50))
    window = Window(("site",), pages, 400 * DAY_S, 0.0)
    result = simulate(find_revisit_policy("uniform"), window, 10 * DAY_S)
    assert {page.visits for page in result.pages} <= {39, 40, 41}


def test_no_page_is_visited_within_the_minimal_interval():
    pages = tuple(life(*(day * DAY_S for day in range(1, 20))) for _ in range(3))
    window = Window(("site",), pages, 20 * DAY_S, 0.0)
    result = simulate(find_revisit_policy("hazard"), window, DAY_S, min_interval_s=4 * DAY_S)
    assert {page.visits for page in result.pages} <= {3, 4}
