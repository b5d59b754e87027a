"""Allocation of downloads by change rate: optima, closed forms, groups, samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from focused_lab.revisit_policies.allocation import (
    HARMONIC,
    NEVER,
    OPTIMAL_AGE,
    OPTIMAL_FRESHNESS,
    PROPORTIONAL,
    RANDOM_FRESHNESS,
    UNIFORM,
    AllocationRule,
    UpdateMode,
    age_fixed,
    age_purely_random,
    age_random,
    allocate,
    allocate_by_group,
    allocate_visits,
    freshness_fixed,
    freshness_purely_random,
    freshness_random,
    optimal_sample_size,
    polling_rule,
    staleness_of_gaps,
)

RULES = [
    UNIFORM,
    PROPORTIONAL,
    OPTIMAL_FRESHNESS,
    OPTIMAL_AGE,
    RANDOM_FRESHNESS,
    HARMONIC,
    polling_rule(0.5),
]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
rates = st.floats(1e-8, 1e2)


@each_rule
@given(rate=rates, weight=st.floats(0.1, 10), price=st.floats(1e-6, 1e3))
def test_a_page_is_due_when_its_value_reaches_the_price(
    rule: AllocationRule, rate: float, weight: float, price: float
) -> None:
    interval = rule.interval(rate, weight, price)
    if math.isfinite(interval):
        assert rule.value(rate, weight, interval) == pytest.approx(price, rel=1e-5)
    else:
        assert rule.value(rate, weight, 1e12) <= price * (1 + 1e-6)


@each_rule
@given(rate=rates, first=st.floats(1e-3, 1e4), factor=st.floats(1.01, 100))
def test_the_value_of_a_visit_grows_with_time(
    rule: AllocationRule, rate: float, first: float, factor: float
) -> None:
    later = rule.value(rate, 1.0, first * factor)
    assert later >= rule.value(rate, 1.0, first) * (1 - 1e-9)


@each_rule
def test_the_budget_is_spent(rule: AllocationRule) -> None:
    pages = np.random.default_rng(1).lognormal(0, 2, 500)
    found = allocate(rule, pages, np.ones(500), 500.0)
    assert found.sum() == pytest.approx(500.0)
    assert (found >= 0).all()


def test_the_published_example_of_five_pages() -> None:
    # Cho, Garcia-Molina 2003, section 4: five pages change 1 to 5 times a day, five visits a day.
    changing = np.arange(1.0, 6.0)
    fresh = allocate(OPTIMAL_FRESHNESS, changing, np.ones(5), 5.0)
    assert fresh == pytest.approx([1.15, 1.36, 1.35, 1.14, 0.00], abs=0.01)
    aged = allocate(OPTIMAL_AGE, changing, np.ones(5), 5.0)
    assert aged == pytest.approx([0.84, 0.97, 1.03, 1.07, 1.09], abs=0.01)


def mean_freshness(frequencies: np.ndarray, changing: np.ndarray) -> float:
    visited = frequencies > 1e-12
    return float(freshness_fixed(changing[visited] / frequencies[visited]).sum() / len(changing))


def test_optimal_freshness_is_within_a_hundredth_of_a_numerical_optimum() -> None:
    changing = np.random.default_rng(2).lognormal(0, 1.5, 30)
    weights = np.random.default_rng(3).random(30) + 0.1

    def loss(f: np.ndarray) -> float:
        return -float((weights * freshness_fixed(changing / np.maximum(f, 1e-9))).sum())

    solved = minimize(
        loss,
        np.ones(30),
        bounds=[(0, None)] * 30,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 30.0},
        options={"maxiter": 500},
    )
    ours = allocate(OPTIMAL_FRESHNESS, changing, weights, 30.0)
    assert -loss(ours) >= -solved.fun * 0.9999
    assert loss(ours) == pytest.approx(solved.fun, rel=0.01)


def test_optimal_age_is_within_a_hundredth_of_a_numerical_optimum() -> None:
    changing = np.random.default_rng(4).lognormal(0, 1, 20)

    def loss(f: np.ndarray) -> float:
        f = np.maximum(f, 1e-6)
        ages = [age_fixed(r / each, 1 / each) for r, each in zip(changing, f, strict=True)]
        return float(sum(ages))

    solved = minimize(
        loss,
        np.ones(20),
        bounds=[(1e-3, None)] * 20,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 20.0},
        options={"maxiter": 500},
    )
    ours = allocate(OPTIMAL_AGE, changing, np.ones(20), 20.0)
    assert loss(ours) <= solved.fun * 1.0001
    assert loss(ours) == pytest.approx(solved.fun, rel=0.01)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_freshness_orders_the_allocations_as_published(spread: float) -> None:
    changing = np.random.default_rng(5).lognormal(0, spread, 400)
    found = {
        rule.name: mean_freshness(allocate(rule, changing, np.ones(400), 400.0), changing)
        for rule in (UNIFORM, PROPORTIONAL, OPTIMAL_FRESHNESS)
    }
    # Proportional allocation gives all pages the freshness of a page of mean rate.
    assert found["proportional"] == pytest.approx(float(freshness_fixed(changing.mean())))
    assert found["proportional"] < found["uniform"] < found["optimal-freshness"]


def test_optimal_freshness_gives_up_pages_that_change_too_fast() -> None:
    assert OPTIMAL_FRESHNESS.interval(10.0, 1.0, 0.2) == NEVER
    assert OPTIMAL_AGE.interval(10.0, 1.0, 0.2) < NEVER
    assert HARMONIC.interval(10.0, 1.0, 0.2) < NEVER


def test_visits_at_random_times_have_their_own_optimum() -> None:
    changing = np.random.default_rng(6).lognormal(0, 1.5, 200)

    def freshness(f: np.ndarray) -> float:
        return float((f / (f + changing)).sum())

    ours = allocate(RANDOM_FRESHNESS, changing, np.ones(200), 200.0)
    others = allocate(OPTIMAL_FRESHNESS, changing, np.ones(200), 200.0)
    assert freshness(ours) > freshness(others)


def test_the_harmonic_rule_minimises_its_cost() -> None:
    changing = np.random.default_rng(7).lognormal(0, 1.5, 50)

    def cost(f: np.ndarray) -> float:
        return -float(np.log(f / (f + changing)).sum())

    ours = allocate(HARMONIC, changing, np.ones(50), 50.0)
    rng = np.random.default_rng(8)
    for _ in range(50):
        other = ours * np.exp(0.1 * rng.normal(size=50))
        assert cost(ours) <= cost(other * (50.0 / other.sum()))


@pytest.mark.parametrize("r", [0.1, 1.0, 4.0])
def test_the_closed_forms_hold_in_simulation(r: float) -> None:
    rng = np.random.default_rng(9)
    rounds = 20_000
    orders = {
        "fixed": np.arange(rounds) + 0.5,
        "random": np.arange(rounds) + rng.random(rounds),
        "purely random": np.sort(rng.random(rounds) * rounds),
    }
    changes = np.sort(rng.random(rng.poisson(r * rounds)) * rounds)
    closed = {
        "fixed": (freshness_fixed(r), age_fixed(r, 1.0)),
        "random": (freshness_random(r), age_random(r, 1.0)),
        "purely random": (freshness_purely_random(r), age_purely_random(r, 1.0)),
    }
    for name, visits in orders.items():
        ends = visits[1:]
        first_change = np.searchsorted(changes, visits[:-1])
        stale_from = np.append(changes, np.inf)[first_change]
        stale = np.maximum(ends - stale_from, 0.0)
        span = ends[-1] - visits[0]
        freshness, age = 1 - stale.sum() / span, (stale**2 / 2).sum() / span
        assert freshness == pytest.approx(float(closed[name][0]), abs=0.015), name
        assert age == pytest.approx(float(closed[name][1]), rel=0.06), name


def test_even_intervals_are_best() -> None:
    r = np.linspace(0.1, 5, 20)
    assert (freshness_fixed(r) > freshness_random(r)).all()
    assert (freshness_random(r) > freshness_purely_random(r)).all()


def test_the_published_freshness_of_update_modes() -> None:
    # VLDB 2000, table 2: pages change every four months, a cycle is a month, a batch a week.
    month = 30.0
    found = {
        (crawl, update): UpdateMode(crawl, update, month, 7.0).freshness(1 / (4 * month))
        for crawl in ("steady", "batch")
        for update in ("in-place", "shadowed")
    }
    assert found["steady", "in-place"] == pytest.approx(0.88, abs=0.006)
    assert found["batch", "in-place"] == pytest.approx(0.88, abs=0.006)
    assert found["steady", "shadowed"] == pytest.approx(0.77, abs=0.015)
    assert found["batch", "shadowed"] == pytest.approx(0.86, abs=0.006)


def test_groups_of_equal_rates_lose_nothing() -> None:
    changing = np.repeat([0.2, 1.0, 5.0], 20)
    groups = np.repeat([7, 8, 9], 20)
    whole = allocate(OPTIMAL_FRESHNESS, changing, np.ones(60), 60.0)
    grouped = allocate_by_group(OPTIMAL_FRESHNESS, changing, np.ones(60), groups, 60.0)
    assert grouped == pytest.approx(whole, rel=1e-4)


def test_a_few_groups_by_rate_come_close_to_the_optimum() -> None:
    changing = np.random.default_rng(10).lognormal(0, 1.5, 300)
    groups = np.digitize(changing, np.quantile(changing, np.linspace(0, 1, 11)[1:-1]))
    ones = np.ones(300)
    best = mean_freshness(allocate(OPTIMAL_FRESHNESS, changing, ones, 300.0), changing)
    grouped = mean_freshness(
        allocate_by_group(OPTIMAL_FRESHNESS, changing, ones, groups, 300.0), changing
    )
    even = mean_freshness(allocate(UNIFORM, changing, ones, 300.0), changing)
    assert grouped - even > 0.8 * (best - even)


def test_whole_numbers_of_visits_approach_the_optimum() -> None:
    changing = np.random.default_rng(11).lognormal(0, 1, 40)
    counts = np.array(allocate_visits(changing.tolist(), [1.0] * 40, 400, 10.0))
    assert counts.sum() == 400
    best = mean_freshness(allocate(OPTIMAL_FRESHNESS, changing, np.ones(40), 40.0), changing)
    assert mean_freshness(counts / 10.0, changing) == pytest.approx(best, rel=0.01)


def test_constant_gaps_are_the_least_stale() -> None:
    rng = np.random.default_rng(12)
    even = staleness_of_gaps(np.ones(10), 1.0)
    assert even == pytest.approx(1 - float(freshness_fixed(1.0)))
    poisson = staleness_of_gaps(rng.exponential(1.0, 200_000), 1.0)
    assert poisson == pytest.approx(0.5, abs=0.01)


def test_the_optimal_sample_grows_with_the_site() -> None:
    shares = np.random.default_rng(13).beta(0.5, 2, 400).tolist()
    small = optimal_sample_size(shares, 50, 0.2)
    large = optimal_sample_size(shares, 5000, 0.2)
    assert 1 <= small < large <= 5000
    assert large == pytest.approx(small * 10, rel=0.3)
    assert optimal_sample_size([0.3] * 10, 100, 0.2) == 1
