"""Features of several in-links are merged into one row."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.link_scoring.link_features import (
    FEATURE_INDEX,
    FEATURE_NAMES,
    MAX_IN_LINKS,
    MAX_LINKS_SINCE_RELEVANT,
    MAX_PARENT_LOG_ODDS,
    clipped_log_odds,
    links_since_relevant,
    merge_features,
    round_features,
)
from focused.link_scoring.protocols import PageContext
from focused.web.page import Classification, Page

HIGHEST = ("parent", "anchor", "context", "anchor_meaning", "context_meaning")
LOWEST = ("since",)


@dataclass(frozen=True)
class Waiting:
    features: tuple[float, ...]
    url: str = "http://a.test/x"
    anchor: str = ""
    parent: str | None = None
    tag_path_key: int = 0


def features(parent: float = 0.0, **features: float) -> np.ndarray:
    """What one page tells of its link."""
    row = np.zeros(len(FEATURE_NAMES))
    values = {"parent": parent, "parents": parent, "in_links": 1.0, **features}
    for name, value in values.items():
        row[FEATURE_INDEX[name]] = value
    return row


def joined(*rows: np.ndarray) -> tuple[np.ndarray, list[bool]]:
    """The features of pages that link to one target, one after the other; and who led."""
    waiting, led = None, []
    for row in rows:
        rows = [row.tolist()]
        led += merge_features(rows, [waiting])
        waiting = Waiting(tuple(rows[0]))
    assert waiting is not None
    return np.array(waiting.features), led


def values_of(row: np.ndarray, *names: str) -> list[float]:
    return [float(row[FEATURE_INDEX[name]]) for name in names]


nats = st.floats(-4, 4)
pages = st.builds(
    features,
    parent=nats,
    since=st.integers(0, 8).map(float),
    anchor=nats,
    context=nats,
)
some_pages = st.lists(pages, min_size=1, max_size=MAX_IN_LINKS)
many_pages = st.lists(pages, min_size=1, max_size=3 * MAX_IN_LINKS)


def test_without_queued_links_the_pages_own_features_stay():
    rows = [features(1.0, anchor=2.0).tolist(), features(-1.0).tolist()]
    before = [list(row) for row in rows]
    assert merge_features(rows, [None, None]) == [True, True]
    assert rows == before


def test_best_and_mean_parent_are_both_features():
    row, _ = joined(features(3.0), features(-1.0), features(1.0))
    assert values_of(row, "parent", "parents", "in_links") == [3.0, pytest.approx(1.0), 3.0]


def test_the_link_on_the_most_relevant_page_is_the_best_inlink():
    _, led = joined(features(-1.0), features(2.0), features(1.0))
    assert led == [True, True, False]


def test_of_pages_that_are_equally_relevant_the_first_leads():
    _, led = joined(features(1.0), features(1.0))
    assert led == [True, False]


@pytest.mark.parametrize("known", [(), (0.5,), (1.0,) * (len(FEATURE_NAMES) + 1)])
def test_a_seed_and_what_another_scorer_found_are_not_joined(known):
    rows = [features(-2.0, anchor=1.0).tolist()]
    before = list(rows[0])
    assert merge_features(rows, [Waiting(known)]) == [True]
    assert rows == [before]


def test_each_link_of_a_page_is_joined_with_its_own():
    rows = [features(1.0).tolist() for _ in range(3)]
    waiting = [Waiting(tuple(features(2.0))), None, Waiting(tuple(features(-2.0)))]
    assert merge_features(rows, waiting) == [False, True, True]
    assert [row[FEATURE_INDEX["parent"]] for row in rows] == [2.0, 1.0, 1.0]
    assert [row[FEATURE_INDEX["in_links"]] for row in rows] == [2.0, 1.0, 2.0]


def test_after_many_inlinks_only_a_more_relevant_page_adds_information():
    many = [features(0.0)] * MAX_IN_LINKS
    before, _ = joined(*many)
    after, led = joined(*many, features(-4.0, anchor=4.0))
    assert np.array_equal(after, before)
    assert led[-1] is False
    risen, led = joined(*many, features(4.0, anchor=4.0))
    assert values_of(risen, "parent", "anchor") == [4.0, 4.0]
    assert led[-1] is True


@given(many_pages, pages)
def test_merging_never_lowers_a_maximum_or_raises_a_minimum(before, page):
    old, _ = joined(*before)
    new, _ = joined(*before, page)
    assert all(
        n >= o for n, o in zip(values_of(new, *HIGHEST), values_of(old, *HIGHEST), strict=True)
    )
    assert all(
        n <= o for n, o in zip(values_of(new, *LOWEST), values_of(old, *LOWEST), strict=True)
    )


@given(many_pages)
def test_in_links_are_bounded_and_the_mean_stays_between_its_pages(rows):
    row, _ = joined(*rows)
    parents = [float(each[FEATURE_INDEX["parent"]]) for each in rows]
    assert values_of(row, "in_links") == [float(min(len(rows), MAX_IN_LINKS))]
    assert values_of(row, "parent") == [max(parents)]
    (mean,) = values_of(row, "parents")
    assert min(parents) - 1e-9 <= mean <= max(parents) + 1e-9


@given(some_pages, st.randoms(use_true_random=False))
def test_the_order_of_few_pages_does_not_matter(rows, rng):
    one, _ = joined(*rows)
    shuffled = list(rows)
    rng.shuffle(shuffled)
    other, _ = joined(*shuffled)
    assert other == pytest.approx(one)


@given(some_pages)
def test_joining_leaves_what_the_address_and_the_crawl_tell_alone(rows):
    others = ("url", "url_meaning", "siblings", "tag_path")
    for row in rows:
        for name in others:
            row[FEATURE_INDEX[name]] = 0.25
    row, _ = joined(*rows)
    assert values_of(row, *others) == [0.25] * len(others)


@given(st.floats(0, 1), st.floats(0, 1))
def test_relevance_in_nats_rises_with_it_within_bounds(one, other):
    low, high = sorted((one, other))
    assert clipped_log_odds(low) <= clipped_log_odds(high)
    assert abs(clipped_log_odds(one)) <= MAX_PARENT_LOG_ODDS + 1e-9


def test_links_since_the_last_page_on_topic_are_counted():
    page = Page("http://a.test/")
    far = PageContext(page, Classification(0.1, False), features=tuple(features(since=2.0)))
    found = PageContext(page, Classification(0.9, True), features=tuple(features(since=2.0)))
    lost = PageContext(
        page, Classification(0.1, False), features=tuple(features(since=MAX_LINKS_SINCE_RELEVANT))
    )
    seed = PageContext(page, Classification(0.1, False))
    assert [links_since_relevant(each) for each in (far, found, lost, seed)] == [
        3.0,
        0.0,
        MAX_LINKS_SINCE_RELEVANT,
        0.0,
    ]


@given(st.lists(st.floats(-60, 60), min_size=len(FEATURE_NAMES), max_size=len(FEATURE_NAMES)))
def test_features_are_rounded_by_a_thousandth_and_only_once(values):
    once = round_features(values)
    assert np.allclose(once, values, rtol=1e-3, atol=1e-7)
    assert round_features(once) == once
