"""Combined importance: similarity, backlinks, location."""

import math

import pytest

from focused.web.page import Link
from focused_lab.orderings.combined import location_importance
from tests.lab.orderings.policy_walk import RELEVANT, Walk, made

A = "http://a.test/"
WHALE = Link("http://w.test/deep/down/", anchor="whales")
DULL = Link("http://w.test/deep/dull/", anchor="trade")


def similarity(parent: float, verdict: float) -> float:
    return 1 / (1 + math.exp(-(math.log(parent / (1 - parent)) + verdict)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.test/", 1.0),
        ("http://a.test/?page=/1/2", 1.0),
        ("http://a.test/x", 1 / 2),
        ("http://a.test/x/", 1 / 2),
        ("http://a.test/x/y/z.html", 1 / 4),
    ],
)
def test_the_fewer_slashes_the_better(url, expected):
    assert location_importance(url) == pytest.approx(expected)


def test_the_three_are_added_with_their_weights():
    walk = Walk(made("combined"), A)
    scores = walk.fetch(A, WHALE, DULL, relevance=RELEVANT)
    rest = 0.2 * 1 / 11 + 0.2 * 1 / 3
    # The classifier gives the anchor 2 nats, or none.
    assert scores[0] == pytest.approx(0.6 * similarity(RELEVANT, 2.0) + rest)
    assert scores[1] == pytest.approx(0.6 * RELEVANT + rest)


def test_each_parent_adds_a_backlink_and_the_best_one_counts_for_similarity():
    walk = Walk(made("combined"), A, f"{A}2", f"{A}3")
    walk.fetch(A, DULL, relevance=0.2)
    walk.fetch(f"{A}2", DULL, relevance=RELEVANT)
    walk.fetch(f"{A}3", DULL, relevance=0.3)
    assert walk.priority(DULL.url) == pytest.approx(0.6 * RELEVANT + 0.2 * 3 / 13 + 0.2 / 3)
    assert walk.queue[DULL.url].features == pytest.approx((RELEVANT, 3.0, 1 / 3))
