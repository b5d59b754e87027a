"""Scores of several models are combined by their worth on samples left out."""

import numpy as np
import pytest

from focused.classifier.calibration_fitting import roc_auc
from focused.classifier.estimators import ScoreCombination, fit_combination


def parts(count: int, *distances: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of ``count`` good and four times as many other samples, and their classes."""
    rng = np.random.default_rng(5)
    good = np.arange(5 * count) < count
    return rng.normal(size=(5 * count, len(distances))) + np.outer(good, distances), good


def combined(count: int, *distances: float) -> ScoreCombination:
    scores, good = parts(count, *distances)
    return fit_combination(scores, good, np.ones(len(good)))


def test_two_independent_parts_rank_better_than_either():
    scores, good = parts(400, 1.5, 1.5)
    found = fit_combination(scores, good, np.ones(len(good)))
    best = max(roc_auc(column, good) for column in scores.T)
    assert roc_auc(found.apply(scores), good) > best + 0.03


def test_with_many_samples_the_better_part_counts_more():
    base, other = combined(1000, 0.5, 3.0).shares
    assert other > 2 * base


def test_with_few_samples_the_base_counts_most():
    base, *others = combined(3, 2.0, 2.0, 2.0).shares
    assert base > max(others)


def test_a_part_that_misleads_has_no_weight():
    assert combined(50, 2.0, -2.0).coefficients[1] == 0.0


def test_parts_that_separate_nothing_give_no_scores():
    scores, good = np.zeros((20, 2)), np.arange(20) < 5
    assert not fit_combination(scores, good, np.ones(20)).apply(scores).any()


def test_the_scale_of_a_part_does_not_matter():
    scores, good = parts(50, 2.0, 1.0)
    one = fit_combination(scores, good, np.ones(len(good)))
    scaled = fit_combination(scores * (1.0, 100.0), good, np.ones(len(good)))
    assert scaled.apply(scores * (1.0, 100.0)) == pytest.approx(one.apply(scores), abs=1e-3)


def test_the_number_of_other_samples_does_not_matter():
    scores, good = parts(50, 2.0, 1.0)
    more = np.concatenate((scores, scores[~good]))
    doubled = fit_combination(more, np.arange(len(more)) < good.sum(), np.ones(len(more)))
    once = fit_combination(scores, good, np.ones(len(good)))
    assert doubled.coefficients == pytest.approx(once.coefficients, abs=1e-3)
