"""Scores into probabilities."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.learning.calibration import (
    ENOUGH_FOR_STEPS,
    Curve,
    best_threshold,
    calibration_error,
    cross_fitted,
    expit,
    fit_curve,
    logit,
    measure,
    platt,
    reliability,
)


def drawn(slope: float, offset: float, count: int = 20_000):
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=count)
    return evidence, rng.random(count) < expit(slope * evidence + offset)


def test_platt_finds_the_sigmoid_that_made_the_labels():
    slope, offset = platt(*drawn(3.0, -2.0))
    assert (slope, offset) == pytest.approx((3.0, -2.0), abs=0.15)


def test_platt_does_not_mind_the_unit_of_evidence():
    evidence, good = drawn(3.0, -2.0)
    assert platt(evidence * 1000, good)[0] == pytest.approx(
        platt(evidence, good)[0] / 1000, rel=0.01
    )


def test_a_perfect_separation_gives_no_certainty():
    evidence = np.array([-1.0] * 10 + [1.0] * 10)
    slope, offset = platt(evidence, evidence > 0)
    assert 0.8 < expit(np.array([slope + offset]))[0] < 0.99


def test_misleading_evidence_has_a_negative_slope():
    evidence, good = drawn(3.0, 0.0, count=500)
    assert platt(-evidence, good)[0] < 0


def test_cross_fitted_probabilities_are_true():
    evidence, good = drawn(2.0, -1.0)
    probability = cross_fitted(evidence, good, np.arange(len(good)) % 5, np.ones(len(good)))
    assert calibration_error(reliability(probability, good)) < 0.02


def test_a_fold_does_not_see_its_own_labels():
    evidence, good = drawn(2.0, 0.0, count=200)
    folds = np.arange(200) % 4
    flipped = np.where(folds == 0, ~good, good)
    ours = folds == 0
    assert np.array_equal(
        cross_fitted(evidence, good, folds, np.ones(200))[ours],
        cross_fitted(evidence, flipped, folds, np.ones(200))[ours],
    )


def test_a_fold_that_holds_all_good_samples_is_still_calibrated():
    evidence, good = np.array([2.0, 3.0, -1.0, 0.0]), np.array([True, True, False, False])
    assert np.isfinite(cross_fitted(evidence, good, np.array([0, 0, 1, 1]), np.ones(4))).all()


def test_the_best_threshold_has_the_highest_f1():
    probability = np.array([0.1, 0.32, 0.4, 0.55, 0.6, 0.9])
    good = np.array([False, False, False, True, True, True])
    assert 0.4 < best_threshold(probability, good) <= 0.55


def test_the_threshold_stays_where_samples_can_support_it():
    probability = np.array([0.01, 0.02, 0.05, 0.06])
    good = np.array([False, False, True, True])
    assert 0.3 <= best_threshold(probability, good) <= 0.7


def test_quality_of_a_known_table():
    quality = measure(np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, True, False, True]), 0.5)
    assert (quality.precision, quality.recall) == pytest.approx((2 / 3, 2 / 3))
    assert quality.auc == pytest.approx(2 / 3)


def test_quality_when_nothing_is_chosen_is_zero_not_an_error():
    quality = measure(np.array([0.1, 0.2]), np.array([True, False]), 0.5)
    assert (quality.precision, quality.recall, quality.f1) == (0.0, 0.0, 0.0)


def test_bins_hold_every_sample_and_their_means():
    bins = reliability(np.array([0.0, 0.05, 0.95, 1.0]), np.array([False, False, True, False]))
    assert [(b.count, b.observed) for b in bins] == [(2, 0.0), (2, 0.5)]
    assert calibration_error(bins) == pytest.approx((2 * 0.025 + 2 * 0.475) / 4)


@given(st.floats(min_value=-700, max_value=700))
def test_expit_is_a_probability_and_undoes_logit(log_odds):
    probability = float(expit(np.array([log_odds]))[0])
    assert 0.0 <= probability <= 1.0
    if abs(log_odds) < 10:
        assert logit(probability) == pytest.approx(log_odds, abs=1e-6)


def test_enough_samples_bend_the_curve_to_what_was_seen():
    rng = np.random.default_rng(5)
    evidence = rng.uniform(-3, 3, 6000)
    truth = np.where(np.abs(evidence) < 1.5, 0.3, np.where(evidence > 0, 0.9, 0.02))
    good = rng.random(6000) < truth
    held_out = rng.uniform(-3, 3, 2000)
    there = np.where(np.abs(held_out) < 1.5, 0.3, np.where(held_out > 0, 0.9, 0.02))
    bent = fit_curve(evidence, good, np.ones(6000))
    smooth = Curve(bent.slope, bent.offset)
    assert bent.points
    assert np.abs(bent(held_out) - there).mean() < 0.7 * np.abs(smooth(held_out) - there).mean()


def test_few_good_samples_leave_the_curve_smooth():
    evidence, good = drawn(2.0, 0.0, count=40)
    assert good.sum() < ENOUGH_FOR_STEPS
    assert fit_curve(evidence, good, np.ones(40)).points == ()


@given(
    st.lists(
        st.tuples(st.floats(-9, 9), st.booleans(), st.floats(0.1, 5)), min_size=80, max_size=160
    )
)
def test_a_curve_never_falls_and_is_never_sure(samples):
    evidence, good, weights = (np.array(column) for column in zip(*samples, strict=True))
    good[:2] = True, False
    curve = fit_curve(evidence, good, weights)
    shares = curve(np.linspace(-20, 20, 200))
    if curve.slope > 0:
        assert np.all(np.diff(shares) >= -1e-12)
    assert np.all((shares >= 0.0) & (shares <= 1.0))


def test_a_sample_of_weight_three_counts_as_three():
    evidence, good = drawn(1.0, -1.0, count=60)
    weights = np.where(np.arange(60) % 2, 3.0, 1.0)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    one, other = platt(evidence, good, weights), platt(evidence[repeated], good[repeated])
    assert one == pytest.approx(other, rel=0.02, abs=0.02)
    first = measure(expit(evidence), good, 0.5, weights)
    second = measure(expit(evidence[repeated]), good[repeated], 0.5)
    assert astuple(first) == pytest.approx(astuple(second))


@given(evidence=st.floats(-1e6, 1e6) | st.sampled_from([-1.0, 0.0, 0.5, 2.0]), steps=st.booleans())
def test_one_piece_of_evidence_has_the_probability_that_it_has_among_others(evidence, steps):
    points = ((-1.0, 0.0, 0.5, 2.0), (0.1, 0.2, 0.2, 0.9)) if steps else ((), ())
    curve = Curve(1.5, -0.5, *points)
    assert curve.at(evidence) == pytest.approx(float(curve(np.array([evidence]))[0]), abs=1e-12)
