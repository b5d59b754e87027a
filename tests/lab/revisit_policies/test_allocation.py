"""Allocation of downloads by change rate: optima and samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from focused_lab.revisit_policies.allocation import (
    HARMONIC,
    NEVER,
    OPTIMAL_AGE,
    OPTIMAL_FRESHNESS,
    PROPORTIONAL,
    RANDOM_FRESHNESS,
    AllocationRule,
    optimal_sample_size,
    polling_rule,
)

RULES = [
    PROPORTIONAL,
    OPTIMAL_FRESHNESS,
    OPTIMAL_AGE,
    RANDOM_FRESHNESS,
    HARMONIC,
    polling_rule(0.5),
]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
rates = st.floats(1e-8, 1e2)


def allocate(
    rule: AllocationRule, changing: np.ndarray, weights: np.ndarray, budget: float
) -> np.ndarray:
    """The visits per second of each page that add up to ``budget``."""

    def frequencies(price: float) -> np.ndarray:
        pairs = zip(changing.tolist(), weights.tolist(), strict=True)
        return np.array([1.0 / rule.interval(*pair, price) for pair in pairs])

    price = brentq(lambda log: frequencies(math.exp(log)).sum() - budget, -20, 20, xtol=1e-9)
    return frequencies(math.exp(price))


def freshness_fixed(r: np.ndarray | float) -> np.ndarray:
    """Freshness of a page visited at even intervals of ``r`` changes."""
    return -np.expm1(-r) / r


def age_fixed(r: float, interval_s: float) -> float:
    """Age of a page visited at even intervals of ``r`` changes."""
    return interval_s * (0.5 - (1.0 - float(freshness_fixed(r))) / r)


@each_rule
@given(rate=rates, weight=st.floats(0.1, 10), price=st.floats(1e-6, 1e3))
def test_a_page_is_due_when_its_value_reaches_the_price(rule, rate, weight, price):
    interval = rule.interval(rate, weight, price)
    if math.isfinite(interval):
        assert rule.value(rate, weight, interval) == pytest.approx(price, rel=1e-5)
    else:
        assert rule.value(rate, weight, 1e12) <= price * (1 + 1e-6)


@each_rule
@given(rate=rates, first=st.floats(1e-3, 1e4), factor=st.floats(1.01, 100))
def test_the_value_of_a_visit_grows_with_time(rule, rate, first, factor):
    later = rule.value(rate, 1.0, first * factor)
    assert later >= rule.value(rate, 1.0, first) * (1 - 1e-9)


def test_the_published_example_of_five_pages():
    # Cho, Garcia-Molina 2003, section 4: five pages change 1 to 5 times a day, five visits a day.
    changing = np.arange(1.0, 6.0)
    fresh = allocate(OPTIMAL_FRESHNESS, changing, np.ones(5), 5.0)
    assert fresh == pytest.approx([1.15, 1.36, 1.35, 1.14, 0.00], abs=0.01)
    aged = allocate(OPTIMAL_AGE, changing, np.ones(5), 5.0)
    assert aged == pytest.approx([0.84, 0.97, 1.03, 1.07, 1.09], abs=0.01)


def mean_freshness(frequencies: np.ndarray, changing: np.ndarray) -> float:
    visited = frequencies > 1e-12
    return float(freshness_fixed(changing[visited] / frequencies[visited]).sum() / len(changing))


def test_optimal_freshness_is_within_a_hundredth_of_a_numerical_optimum():
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


def test_optimal_age_is_within_a_hundredth_of_a_numerical_optimum():
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
def test_freshness_orders_the_allocations_as_published(spread):
    changing = np.random.default_rng(5).lognormal(0, spread, 400)
    found = {
        rule.name: mean_freshness(allocate(rule, changing, np.ones(400), 400.0), changing)
        for rule in (PROPORTIONAL, OPTIMAL_FRESHNESS)
    }
    uniform = mean_freshness(np.ones(400), changing)
    # Proportional allocation gives all pages the freshness of a page of mean rate.
    assert found["proportional"] == pytest.approx(float(freshness_fixed(changing.mean())))
    assert found["proportional"] < uniform < found["optimal-freshness"]


def test_optimal_freshness_gives_up_pages_that_change_too_fast():
    assert OPTIMAL_FRESHNESS.interval(10.0, 1.0, 0.2) == NEVER
    assert OPTIMAL_AGE.interval(10.0, 1.0, 0.2) < NEVER
    assert HARMONIC.interval(10.0, 1.0, 0.2) < NEVER


def test_visits_at_random_times_have_their_own_optimum():
    changing = np.random.default_rng(6).lognormal(0, 1.5, 200)

    def freshness(f: np.ndarray) -> float:
        return float((f / (f + changing)).sum())

    ours = allocate(RANDOM_FRESHNESS, changing, np.ones(200), 200.0)
    others = allocate(OPTIMAL_FRESHNESS, changing, np.ones(200), 200.0)
    assert freshness(ours) > freshness(others)


def test_the_harmonic_rule_minimises_its_cost():
    changing = np.random.default_rng(7).lognormal(0, 1.5, 50)

    def cost(f: np.ndarray) -> float:
        return -float(np.log(f / (f + changing)).sum())

    ours = allocate(HARMONIC, changing, np.ones(50), 50.0)
    rng = np.random.default_rng(8)
    for _ in range(50):
        other = ours * np.exp(0.1 * rng.normal(size=50))
        assert cost(ours) <= cost(other * (50.0 / other.sum()))


def test_the_optimal_sample_grows_with_the_site():
    shares = np.random.default_rng(13).beta(0.5, 2, 400).tolist()
    small = optimal_sample_size(shares, 50, 0.2)
    large = optimal_sample_size(shares, 5000, 0.2)
    assert 1 <= small < large <= 5000
    assert large == pytest.approx(small * 10, rel=0.3)
    assert optimal_sample_size([0.3] * 10, 100, 0.2) == 1
