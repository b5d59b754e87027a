"""Scores of links are calibrated online, and keep their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from threadpoolctl import threadpool_info, threadpool_limits

from focused.classifier.calibration import expit
from focused.link_scoring import linear_model, recalibration
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import OnlineUpdate
from focused.link_scoring.recalibration import (
    MAX_FORECASTS,
    MAX_SLOPE,
    MIN_SLOPE,
    ScoreRecalibration,
    fit_newton,
)
from tests.link_scoring.apprentices import LINKS, PRIOR, examples_of_a_crawl, new_apprentice, seen

SCORES = np.linspace(0.0, 1.0, 101).tolist()
forecasts = st.lists(st.tuples(st.floats(-12, 12), st.floats(0, 1)), min_size=25, max_size=80)


def taught(pairs: list[tuple[float, float]]) -> ScoreRecalibration:
    recalibration = ScoreRecalibration()
    for log_odds, relevance in pairs:
        recalibration.learn(log_odds, relevance)
    return recalibration


def drawn(count: int, slope: float, intercept: float, seed: int = 1) -> list[tuple[float, float]]:
    """Forecasts whose targets are as relevant as slope and intercept say."""
    log_odds = np.random.default_rng(seed).normal(0.0, 2.5, count)
    relevance = expit(intercept + slope * log_odds)
    return list(zip(log_odds.tolist(), relevance.tolist(), strict=True))


def test_until_there_are_enough_forecasts_scores_stay_as_they_are():
    assert taught(drawn(24, 0.5, -1.0)).apply(SCORES) == SCORES


def test_it_is_fitted_again_every_twenty_five_forecasts():
    recalibration, found = ScoreRecalibration(), []
    for log_odds, relevance in drawn(100, 0.5, -1.0):
        recalibration.learn(log_odds, relevance)
        found.append(recalibration.slope)
    assert [n for n in range(1, 101) if n == 1 or found[n - 1] != found[n - 2]] == [
        1, 25, 50, 75, 100,
    ]  # fmt: skip


@pytest.mark.parametrize(("slope", "intercept"), [(0.6, -0.5), (1.4, 0.3), (1.0, 0.0)])
def test_it_finds_slope_and_intercept_of_the_crawl(slope, intercept):
    found = taught(drawn(1_500, slope, intercept))
    assert found.slope == pytest.approx(slope, abs=0.05)
    assert found.intercept == pytest.approx(intercept, abs=0.1)


def test_scores_that_are_too_sure_become_as_sure_as_they_should():
    found = taught(drawn(1_500, 0.5, 0.0))
    low, middle, high = found.apply([0.02, 0.5, 0.98])
    assert 0.1 < low < 0.2
    assert middle == pytest.approx(0.5, abs=0.02)
    assert 0.8 < high < 0.9


def test_a_few_forecasts_move_scores_a_little():
    assert taught(drawn(25, 0.3, 0.0)).slope > 0.6


@given(forecasts)
def test_any_forecasts_leave_the_slope_bounded_and_the_order_as_it_was(pairs):
    found = taught(pairs)
    assert MIN_SLOPE <= found.slope <= MAX_SLOPE
    calibrated = np.array(found.apply(SCORES))
    assert (np.diff(calibrated) >= 0).all()
    assert ((calibrated >= 0) & (calibrated <= 1)).all()


@pytest.mark.parametrize(
    ("slope", "bound"), [(-1.0, MIN_SLOPE), (0.0, MIN_SLOPE), (6.0, MAX_SLOPE)]
)
def test_beyond_its_bounds_the_slope_stops_and_the_mean_still_fits(slope, bound):
    pairs = drawn(1_000, slope, 0.4)
    found = taught(pairs)
    assert found.slope == bound
    calibrated = found.apply(expit(np.array([log_odds for log_odds, _ in pairs])).tolist())
    assert np.mean(calibrated) == pytest.approx(np.mean([each for _, each in pairs]), abs=0.02)


def test_old_forecasts_are_forgotten():
    pairs = [*drawn(500, 2.0, 3.0), *drawn(MAX_FORECASTS, 0.6, -0.5, seed=2)]
    only_new = taught(pairs[500:])
    assert taught(pairs).slope == pytest.approx(only_new.slope, abs=1e-3)


@pytest.mark.parametrize("cut", [0, 1, 25, 60, 2_030])
def test_restored_it_goes_on_as_if_nothing_had_been(cut):
    pairs = drawn(2_100, 0.7, -0.3)
    whole, restored = taught(pairs), ScoreRecalibration()
    restored.restore(taught(pairs[:cut]).state())
    for each in pairs[cut:]:
        restored.learn(*each)
    assert restored.state() == whole.state()
    assert restored.apply(SCORES) == whole.apply(SCORES)


# Of the apprentice


def after_lessons(tempered: float | None, **options: bool) -> Apprentice:
    """Two crawls' examples; good pages have the ``tempered`` relevance."""
    learner = new_apprentice(**options)
    for each in examples_of_a_crawl(200):
        learner.learn(each if each.relevance < 0.5 else replace(each, tempered=tempered))
    return learner


def test_tempered_relevances_change_calibrated_scores_and_no_other():
    plain, tempered = after_lessons(None), after_lessons(0.6)
    none_waits = [None] * len(LINKS)
    of_plain, of_tempered = (
        learner.score_merged(seen(0.7), LINKS, none_waits) for learner in (plain, tempered)
    )
    assert of_plain == of_tempered
    scores = [found.score for found in of_plain]
    high, low = (np.mean(learner.calibrate_scores(scores)) for learner in (plain, tempered))
    assert low < high - 0.05


def test_a_frozen_apprentice_leaves_scores_as_they_are():
    frozen = after_lessons(0.6, learns=False)
    assert frozen.calibrate_scores(SCORES) == SCORES


def numpy_threads() -> set[int]:
    """How many threads NumPy's BLAS uses; SciPy has another."""
    return {pool["num_threads"] for pool in threadpool_info() if "numpy" in pool["filepath"]}


def test_fits_use_one_thread_and_leave_the_other_cores_alone(monkeypatch):
    if not numpy_threads():
        pytest.skip("nobody can tell the threads of this NumPy's BLAS")
    during = []

    def observed(*given: np.ndarray) -> np.ndarray:
        during.append(numpy_threads())
        return fit_newton(*given)

    for module in (recalibration, linear_model):
        monkeypatch.setattr(module, "fit_newton", observed)
    with threadpool_limits(limits=2, user_api="blas"):
        before = numpy_threads()
        taught(drawn(25, 0.5, -1.0))
        update = OnlineUpdate(PRIOR)
        for _ in range(25):
            update.learn(np.ones(len(PRIOR.weights)), 0.5)
        assert numpy_threads() == before
    assert during == [{1}, {1}]
