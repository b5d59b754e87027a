"""Compiled and interpreted, pages have the same features and due times."""

import math
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import change_hazard
from focused.kernels.change_hazard import DAY_S

NOW = 20_000 * DAY_S
BINS = 24
WEIGHTS = (-0.5, 0.8, 0.7, 0.1, 0.2, 0.1, 0.3, 0.4, 0.2, 0.6, -0.2, -0.1, 0.1, 0.2)


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("change_hazard")


days = st.floats(0.0, 400.0, allow_subnormal=False)
counts = st.floats(0.0, 50.0, allow_subnormal=False)
times = days.map(lambda ago: NOW - ago * DAY_S)
bins = st.lists(counts, min_size=BINS, max_size=BINS).map(tuple)
groups = st.tuples(times, counts, days, counts, days, st.sampled_from([0.25, 1.0, 4.0]), bins, bins)
pages = st.tuples(
    st.just(1),
    st.integers(0, 1),
    st.floats(0.01, 9.0),
    times.map(int),
    days,
    days,
    *(counts,) * 3,
    st.integers(0, 99),
)
models = st.tuples(*(st.floats(-1.0, 1.0),) * len(WEIGHTS))


@settings(deadline=None)
@given(pages, groups, groups, days, models, st.floats(1e-6, 99.0))
def test_compiled_and_interpreted_find_the_same_due_time(
    source, page, directory, site, later, weights, price
):
    def found(kernel: ModuleType) -> object:
        context = kernel.page_context(page, directory, site, 40.0, 9_000.0)
        features = kernel.page_features(context, NOW + later * DAY_S)
        due = kernel.due_after(context, features, weights, 0.8, price, 9.0)
        return context, features, kernel.log_hazard(features, weights), due

    assert found(change_hazard) == found(source)


@settings(deadline=None)
@given(st.lists(pages, max_size=9), groups, groups, st.floats(1e-6, 99.0))
def test_compiled_and_interpreted_find_the_same_due_times_of_a_site(
    source, of_site, directory, site, price
):
    directories = {0: directory, 1: site}
    prices = [price] * len(of_site)
    given = of_site, directories, site, 40.0, 9_000.0, NOW, WEIGHTS, 0.8, prices, 9.0
    all_times = change_hazard.due_times(*given, math.inf)
    assert all_times == source.due_times(*given, math.inf)
    latest = NOW + 3 * DAY_S
    until_then = change_hazard.due_times(*given, latest)
    assert until_then == source.due_times(*given, latest)
    for due, precise in zip(until_then, all_times, strict=True):
        assert due in (precise, math.inf)


@settings(deadline=None)
@given(pages, groups, days, st.booleans(), st.none() | times)
def test_compiled_and_interpreted_a_visit_has_the_same_effect(
    source, page, group, later, changed, at
):
    changed_at = at if changed else None

    def found(kernel: ModuleType) -> object:
        group_then = kernel.group_after(group, NOW, later + 0.1, 1.0, changed, changed_at)
        return group_then, kernel.page_after(page, NOW, changed, changed_at)

    assert found(change_hazard) == found(source)


def test_a_group_counts_what_came_after_a_time(source):
    changes, covered = (1.0, 2.0, *(0.0,) * 22), (4.0, 4.0, *(0.0,) * 22)
    end = NOW + 2 * DAY_S  # in the middle of the newest bin, which is four days wide
    group = (end, 3.0, 8.0, 3.0, 8.0, 4.0, changes, covered)
    assert source.activity_since(group, NOW) == (1.0, 4.0)
    assert source.activity_since(group, NOW - 1 * DAY_S) == (1.5, 5.0)
    assert source.activity_since(group, NOW - 900 * DAY_S) == (3.0, 8.0)


def test_the_value_reaches_the_price_at_the_crossing(source):
    at = source.crossing(0.0, -2.0, 0.9, 0.5, 9.0, 0.0)
    hazard = source.exp(-2.0 + 0.9 * at)
    value = source.expm1(-hazard) ** 2 * source.exp(at) / hazard
    assert value == pytest.approx(source.exp(0.5), rel=1e-3)
