"""OPIC: cash is distributed, and the total is preserved."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused_lab.orderings.opic import OpicCash
from tests.lab.orderings.policy_walk import Walk, made
from tests.support.examples import examples

A = "http://a.test/"


def cash_of(walk: Walk, url: str) -> float:
    return math.exp(walk.priority(url))


def bank_of(walk: Walk) -> OpicCash:
    assert isinstance(walk.policy.reprioritiser, OpicCash)
    return walk.policy.reprioritiser


def test_a_page_pays_its_links_and_the_virtual_page_equally():
    walk = Walk(made("opic"), A)
    walk.fetch(A, f"{A}x", f"{A}y")
    assert cash_of(walk, f"{A}x") == pytest.approx(1 / 3)
    walk.fetch(f"{A}x", f"{A}y", f"{A}z", f"{A}w")
    assert cash_of(walk, f"{A}z") == pytest.approx(1 / 12)
    assert cash_of(walk, f"{A}y") == pytest.approx(1 / 3 + 1 / 12)


def test_a_redirect_hands_its_cash_to_where_it_leads():
    walk = Walk(made("opic"), A)
    walk.fetch(A, f"{A}old")
    walk.redirect(f"{A}old", f"{A}older")
    walk.redirect(f"{A}older", f"{A}new")
    walk.fetch(f"{A}new", f"{A}x")
    assert cash_of(walk, f"{A}x") == pytest.approx(1 / 4)


def test_a_seed_that_redirects_pays_as_much_as_one_that_does_not():
    walk = Walk(made("opic"), A)
    walk.redirect(A, f"{A}en/")
    walk.fetch(f"{A}en/", f"{A}x")
    assert cash_of(walk, f"{A}x") == pytest.approx(1 / 2)


def test_a_stub_hands_its_cash_to_where_it_refreshes_to():
    walk = Walk(made("opic"), A)
    walk.fetch(A, refresh=f"{A}en/")
    walk.fetch(f"{A}en/", f"{A}x")
    assert cash_of(walk, f"{A}x") == pytest.approx(1 / 4)


def test_the_virtual_page_pays_all_waiting_links_equally_at_each_update():
    seeds = [f"{A}{n}" for n in range(101)]
    walk = Walk(made("opic"), *seeds)
    walk.fetch(seeds[0], f"{A}x", f"{A}y")
    for seed in seeds[1:99]:
        walk.fetch(seed)
    before = {url: cash_of(walk, url) for url in (f"{A}x", f"{A}y")}
    walk.fetch(seeds[99], f"{A}y")
    assert walk.moved.keys() == before.keys()
    # 1/3 of the first seed, 98 seeds without links, half of the last.
    each = (1 / 3 + 98 + 1 / 2) / 2
    assert cash_of(walk, f"{A}x") == pytest.approx(1 / 3 + each)
    assert cash_of(walk, f"{A}y") == pytest.approx(1 / 3 + 1 / 2 + each)


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_there_is_as_much_cash_as_seeds_were_fetched(seed, seeds):
    rng = random.Random(seed)
    urls = [f"{A}{n}" for n in range(300)]
    walk = Walk(made("opic"), *urls[:seeds])
    fetched_seeds = 0
    for _ in range(150):
        if not walk.queue:
            break
        url = rng.choice(walk.order[:3])
        fetched_seeds += walk.queue[url].parent is None
        targets = rng.sample(urls, rng.randrange(6))
        event = rng.random()
        if event < 0.1:
            walk.fail(url)
        elif event < 0.25:
            walk.redirect(url, rng.choice(urls))
        else:
            walk.fetch(url, *targets, refresh=rng.choice(urls) if event > 0.9 else None)
        assert bank_of(walk).cash == pytest.approx(fetched_seeds)
