"""Shark-search, computed by hand. The classifier gives 2 nats to a text with a whale in it."""

import math
from itertools import pairwise

import pytest

from focused.web.page import Link
from tests.lab.orderings.policy_walk import RELEVANT, Walk, made

A = "http://a.test/"
WHALE = math.tanh(1.0)


def test_links_inherit_half_of_a_relevant_pages_relevance():
    walk = Walk(made("shark"), A)
    (score,) = walk.fetch(A, f"{A}1", relevance=RELEVANT)
    assert score == pytest.approx(0.5 * 0.5 * RELEVANT)


def test_what_is_inherited_decays_with_every_irrelevant_page():
    walk = Walk(made("shark"), A)
    chain = [A, *[f"{A}{n}" for n in range(4)]]
    scores = [
        walk.fetch(url, target, relevance=RELEVANT if url == A else 0.1)[0]
        for url, target in pairwise(chain)
    ]
    assert scores == pytest.approx([0.5 * RELEVANT * 0.5**n for n in (1, 2, 3, 4)])


def test_a_relevant_page_begins_anew():
    walk = Walk(made("shark"), A)
    walk.fetch(A, f"{A}1")
    walk.fetch(f"{A}1", f"{A}2", relevance=RELEVANT)
    assert walk.queue[f"{A}2"].features[0] == pytest.approx(0.5 * RELEVANT)


def test_links_of_an_off_topic_seed_inherit_half_of_one():
    walk = Walk(made("shark"), A)
    walk.fetch(A, f"{A}1")
    assert walk.queue[f"{A}1"].features[0] == pytest.approx(0.5)


def test_what_is_inherited_survives_a_redirect():
    walk = Walk(made("shark"), A)
    walk.fetch(A, f"{A}old", relevance=RELEVANT)
    walk.redirect(f"{A}old", f"{A}new")
    (score,) = walk.fetch(f"{A}new", f"{A}1")
    assert score == pytest.approx(0.5 * 0.25 * RELEVANT)


def test_anchor_and_context_are_added_with_their_weights():
    walk = Walk(made("shark"), A)
    matching, around, neither = walk.fetch(
        A,
        Link(f"{A}1", anchor="whales", context="trade"),
        Link(f"{A}2", anchor="more", context="whales"),
        Link(f"{A}3", anchor="more", context="trade"),
        relevance=RELEVANT,
    )
    inherited = 0.5 * 0.5 * RELEVANT
    # The context counts in full where the anchor already matches the topic.
    assert matching == pytest.approx(inherited + 0.5 * (0.8 * WHALE + 0.2))
    assert around == pytest.approx(inherited + 0.5 * 0.2 * WHALE)
    assert neither == pytest.approx(inherited)


def test_the_best_of_several_parents_is_inherited_from():
    walk = Walk(made("shark"), A, f"{A}2", f"{A}3")
    for seed, relevance in ((A, 0.6), (f"{A}2", RELEVANT), (f"{A}3", 0.7)):
        walk.fetch(seed, f"{A}x", relevance=relevance)
    assert walk.queue[f"{A}x"].features[0] == pytest.approx(0.5 * RELEVANT)
