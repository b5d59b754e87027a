"""The keywords as a prior of the topic classifier, which people's labels update.

A page's log-odds are a linear function of two scores: what its words say by the samples, and
how much it has of the keywords. With few samples the second is the better one; neither is as
good as both. The three coefficients have a prior, and are fitted to the pages that a person
vouched for, seeds and labels (maximum a posteriori): without labels the keywords lead. The
prior is narrow, for pages are labelled where the classifier is unsure and say little about the
others; it widens with the number of labels, so that some hundred overrule wrong keywords.

The samples that the keywords proposed have no part in that fit. The keywords tell them apart by
definition, so they say nothing about how far to trust the keywords.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from focused.directory.background import is_background
from focused.learning.calibrating import calibration_trial, foreign_below, held_prior
from focused.learning.calibration import Bools, Curve, Floats, expit, logit, platt
from focused.learning.estimators import fit_weights
from focused.learning.plan import Plan
from focused.learning.report import Trial
from focused.learning.thresholds import Threshold, Wish, chosen_threshold
from focused.learning.topic_classifier import Calibration, short_text_evidence
from focused.learning.trial import Material, OutOfFold, good_ratio, try_out

# Log-odds at no evidence, for the words' score, and for the keywords' score. Fitted on ten topics
# that benchmarks/topic_from_keywords.py does not have; flat around these values.
_PRIOR_MEAN = (-1.5, 0.6, 5.5)
_PRIOR_PRECISION = (50.0, 50.0, 200.0)
_HALVED_BY = 100  # confirmed pages that halve the precision; four times as many divide it by 17
# Scores are in units of the samples' own; beyond these a page's score is chance.
_WORDS_RANGE, _KEYWORDS_RANGE = (-3.0, 3.0), (0.0, 3.0)

THRESHOLD = 0.35
"""The threshold while too few pages are labelled to choose one."""

ENOUGH_LABELS = 30
"""Confirmed pages on topic, and as many others, from which on they choose the threshold."""

NOT_TRIED = 0
"""Folds of a trial that could not be made: there were too few samples to leave any out."""


@dataclass(frozen=True, slots=True)
class KeywordFit:
    """A classifier's parts: word ``weights`` of shape (V,) and ``bias`` give log-odds."""

    weights: NDArray[np.float32]
    bias: float
    calibration: Calibration
    seen: OutOfFold
    trial: Trial


def fit_with_keywords(
    material: Material,
    known_share: Floats,
    plan: Plan,
    keyword_weights: Floats,
    confirmed: Bools,
) -> KeywordFit:
    """Fit word weights to the samples, and join them with the keywords'.

    ``keyword_weights`` has shape (V,). ``confirmed``, shape (m,), tells which drawn samples a
    person vouched for.
    """
    good, weights = material.drawn_good, material.drawn_weights
    by_keywords = material.rows @ keyword_weights
    own = _is_own(material)
    scale = max(float(by_keywords[side].mean()) for side in (good, own)) or 1.0
    learned = _learned(material, plan)
    word_scores = learned.scores if learned else np.zeros(len(good))
    scores = np.column_stack((word_scores, by_keywords / scale))
    bias, of_words, of_keywords = _coefficients(scores[confirmed], good[confirmed])
    log_odds = bias + _clipped(scores) @ (of_words, of_keywords)
    joined = of_keywords / scale * keyword_weights
    titles = short_text_evidence(
        material.vocabulary,
        joined.astype(np.float32),
        [material.titles[place] for place in material.drawn],
    )
    if learned:
        joined = joined + of_words * learned.weights
        bias += of_words * learned.bias
        titles = titles + of_words / learned.unit * learned.seen.title_evidence
    seen = learned.seen if learned else _not_tried(log_odds, titles, len(good))
    relevance = expit(log_odds)
    expected = float(np.average(relevance[own], weights=weights[own]))
    prior = held_prior(expected) if plan.prior is None else plan.prior
    shift = 0.0 if plan.prior is None else logit(plan.prior) - logit(held_prior(expected))
    threshold = _threshold(relevance, good, confirmed & own, plan.wish)
    trial = calibration_trial(
        seen, learned.host_auc if learned else None, good, weights, relevance, threshold, plan.wish
    )
    calibration = Calibration(
        curve=Curve(1.0, 0.0),
        shift=shift,
        verdict_slope=max(platt(titles, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=foreign_below(known_share),
    )
    return KeywordFit(joined.astype(np.float32), float(bias), calibration, seen, trial)


@dataclass(frozen=True, slots=True)
class _Learned:
    """What samples teach: word weights and bias, in units of half the way between the sides.

    ``scores``, shape (m,), are of samples left out of the training. ``unit`` is that half way in
    the estimator's own evidence.
    """

    weights: Floats
    bias: float
    scores: Floats
    unit: float
    seen: OutOfFold
    host_auc: float | None


def _learned(material: Material, plan: Plan) -> _Learned | None:
    """None where samples are too few for a trial, or left-out ones are not told apart."""
    good, weights = material.drawn_good, material.drawn_weights
    if min(good.sum(), (~good).sum()) < 2:
        return None
    seen, host_auc = try_out(material, plan.estimator, plan.seed)
    others = ~good & _is_own(material)
    others = others if others.any() else ~good
    high, low = seen.evidence[good].mean(), seen.evidence[others].mean()
    unit, middle = float(high - low) / 2, float(high + low) / 2
    if unit <= 0:
        return None
    sums, _ = material.sums(np.zeros(len(material.category), dtype=np.intp))
    ratio = good_ratio(sums[0], material.category_good, seen.kind)
    found, bias = fit_weights(plan.estimator, material.rows, good, weights, ratio)
    return _Learned(
        weights=np.asarray(found, dtype=np.float64) / unit,
        bias=(bias - middle) / unit,
        scores=(seen.evidence - middle) / unit,
        unit=unit,
        seen=seen,
        host_auc=host_auc,
    )


def _is_own(material: Material) -> Bools:
    """Which drawn samples are the topic's own: not of the general background, shape (m,)."""
    general = np.array([is_background(name) for name in material.categories])
    return np.asarray(~general[material.category[material.drawn]])


def _clipped(scores: Floats) -> Floats:
    low, high = np.transpose((_WORDS_RANGE, _KEYWORDS_RANGE))
    return np.clip(scores, low, high)


def _coefficients(scores: Floats, good: Bools) -> tuple[float, float, float]:
    """Bias and the two scores' coefficients, both >= 0, most probable by the confirmed pages."""
    mean = np.array(_PRIOR_MEAN)
    precision = np.array(_PRIOR_PRECISION) / (1.0 + (len(good) / _HALVED_BY) ** 2)
    columns = np.column_stack((np.ones(len(good)), _clipped(scores)))

    def loss(found: Floats) -> tuple[float, Floats]:
        log_odds = columns @ found
        misfit = np.logaddexp(0.0, log_odds) - good * log_odds
        pull = precision * (found - mean)
        value = misfit.sum() + pull @ (found - mean) / 2
        return float(value), columns.T @ (expit(log_odds) - good) + pull

    bounds = ((None, None), (0.0, None), (0.0, None))
    found = minimize(loss, mean, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), float(found[1]), float(found[2])


def _threshold(relevance: Floats, good: Bools, confirmed: Bools, wish: Wish) -> Threshold:
    """By the confirmed pages, where they are enough; else a fixed one, or the wished for."""
    yes, no = (int((confirmed & side).sum()) for side in (good, ~good))
    ones = np.ones(len(good))
    if min(yes, no) >= ENOUGH_LABELS:
        return chosen_threshold(relevance[confirmed], good[confirmed], ones[confirmed], wish)
    if wish == Wish():
        return Threshold(THRESHOLD)
    return chosen_threshold(relevance, good, ones, wish)


def _not_tried(log_odds: Floats, titles: Floats, count: int) -> OutOfFold:
    """Stands for a trial that could not be made: the keywords' log-odds alone."""
    return OutOfFold(
        evidence=log_odds,
        title_evidence=titles,
        naive_bayes=expit(log_odds),
        fold=np.zeros(count, dtype=np.intp),
        kind="multinomial",
        taxonomy=("multinomial", "flat"),
        named=(),
    )
