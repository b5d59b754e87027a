"""The threshold by its target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.calibration import ThresholdTarget
from focused.classifier.calibration_fitting import choose_threshold, compute_metrics


def drawn(seed: int = 0, count: int = 2_000):
    rng = np.random.default_rng(seed)
    relevance = rng.beta(0.5, 1.0, count)
    return relevance, rng.random(count) < relevance, np.ones(count)


@pytest.mark.parametrize("wished", [0.5, 0.8, 0.9])
def test_a_precision_is_granted_with_as_much_recall_as_can_be(wished):
    relevance, good, weights = drawn()
    found = choose_threshold(relevance, good, weights, ThresholdTarget(precision=wished))
    quality = compute_metrics(relevance, good, found.relevance)
    assert found.granted
    assert wished <= quality.precision < wished + 0.01
    lower = compute_metrics(relevance, good, found.relevance - 0.02)
    assert lower.precision < wished


@pytest.mark.parametrize("wished", [0.3, 0.9, 1.0])
def test_a_recall_is_granted_with_as_much_precision_as_can_be(wished):
    relevance, good, weights = drawn()
    found = choose_threshold(relevance, good, weights, ThresholdTarget(recall=wished))
    assert found.granted
    assert wished <= compute_metrics(relevance, good, found.relevance).recall < wished + 0.005


def test_an_unreachable_precision_gives_the_highest_one_and_is_not_granted():
    relevance = np.linspace(0.01, 0.99, 400)
    good = np.arange(400) % 2 == 0
    found = choose_threshold(relevance, good, np.ones(400), ThresholdTarget(precision=0.95))
    assert not found.granted
    assert compute_metrics(relevance, good, found.relevance).precision >= 0.5


def test_a_precision_of_few_samples_is_ignored():
    relevance = np.concatenate([[0.99, 0.98], np.full(100, 0.5)])
    good = np.concatenate([[True, True], np.arange(100) % 2 == 0])
    assert not choose_threshold(
        relevance, good, np.ones(102), ThresholdTarget(precision=0.9)
    ).granted


def test_weights_make_a_precision_dearer():
    relevance, good, weights = drawn()
    rare = np.where(good, 1.0, 5.0)
    threshold_target = ThresholdTarget(precision=0.8)
    plain = choose_threshold(relevance, good, weights, threshold_target)
    assert choose_threshold(relevance, good, rare, threshold_target).relevance > plain.relevance


@given(
    samples=st.lists(st.tuples(st.floats(0.001, 0.999), st.booleans()), min_size=2, max_size=60),
    threshold_target=st.sampled_from(
        [
            ThresholdTarget(),
            ThresholdTarget(precision=0.9),
            ThresholdTarget(recall=0.9),
            ThresholdTarget(recall=1.0),
        ]
    ),
)
def test_whatever_the_samples_a_threshold_is_a_relevance(samples, threshold_target):
    relevance = np.array([one for one, _ in samples])
    good = np.array([side for _, side in samples])
    good[0] = True
    found = choose_threshold(relevance, good, np.ones(len(good)), threshold_target)
    assert 0.0 < found.relevance < 1.0
    if threshold_target.recall is not None:
        assert (relevance[good] >= found.relevance).mean() >= threshold_target.recall
