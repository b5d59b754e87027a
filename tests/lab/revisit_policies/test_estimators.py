"""Estimators of change rates on Poisson webs, against the published curves."""

import math

import numpy as np
import pytest

from focused.durations import DAY_S
from focused_lab.revisit_policies.estimators import (
    CheckHistory,
    FrequencyClasses,
    LinearRateModel,
    RateEstimator,
    grouped_likelihood_rate,
    last_modified_rate,
    logarithmic_rate,
    page_quality,
    ratio_rate,
)


def histories(r: float, checks: int, pages: int, seed: int = 1) -> list[CheckHistory]:
    """Poisson pages with ``r`` changes per visit interval of one second, visited regularly."""
    rng = np.random.default_rng(seed)
    found = []
    for counts in rng.poisson(r, size=(pages, checks)):
        history = CheckHistory()
        for count in counts:
            history.add(1.0, bool(count))
        found.append(history)
    return found


def mean_ratio(estimate: RateEstimator, r: float, checks: int, pages: int = 20_000) -> float:
    """The mean estimate as a multiple of the true rate."""
    return float(np.mean([estimate(each) for each in histories(r, checks, pages)])) / r


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0, 2.0])
def test_the_ratio_is_biased_as_published(r):
    # E[r̂] = 1 - exp(-r) for any number of visits (Cho, Garcia-Molina 2003, section 4.1).
    assert mean_ratio(ratio_rate, r, 10) == pytest.approx(-math.expm1(-r) / r, rel=0.03)


def test_the_variance_of_the_ratio_is_the_published_one():
    r, checks = 0.7, 10
    found = [ratio_rate(each) for each in histories(r, checks, 20_000)]
    assert np.var(found) == pytest.approx(math.exp(-r) * -math.expm1(-r) / checks, rel=0.05)


@pytest.mark.parametrize(("r", "checks"), [(0.1, 10), (0.5, 10), (1.0, 10), (1.0, 50), (2.0, 50)])
def test_the_logarithm_is_almost_unbiased(r, checks):
    # Published: no visible bias for r < 1 at n = 10, and for larger r with more visits.
    assert mean_ratio(logarithmic_rate, r, checks) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("r", "checks"), [(0.5, 3), (1.0, 10), (3.0, 10)])
def test_the_expectation_of_the_logarithm_is_the_published_sum(r, checks):
    quiet = math.exp(-r)
    exact = -sum(
        math.log((y + 0.5) / (checks + 0.5))
        * math.comb(checks, y) * quiet**y * (1 - quiet) ** (checks - y)
        for y in range(checks + 1)
    )  # fmt: skip
    assert mean_ratio(logarithmic_rate, r, checks) == pytest.approx(exact / r, rel=0.02)


def test_the_logarithm_is_consistent_and_the_ratio_is_not():
    assert mean_ratio(logarithmic_rate, 1.0, 2000, 200) == pytest.approx(1.0, abs=0.01)
    assert mean_ratio(ratio_rate, 1.0, 2000, 200) == pytest.approx(0.632, abs=0.01)


def dated_histories(r: float, checks: int, pages: int) -> list[CheckHistory]:
    """Poisson pages whose server dates the last change."""
    rng = np.random.default_rng(2)
    found = []
    for counts in rng.poisson(r, size=(pages, checks)):
        history = CheckHistory()
        for count in counts:
            # The last of k uniform times is 1 - (the least of k uniform times) before the visit.
            since = float(rng.random(count).min()) if count else None
            history.add(1.0, bool(count), since)
        found.append(history)
    return found


@pytest.mark.parametrize(("r", "checks"), [(0.3, 10), (1.0, 10), (1.0, 50), (3.0, 20)])
def test_last_modified_dates_give_an_almost_unbiased_rate(r, checks):
    found = [last_modified_rate(each) for each in dated_histories(r, checks, 10_000)]
    assert np.mean(found) / r == pytest.approx(1.0, abs=0.06)


def test_dates_find_the_rate_of_a_page_that_changes_faster_than_it_is_visited():
    r, checks = 8.0, 20
    dated = [last_modified_rate(each) for each in dated_histories(r, checks, 5_000)]
    undated = [logarithmic_rate(each) for each in histories(r, checks, 5_000)]
    assert np.mean(dated) == pytest.approx(r, rel=0.06)
    assert np.mean(undated) < math.log(2 * checks + 1) < r


def test_undated_changes_fall_back_to_the_likelihood():
    history = CheckHistory()
    for changed in (True, False, True, False):
        history.add(DAY_S, changed)
    assert last_modified_rate(history) == grouped_likelihood_rate(history)


def test_the_grouped_likelihood_equals_the_logarithm_at_equal_intervals():
    for history in histories(0.8, 12, 50):
        assert grouped_likelihood_rate(history) == pytest.approx(logarithmic_rate(history))


@pytest.mark.parametrize(
    "estimate", [ratio_rate, logarithmic_rate, last_modified_rate, grouped_likelihood_rate]
)
def test_a_page_that_never_changed_has_the_rate_zero(estimate):
    history = CheckHistory()
    assert estimate(history) == 0
    history.add(DAY_S, False)
    assert estimate(history) == 0


@pytest.mark.parametrize(("days", "expected"), [(1.0, 0), (7.0, 1), (30.0, 2), (365.0, 4)])
def test_frequency_classes_find_the_class_of_a_page(days, expected):
    rng = np.random.default_rng(5)
    classes = FrequencyClasses()
    for _ in range(200):
        classes.add(5 * DAY_S, bool(rng.random() < -math.expm1(-5.0 / days)))
    assert classes.most_likely == expected
    assert classes.rate == pytest.approx(1 / (days * DAY_S))
    assert sum(classes.probabilities) == pytest.approx(1)


def test_the_posterior_of_frequency_classes_is_bayes_rule():
    classes = FrequencyClasses(intervals_days=(1.0, 10.0), prior=[1.0, 3.0])
    classes.add(DAY_S, True)
    likely = 0.25 * -math.expm1(-1.0), 0.75 * -math.expm1(-0.1)
    assert classes.probabilities[0] == pytest.approx(likely[0] / sum(likely))


def test_a_linear_model_learns_rates_from_features():
    rng = np.random.default_rng(6)
    model = LinearRateModel(2, ridge=1e-6)
    for _ in range(400):
        links, depth = rng.random(2)
        model.add((links, depth), 0.1 + 0.5 * links - 0.05 * depth)
    model.refit()
    assert model.predict((1.0, 0.0)) == pytest.approx(0.6, abs=0.01)
    assert model.predict((-5.0, 0.0)) == 0


@pytest.mark.parametrize(("quality", "start"), [(0.6, 0.001), (0.3, 0.05), (0.5, 0.5)])
def test_page_quality_is_found_while_the_page_is_still_unpopular(quality, start):
    def popularity(t: float) -> float:
        return quality / (1 + (quality / start - 1) * math.exp(-2.0 * quality * t))

    found = page_quality(popularity(1.0), popularity(1.5), 0.5, visits_per_s=2.0)
    assert found == pytest.approx(quality, rel=0.03)
