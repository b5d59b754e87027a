"""Backlink count: the link that most crawled pages have comes first."""

import math

import pytest

from tests.lab.orderings.policy_walk import Walk, crawled, made

A = "http://a.test/"


def test_the_link_of_two_pages_comes_before_the_link_of_one(tmp_path):
    once, twice = f"{A}once", f"{A}twice"
    graph = {A: [f"{A}1", f"{A}2"], f"{A}1": [once, twice], f"{A}2": [twice], once: [], twice: []}
    assert crawled(made("backlink"), tmp_path, graph, A) == [A, f"{A}1", f"{A}2", twice, once]


def test_the_priority_is_the_logarithm_of_the_count():
    pages = [f"{A}{n}" for n in range(5)]
    walk = Walk(made("backlink"), *pages)
    for page in pages:
        walk.fetch(page, f"{A}target")
    assert walk.priority(f"{A}target") == pytest.approx(math.log(5))
    assert walk.moved == {}
