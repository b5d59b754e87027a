"""Compiled and interpreted, links have the same features and scores."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import link_features


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("link_features")


rows = st.lists(st.floats(-8, 8), min_size=6, max_size=6)
counted = st.tuples(
    rows, st.integers(1, 9)
).map(  # a queued link has a parent, at least
    lambda row: (*row[0][:2], float(row[1]), *row[0][3:])
)
links = st.lists(st.tuples(rows, st.none() | counted), max_size=6)


@settings(deadline=None)
@given(links)
def test_compiled_and_interpreted_merge_alike(source, links):
    merged = []
    for kernel in (link_features, source):
        own = [list(row) for row, _ in links]
        queued = [earlier for _, earlier in links]
        is_best = kernel.merge_rows(own, queued, (0, 1, 2), [4], [0, 5], 8.0)
        merged.append((is_best, own))
    assert merged[0] == merged[1]


@settings(deadline=None)
@given(st.lists(st.tuples(rows, st.integers(0, 9)), max_size=6), rows)
def test_compiled_and_interpreted_predict_alike(source, links, weights):
    own, levels = [list(row) for row, _ in links], [level for _, level in links]
    given = own, levels, list(weights), -1.0, 12.0, 0.5, [1, 4], 0.3
    assert link_features.predict(*given) == source.predict(*given)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0.3, 2), st.floats(-4, 4))
def test_compiled_and_interpreted_recalibrate_alike(source, scores, slope, intercept):
    given = scores, slope, intercept, 1e-5
    assert link_features.recalibrate(*given) == source.recalibrate(*given)
