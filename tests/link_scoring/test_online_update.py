"""The online update corrects the prior as far as the examples justify."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from focused.classifier.calibration import expit
from focused.link_scoring.linear_model import MAX_EXAMPLES, LinkPrior, OnlineUpdate, load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES

COUNT = len(FEATURE_NAMES)
PRIOR = LinkPrior(
    "made up", ("nowhere",), -2.0, np.linspace(-0.4, 0.8, COUNT), np.linspace(0.5, 3.0, COUNT)
)
examples = st.sampled_from([25, 50, 75, 100]).flatmap(
    lambda count: st.tuples(
        arrays(np.float64, (count, COUNT), elements=st.floats(-8, 8)),
        arrays(np.float64, count, elements=st.floats(0, 1)),
    )
)


def log_odds(
    correction: OnlineUpdate, features: np.ndarray, prior: LinkPrior = PRIOR
) -> np.ndarray:
    weights = prior.weights + correction.weights
    return np.asarray(prior.bias + correction.bias + features @ weights)


def drawn(count: int, seed: int) -> np.ndarray:
    """Evidence as the prior was_trained_on it: each feature around zero, as wide as its scale."""
    return np.random.default_rng(seed).normal(size=(count, COUNT)) * PRIOR.scales


def taught(features: np.ndarray, relevance: np.ndarray) -> OnlineUpdate:
    correction = OnlineUpdate(PRIOR)
    for row, each in zip(features, relevance, strict=True):
        correction.learn(row.tolist(), float(each))
    return correction


def log_loss(correction: OnlineUpdate, features: np.ndarray, labels: np.ndarray) -> float:
    share = expit(np.clip(log_odds(correction, features), -12, 12))
    return float(-np.mean(labels * np.log(share) + (1 - labels) * np.log(1 - share)))


def test_before_any_example_there_is_no_update():
    correction = OnlineUpdate(PRIOR)
    assert not correction.weights.any()
    assert correction.bias == 0.0


def test_it_refits_at_intervals():
    correction = OnlineUpdate(PRIOR)
    moved = []
    for row in drawn(100, seed=1):
        correction.learn(row.tolist(), 0.9)
        moved.append(correction.bias)
    assert moved[0] == 0.0
    assert 2 <= len(set(moved)) <= 10


def test_where_more_is_good_than_the_prior_thought_every_score_rises():
    features = drawn(300, seed=1)
    correction = taught(features, np.full(300, 0.5))
    assert correction.bias > 1.0
    assert expit(log_odds(correction, features)).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", FEATURE_NAMES)
def test_an_underestimated_feature_gains_weight(name):
    column = FEATURE_NAMES.index(name)
    features = drawn(1_000, seed=2)
    wanted = (
        PRIOR.bias + features @ PRIOR.weights + 1.5 * features[:, column] / PRIOR.scales[column]
    )
    moved = taught(features, expit(wanted)).weights * PRIOR.scales
    assert moved[column] > 0.5
    assert np.abs(np.delete(moved, column)).max() < 0.3


def test_what_the_prior_has_right_is_left_alone():
    features = drawn(1_000, seed=3)
    correction = taught(features, expit(PRIOR.bias + features @ PRIOR.weights))
    assert np.abs(correction.weights * PRIOR.scales).max() < 0.02
    assert abs(correction.bias) < 0.02


def test_a_good_classifier_corrects_a_wrong_prior():
    truth = replace(PRIOR, bias=-1.0, weights=PRIOR.weights[::-1].copy())
    features = drawn(1_500, seed=4)
    odds = expit(truth.bias + features @ truth.weights)
    labels = np.random.default_rng(5).random(1_500) < odds
    mended = taught(features[:1_000], np.where(labels[:1_000], 0.95, 0.05))
    rest = features[1_000:], labels[1_000:]
    assert log_loss(mended, *rest) < 0.8 * log_loss(OnlineUpdate(PRIOR), *rest)


def classified_weakly(odds: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and what a calibrated classifier says that hardly tells good from bad.

    A page's text is drawn with a mean of half a standard deviation for its
    label; the classifier was trained on the share of good pages and no more of the link.
    """
    labels = rng.random(len(odds)) < odds
    text = rng.normal(np.where(labels, 0.25, -0.25))
    share = odds.mean()
    return labels, expit(np.log(share / (1 - share)) + 0.5 * text)


@pytest.mark.parametrize("examples", [100, 500, 2_000])
def test_a_weak_classifier_does_not_spoil_a_right_prior(examples):
    """Ranking by the corrected prior stays as good as by the prior, but for noise."""
    lost = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        features = drawn(examples + 2_000, seed=100 + seed)
        labels, relevances = classified_weakly(expit(PRIOR.bias + features @ PRIOR.weights), rng)
        correction = taught(features[:examples], relevances[:examples])
        rest, good = features[examples:], labels[examples:]
        best = good.sum()
        by_prior, by_both = (
            good[np.argsort(-log_odds(each, rest))[:best]].mean()
            for each in (OnlineUpdate(PRIOR), correction)
        )
        lost.append(by_prior - by_both)
    assert np.mean(lost) < 0.03


def test_only_the_last_examples_count():
    old, new = drawn(MAX_EXAMPLES, seed=6), drawn(MAX_EXAMPLES, seed=7)
    wrong, right = np.full(MAX_EXAMPLES, 0.9), np.full(MAX_EXAMPLES, 0.1)
    both = taught(np.vstack([old, new]), np.concatenate([wrong, right]))
    only = taught(new, right)
    assert both.weights == pytest.approx(only.weights, abs=0.01)
    assert both.bias == pytest.approx(only.bias, abs=0.01)


def test_its_memory_is_bounded():
    sizes = []
    correction = OnlineUpdate(PRIOR)
    for number, row in enumerate(np.tile(drawn(100, seed=8), (50, 1))):
        correction.learn(row.tolist(), 0.5)
        if number % 1_000 == 999:
            sizes.append(len(msgspec.msgpack.encode(correction.state())))
    assert sizes[-1] <= 1.05 * sizes[2]


@settings(deadline=None)
@given(examples)
def test_any_examples_lead_to_the_optimum(taken):
    """The gradient of the objective is zero."""
    features, relevance = taken
    found = taught(features, relevance)
    middle = features.mean(axis=0)
    design = np.column_stack([(features - middle) / PRIOR.scales, np.ones(len(features))])
    moved = np.append(found.weights * PRIOR.scales, found.bias + middle @ found.weights)
    held = np.append(np.full(COUNT, 30.0), 1.0) * moved
    slope = design.T @ (expit(log_odds(found, features)) - relevance) + held
    assert np.abs(slope).max() < 0.2


def test_very_unlikely_examples_do_not_break_the_fit():
    unlikely = replace(PRIOR, bias=-9.0)
    correction = OnlineUpdate(unlikely)
    shares = []
    for row in 0.1 * drawn(200, seed=9):
        correction.learn(row.tolist(), 0.5)
        shares.append(float(expit(unlikely.bias + correction.bias)))
    assert max(shares) < 0.7
    assert shares[-1] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_examples_of_one_class_move_it_within_bounds(share):
    prior = load_link_prior()
    correction = OnlineUpdate(prior)
    for _ in range(3_000):
        correction.learn([0.0] * COUNT, share)
    assert np.isfinite(correction.weights).all()
    assert abs(prior.bias + correction.bias) < 12.0
