"""Calibration turns scores into probabilities."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.calibration import CalibrationCurve, expit, logit
from focused.classifier.calibration_fitting import (
    MIN_SAMPLES_FOR_ISOTONIC,
    best_f1_threshold,
    compute_metrics,
    cross_fit_probabilities,
    expected_calibration_error,
    fit_calibration_curve,
    fit_platt_scaling,
    reliability_bins,
)


def drawn(slope: float, offset: float, count: int = 20_000):
    rng = np.random.default_rng(0)
    raw_scores = rng.normal(size=count)
    return raw_scores, rng.random(count) < expit(slope * raw_scores + offset)


def test_platt_finds_the_sigmoid_that_made_the_labels():
    slope, offset = fit_platt_scaling(*drawn(3.0, -2.0))
    assert (slope, offset) == pytest.approx((3.0, -2.0), abs=0.15)


def test_platt_scaling_is_independent_of_the_unit():
    raw_scores, good = drawn(3.0, -2.0)
    assert fit_platt_scaling(raw_scores * 1000, good)[0] == pytest.approx(
        fit_platt_scaling(raw_scores, good)[0] / 1000, rel=0.01
    )


def test_a_perfect_separation_gives_no_certainty():
    raw_scores = np.array([-1.0] * 10 + [1.0] * 10)
    slope, offset = fit_platt_scaling(raw_scores, raw_scores > 0)
    assert 0.8 < expit(np.array([slope + offset]))[0] < 0.99


def test_misleading_scores_have_a_negative_slope():
    raw_scores, good = drawn(3.0, 0.0, count=500)
    assert fit_platt_scaling(-raw_scores, good)[0] < 0


def test_cross_fitted_probabilities_are_true():
    raw_scores, good = drawn(2.0, -1.0)
    probability = cross_fit_probabilities(
        raw_scores, good, np.arange(len(good)) % 5, np.ones(len(good))
    )
    assert expected_calibration_error(reliability_bins(probability, good)) < 0.02


def test_a_fold_does_not_see_its_own_labels():
    raw_scores, good = drawn(2.0, 0.0, count=200)
    folds = np.arange(200) % 4
    flipped = np.where(folds == 0, ~good, good)
    ours = folds == 0
    assert np.array_equal(
        cross_fit_probabilities(raw_scores, good, folds, np.ones(200))[ours],
        cross_fit_probabilities(raw_scores, flipped, folds, np.ones(200))[ours],
    )


def test_a_fold_that_holds_all_good_samples_is_still_calibrated():
    raw_scores, good = np.array([2.0, 3.0, -1.0, 0.0]), np.array([True, True, False, False])
    assert np.isfinite(
        cross_fit_probabilities(raw_scores, good, np.array([0, 0, 1, 1]), np.ones(4))
    ).all()


def test_the_best_threshold_has_the_highest_f1():
    probability = np.array([0.1, 0.32, 0.4, 0.55, 0.6, 0.9])
    good = np.array([False, False, False, True, True, True])
    assert 0.4 < best_f1_threshold(probability, good) <= 0.55


def test_the_threshold_stays_where_samples_can_support_it():
    probability = np.array([0.01, 0.02, 0.05, 0.06])
    good = np.array([False, False, True, True])
    assert 0.3 <= best_f1_threshold(probability, good) <= 0.7


def test_quality_of_a_known_table():
    quality = compute_metrics(
        np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, True, False, True]), 0.5
    )
    assert (quality.precision, quality.recall) == pytest.approx((2 / 3, 2 / 3))
    assert quality.auc == pytest.approx(2 / 3)


def test_quality_when_nothing_is_chosen_is_zero_not_an_error():
    quality = compute_metrics(np.array([0.1, 0.2]), np.array([True, False]), 0.5)
    assert (quality.precision, quality.recall, quality.f1) == (0.0, 0.0, 0.0)


def test_bins_hold_every_sample_and_their_means():
    bins = reliability_bins(np.array([0.0, 0.05, 0.95, 1.0]), np.array([False, False, True, False]))
    assert [(b.count, b.observed) for b in bins] == [(2, 0.0), (2, 0.5)]
    assert expected_calibration_error(bins) == pytest.approx((2 * 0.025 + 2 * 0.475) / 4)


@given(st.floats(min_value=-700, max_value=700))
def test_expit_is_a_probability_and_undoes_logit(log_odds):
    probability = float(expit(np.array([log_odds]))[0])
    assert 0.0 <= probability <= 1.0
    if abs(log_odds) < 10:
        assert logit(probability) == pytest.approx(log_odds, abs=1e-6)


def test_enough_samples_bend_the_curve_to_what_was_seen():
    rng = np.random.default_rng(5)
    raw_scores = rng.uniform(-3, 3, 6000)
    truth = np.where(np.abs(raw_scores) < 1.5, 0.3, np.where(raw_scores > 0, 0.9, 0.02))
    good = rng.random(6000) < truth
    held_out = rng.uniform(-3, 3, 2000)
    there = np.where(np.abs(held_out) < 1.5, 0.3, np.where(held_out > 0, 0.9, 0.02))
    bent = fit_calibration_curve(raw_scores, good, np.ones(6000))
    smooth = CalibrationCurve(bent.slope, bent.offset)
    assert bent.points

    def error(curve: CalibrationCurve) -> float:
        return float(np.abs([*map(curve.at, held_out.tolist())] - there).mean())

    assert error(bent) < 0.7 * error(smooth)


def test_few_good_samples_leave_the_curve_smooth():
    raw_scores, good = drawn(2.0, 0.0, count=40)
    assert good.sum() < MIN_SAMPLES_FOR_ISOTONIC
    assert fit_calibration_curve(raw_scores, good, np.ones(40)).points == ()


@given(
    st.lists(
        st.tuples(st.floats(-9, 9), st.booleans(), st.floats(0.1, 5)), min_size=80, max_size=160
    )
)
def test_a_curve_never_falls_and_is_never_sure(samples):
    raw_scores, good, weights = (np.array(column) for column in zip(*samples, strict=True))
    good[:2] = True, False
    curve = fit_calibration_curve(raw_scores, good, weights)
    shares = np.array([curve.at(score) for score in np.linspace(-20, 20, 200).tolist()])
    if curve.slope > 0:
        assert np.all(np.diff(shares) >= -1e-12)
    assert np.all((shares >= 0.0) & (shares <= 1.0))


def test_a_sample_of_weight_three_counts_as_three():
    raw_scores, good = drawn(1.0, -1.0, count=60)
    weights = np.where(np.arange(60) % 2, 3.0, 1.0)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    one, other = (
        fit_platt_scaling(raw_scores, good, weights),
        fit_platt_scaling(raw_scores[repeated], good[repeated]),
    )
    assert one == pytest.approx(other, rel=0.02, abs=0.02)
    first = compute_metrics(expit(raw_scores), good, 0.5, weights)
    second = compute_metrics(expit(raw_scores[repeated]), good[repeated], 0.5)
    assert astuple(first) == pytest.approx(astuple(second))


@given(
    raw_scores=st.floats(-1e6, 1e6) | st.sampled_from([-1.0, 0.0, 0.5, 2.0]), steps=st.booleans()
)
def test_a_probability_is_the_mean_of_the_sigmoid_and_the_interpolated_shares(raw_scores, steps):
    points = ((-1.0, 0.0, 0.5, 2.0), (0.1, 0.2, 0.2, 0.9)) if steps else ((), ())
    sigmoid = float(expit(np.array(1.5 * raw_scores - 0.5)))
    expected = (sigmoid + float(np.interp(raw_scores, *points))) / 2 if steps else sigmoid
    assert CalibrationCurve(1.5, -0.5, *points).at(raw_scores) == pytest.approx(expected, abs=1e-12)
