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

from focused.classifier.calibration import (
    BoolArray,
    CalibrationCurve,
    ChosenThreshold,
    FloatArray,
    ThresholdTarget,
    choose_threshold,
    expit,
    fit_platt_scaling,
    logit,
)
from focused.classifier.estimators import TrainingOptions, fit_word_weights
from focused.classifier.topic_classifier import Calibration, score_short_texts
from focused.classifier.training_report import ValidationReport
from focused.classifier.validation import (
    OutOfFoldPredictions,
    TrainingData,
    choose_min_known_share,
    clip_prior,
    good_log_likelihood_ratio,
    make_validation_report,
    validate_estimator,
)
from focused.directory.background_samples import is_background

# Log-odds at no raw_scores, for the words' score, and for the keywords' score. Fitted on ten topics
# that benchmarks/topic_from_keywords.py does not have; flat around these values.
_PRIOR_MEAN = (-1.5, 0.6, 5.5)
_PRIOR_PRECISION = (50.0, 50.0, 200.0)
_LABELS_TO_HALVE_PRECISION = (
    100  # confirmed pages that halve the precision; four times as many divide it by 17
)
# Scores are in units of the samples' own; beyond these a page's score is chance.
_WORDS_RANGE, _KEYWORDS_RANGE = (-3.0, 3.0), (0.0, 3.0)

DEFAULT_KEYWORD_THRESHOLD = 0.35
"""The threshold while too few pages are labelled to choose one."""

MIN_LABELS_FOR_THRESHOLD = 30
"""Confirmed pages on topic, and as many others, from which on they choose the threshold."""

NO_FOLDS = 0
"""Folds of a trial that could not be made: there were too few samples to leave any out."""


@dataclass(frozen=True, slots=True)
class KeywordFit:
    """A classifier's parts: word ``weights`` of shape (V,) and ``bias`` give log-odds."""

    weights: NDArray[np.float32]
    bias: float
    calibration: Calibration
    seen: OutOfFoldPredictions
    trial: ValidationReport


def fit_keyword_model(
    material: TrainingData,
    known_share: FloatArray,
    plan: TrainingOptions,
    keyword_weights: FloatArray,
    confirmed: BoolArray,
) -> KeywordFit:
    """Fit word weights to the samples, and join them with the keywords'.

    ``keyword_weights`` has shape (V,). ``confirmed``, shape (m,), tells which drawn samples a
    person vouched for.
    """
    good, weights = material.drawn_good, material.drawn_weights
    by_keywords = material.rows @ keyword_weights
    own = _is_not_background(material)
    scale = max(float(by_keywords[side].mean()) for side in (good, own)) or 1.0
    learned = _fit_sample_model(material, plan)
    word_scores = learned.scores if learned else np.zeros(len(good))
    scores = np.column_stack((word_scores, by_keywords / scale))
    bias, of_words, of_keywords = _fit_coefficients(scores[confirmed], good[confirmed])
    log_odds = bias + _clip_scores(scores) @ (of_words, of_keywords)
    joined = of_keywords / scale * keyword_weights
    titles = score_short_texts(
        material.vocabulary,
        joined.astype(np.float32),
        [material.titles[place] for place in material.drawn],
    )
    if learned:
        joined = joined + of_words * learned.weights
        bias += of_words * learned.bias
        titles = titles + of_words / learned.unit * learned.seen.title_scores
    seen = learned.seen if learned else _keyword_only_predictions(log_odds, titles, len(good))
    relevance = expit(log_odds)
    expected = float(np.average(relevance[own], weights=weights[own]))
    prior = clip_prior(expected) if plan.prior is None else plan.prior
    shift = 0.0 if plan.prior is None else logit(plan.prior) - logit(clip_prior(expected))
    threshold = _choose_threshold(relevance, good, confirmed & own, plan.threshold_target)
    trial = make_validation_report(
        seen,
        learned.host_auc if learned else None,
        good,
        weights,
        relevance,
        threshold,
        plan.threshold_target,
    )
    calibration = Calibration(
        curve=CalibrationCurve(1.0, 0.0),
        shift=shift,
        verdict_slope=max(fit_platt_scaling(titles, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=choose_min_known_share(known_share),
    )
    return KeywordFit(joined.astype(np.float32), float(bias), calibration, seen, trial)


@dataclass(frozen=True, slots=True)
class _SampleModel:
    """What samples teach: word weights and bias, in units of half the way between the sides.

    ``scores``, shape (m,), are of samples left out of the training. ``unit`` is that half way in
    the estimator's own raw_scores.
    """

    weights: FloatArray
    bias: float
    scores: FloatArray
    unit: float
    seen: OutOfFoldPredictions
    host_auc: float | None


def _fit_sample_model(material: TrainingData, plan: TrainingOptions) -> _SampleModel | None:
    """None where samples are too few for a trial, or left-out ones are not told apart."""
    good, weights = material.drawn_good, material.drawn_weights
    if min(good.sum(), (~good).sum()) < 2:
        return None
    seen, host_auc = validate_estimator(material, plan.estimator, plan.seed)
    others = ~good & _is_not_background(material)
    others = others if others.any() else ~good
    high, low = seen.raw_scores[good].mean(), seen.raw_scores[others].mean()
    unit, middle = float(high - low) / 2, float(high + low) / 2
    if unit <= 0:
        return None
    sums, _ = material.sums(np.zeros(len(material.category), dtype=np.intp))
    ratio = good_log_likelihood_ratio(sums[0], material.category_good, seen.kind)
    found, bias = fit_word_weights(plan.estimator, material.rows, good, weights, ratio)
    return _SampleModel(
        weights=np.asarray(found, dtype=np.float64) / unit,
        bias=(bias - middle) / unit,
        scores=(seen.raw_scores - middle) / unit,
        unit=unit,
        seen=seen,
        host_auc=host_auc,
    )


def _is_not_background(material: TrainingData) -> BoolArray:
    """Which drawn samples are the topic's own: not of the general background, shape (m,)."""
    general = np.array([is_background(name) for name in material.categories])
    return np.asarray(~general[material.category[material.drawn]])


def _clip_scores(scores: FloatArray) -> FloatArray:
    low, high = np.transpose((_WORDS_RANGE, _KEYWORDS_RANGE))
    return np.clip(scores, low, high)


def _fit_coefficients(scores: FloatArray, good: BoolArray) -> tuple[float, float, float]:
    """Bias and the two scores' coefficients, both >= 0, most probable by the confirmed pages."""
    mean = np.array(_PRIOR_MEAN)
    precision = np.array(_PRIOR_PRECISION) / (1.0 + (len(good) / _LABELS_TO_HALVE_PRECISION) ** 2)
    columns = np.column_stack((np.ones(len(good)), _clip_scores(scores)))

    def loss(found: FloatArray) -> tuple[float, FloatArray]:
        log_odds = columns @ found
        misfit = np.logaddexp(0.0, log_odds) - good * log_odds
        pull = precision * (found - mean)
        value = misfit.sum() + pull @ (found - mean) / 2
        return float(value), columns.T @ (expit(log_odds) - good) + pull

    bounds = ((None, None), (0.0, None), (0.0, None))
    found = minimize(loss, mean, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), float(found[1]), float(found[2])


def _choose_threshold(
    relevance: FloatArray, good: BoolArray, confirmed: BoolArray, threshold_target: ThresholdTarget
) -> ChosenThreshold:
    """By the confirmed pages, where they are enough; else a fixed one, or the wished for."""
    yes, no = (int((confirmed & side).sum()) for side in (good, ~good))
    ones = np.ones(len(good))
    if min(yes, no) >= MIN_LABELS_FOR_THRESHOLD:
        return choose_threshold(
            relevance[confirmed], good[confirmed], ones[confirmed], threshold_target
        )
    if threshold_target == ThresholdTarget():
        return ChosenThreshold(DEFAULT_KEYWORD_THRESHOLD)
    return choose_threshold(relevance, good, ones, threshold_target)


def _keyword_only_predictions(
    log_odds: FloatArray, titles: FloatArray, count: int
) -> OutOfFoldPredictions:
    """Stands for a trial that could not be made: the keywords' log-odds alone."""
    return OutOfFoldPredictions(
        raw_scores=log_odds,
        title_scores=titles,
        naive_bayes=expit(log_odds),
        fold=np.zeros(count, dtype=np.intp),
        kind="multinomial",
        taxonomy=("multinomial", "flat"),
        named=(),
    )
