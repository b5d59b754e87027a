"""Fits the model that scores pages: word weights, and the meaning of the first words.

The keywords are a Bayesian prior of the model, updated by labels. A page's log-odds are a linear
function of three scores: that of the model learned from samples, that of the keywords, and how
near the meaning of the page's first words is to that of the keywords (0 without an embedding). The
four coefficients have a Gaussian prior and are fitted to the confirmed pages (seeds and labels) by
maximum a posteriori. Without labels the keywords dominate. The prior is narrow, because labelled
pages are those the classifier was unsure about and not representative; it widens with the number
of labels, so that a hundred or so overrule wrong keywords.

Samples proposed by the keywords are excluded from that fit: they agree with the keywords by
construction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from focused.classifier.calibration import (
    BoolArray,
    CalibrationCurve,
    FloatArray,
    ThresholdTarget,
    expit,
    logit,
)
from focused.classifier.calibration_fitting import (
    ChosenThreshold,
    choose_threshold,
    fit_platt_scaling,
)
from focused.classifier.estimators import (
    TrainingOptions,
    fit_direction,
    fit_near_prior,
    fit_word_weights,
)
from focused.classifier.semantic_scorer import LeadScorer
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
    word_parts,
)
from focused.directory.sample_set import is_background
from focused.text.static_embedding import load_embedding


@dataclass(frozen=True, slots=True)
class PageModel:
    """A linear model of pages: ``weights``, shape (V,), and ``bias`` for the word vector.

    ``direction``, shape (d,), and ``direction_bias`` are those of the first words' meaning; an
    empty direction for none.
    """

    weights: FloatArray
    bias: float
    direction: FloatArray
    direction_bias: float = 0.0

    def scale(self, factor: float) -> PageModel:
        """Return the model whose scores are ``factor`` times as large."""
        return PageModel(
            factor * self.weights,
            factor * self.bias,
            factor * self.direction,
            factor * self.direction_bias,
        )

    def scale_meaning(self, factor: float) -> PageModel:
        """Return the model whose scores of meaning are ``factor`` times as large."""
        return replace(
            self, direction=factor * self.direction, direction_bias=factor * self.direction_bias
        )

    def add(self, other: PageModel) -> PageModel:
        """Return the model whose scores are the sums of both models' scores."""
        directions = [one for one in (self.direction, other.direction) if len(one)]
        return PageModel(
            self.weights + other.weights,
            self.bias + other.bias,
            np.sum(directions, axis=0) if directions else np.zeros(0),
            self.direction_bias + other.direction_bias,
        )

    def lead_scorer(self) -> LeadScorer | None:
        """Return the scorer of the first words' meaning, if there is one."""
        embedding = load_embedding() if len(self.direction) else None
        if embedding is None:
            return None
        return LeadScorer(embedding, self.direction, self.direction_bias)


def fit_page_model(
    data: TrainingData, estimator: str, predictions: OutOfFoldPredictions
) -> PageModel:
    """Fit each part to all samples and combine them as the validation found best.

    All parts over words add up to one weight per word.
    """
    good, weights = data.drawn_good, data.drawn_weights
    sums, _ = data.sums(np.zeros(len(data.category), dtype=np.intp))
    ratio = good_log_likelihood_ratio(sums[0], data.category_good, predictions.kind)
    combination = predictions.combination
    if combination is None or data.lead_vectors is None:
        found, bias = fit_word_weights(estimator, data.rows, good, weights, ratio)
        return PageModel(np.asarray(found, dtype=np.float64), bias, np.zeros(0))
    *of_words, of_lead = combination.coefficients
    total, offset = np.zeros(len(data.vocabulary)), combination.offset
    for part, coefficient in zip(word_parts(estimator), of_words, strict=True):
        found, bias = fit_word_weights(part, data.rows, good, weights, ratio)
        total += coefficient * found
        offset += coefficient * bias
    direction, bias = fit_direction(data.lead_vectors, good, weights)
    return PageModel(total, offset, of_lead * direction, of_lead * bias)


# Bias, coefficients of the learned model, of the keywords, and of their meaning (this one chosen on
# topics of benchmarks/topic_from_keywords.py). The others are fitted on ten topics not in
# benchmarks/topic_from_keywords.py; flat around these values.
_PRIOR_MEAN = (-1.5, 0.6, 5.5, 0.4)
_PRIOR_PRECISION = (50.0, 50.0, 200.0, 50.0)
_LABELS_TO_HALVE_PRECISION = 100  # number of confirmed pages that halves the precision
# Scores beyond these ranges are noise.
_WORDS_RANGE, _KEYWORDS_RANGE, _MEANING_RANGE = (-3.0, 3.0), (0.0, 3.0), (-3.0, 3.0)

DEFAULT_KEYWORD_THRESHOLD = 0.35
"""The threshold while there are too few labels to choose one."""

MIN_LABELS_FOR_THRESHOLD = 30
"""Confirmed good pages, and others, needed to choose the threshold by labels."""


def fit_keyword_model(
    material: TrainingData,
    known_share: FloatArray,
    options: TrainingOptions,
    keyword_weights: FloatArray,
    keyword_direction: FloatArray,
    confirmed: BoolArray,
) -> tuple[Calibration, OutOfFoldPredictions, ValidationReport, PageModel]:
    """Fit word weights to the samples and combine them with the keywords'.

    The scores of the model are log-odds.

    ``keyword_weights`` has shape (V,); ``keyword_direction``, what the keywords mean, shape (d,),
    is empty without an embedding. ``confirmed``, shape (m,), marks drawn samples that a
    person confirmed.
    """
    good, weights = material.drawn_good, material.drawn_weights
    keyword_scores = material.rows @ keyword_weights
    is_own = _is_not_background(material)
    scale = max(float(keyword_scores[side].mean()) for side in (good, is_own)) or 1.0
    sample_model = _fit_sample_model(material, options)
    word_scores = sample_model.scores if sample_model else np.zeros(len(good))
    meaning = _fit_meaning(material, keyword_direction)
    scores = np.column_stack((word_scores, keyword_scores / scale, meaning.scores))
    bias, *coefficients = _fit_coefficients(scores[confirmed], good[confirmed])
    log_odds = bias + _clip_scores(scores) @ coefficients
    word_coefficient, keyword_coefficient, meaning_coefficient = coefficients
    joined = keyword_coefficient / scale * keyword_weights
    titles = score_short_texts(
        material.vocabulary,
        joined.astype(np.float32),
        [material.titles[place] for place in material.drawn],
    )
    model = PageModel(joined, bias, meaning.direction, meaning.bias).scale_meaning(
        meaning_coefficient
    )
    if sample_model:
        model = model.add(sample_model.model.scale(word_coefficient))
        titles = (
            titles + word_coefficient / sample_model.unit * sample_model.predictions.title_scores
        )
    predictions = (
        sample_model.predictions
        if sample_model
        else _keyword_only_predictions(log_odds, titles, len(good))
    )
    relevance = expit(log_odds)
    expected = float(np.average(relevance[is_own], weights=weights[is_own]))
    prior = clip_prior(expected) if options.prior is None else options.prior
    shift = 0.0 if options.prior is None else logit(options.prior) - logit(clip_prior(expected))
    threshold = _choose_threshold(relevance, good, confirmed & is_own, options.target)
    trial = make_validation_report(
        predictions,
        sample_model.host_auc if sample_model else None,
        good,
        weights,
        relevance,
        threshold,
        options.target,
    )
    calibration = Calibration(
        curve=CalibrationCurve(1.0, 0.0),
        shift=shift,
        verdict_slope=max(fit_platt_scaling(titles, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=choose_min_known_share(known_share),
    )
    return calibration, predictions, trial, model


@dataclass(frozen=True, slots=True)
class _SampleModel:
    """The model of the samples, in units of half the distance of the class means.

    ``scores``, shape (m,), are out-of-fold. ``unit`` is that half distance in raw scores.
    """

    model: PageModel
    scores: FloatArray
    unit: float
    predictions: OutOfFoldPredictions
    host_auc: float | None


def _fit_sample_model(material: TrainingData, options: TrainingOptions) -> _SampleModel | None:
    """Return None if there are too few samples, or they are not separated."""
    good = material.drawn_good
    if min(good.sum(), (~good).sum()) < 2:
        return None
    predictions, host_auc = validate_estimator(material, options.estimator, options.seed)
    others = ~good & _is_not_background(material)
    others = others if others.any() else ~good
    high, low = predictions.raw_scores[good].mean(), predictions.raw_scores[others].mean()
    unit, middle = float(high - low) / 2, float(high + low) / 2
    if unit <= 0:
        return None
    found = fit_page_model(material, options.estimator, predictions)
    found = replace(found, bias=found.bias - middle)
    return _SampleModel(
        model=found.scale(1.0 / unit),
        scores=(predictions.raw_scores - middle) / unit,
        unit=unit,
        predictions=predictions,
        host_auc=host_auc,
    )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the keywords mean: ``scores``, shape (m,), are in standard deviations over own samples.

    Own samples are those outside the general background: all of them may be near the keywords.
    """

    direction: FloatArray
    bias: float
    scores: FloatArray


def _fit_meaning(material: TrainingData, direction: FloatArray) -> _Meaning:
    vectors, count = material.lead_vectors, len(material.drawn)
    if vectors is None or not direction.any():
        return _Meaning(np.zeros(0), 0.0, np.zeros(count))
    nearness, has_words = vectors @ direction, vectors.any(axis=1)
    own = nearness[has_words & _is_not_background(material)]
    if not len(own):
        return _Meaning(np.zeros(0), 0.0, np.zeros(count))
    mean, scale = float(own.mean()), 1.0 / (float(own.std()) or 1.0)
    scores = np.where(has_words, scale * (nearness - mean), 0.0)
    return _Meaning(scale * direction, -scale * mean, scores)


def _is_not_background(material: TrainingData) -> BoolArray:
    """Return which drawn samples are not of the general background, shape (m,)."""
    general = np.array([is_background(name) for name in material.categories])
    return np.asarray(~general[material.category[material.drawn]])


def _clip_scores(scores: FloatArray) -> FloatArray:
    low, high = np.transpose((_WORDS_RANGE, _KEYWORDS_RANGE, _MEANING_RANGE))
    return np.clip(scores, low, high)


def _fit_coefficients(scores: FloatArray, good: BoolArray) -> list[float]:
    """Return the MAP estimates of the bias and of the coefficients, which are >= 0."""
    precision = np.array(_PRIOR_PRECISION) / (1.0 + (len(good) / _LABELS_TO_HALVE_PRECISION) ** 2)
    columns, weights = _clip_scores(scores), np.ones(len(good))
    found = fit_near_prior(columns, good, weights, np.array(_PRIOR_MEAN), precision)
    return [float(one) for one in found]


def _choose_threshold(
    relevance: FloatArray, good: BoolArray, confirmed: BoolArray, target: ThresholdTarget
) -> ChosenThreshold:
    """Choose by the confirmed pages if there are enough; else use the default or the target."""
    yes, no = (int((confirmed & side).sum()) for side in (good, ~good))
    ones = np.ones(len(good))
    if min(yes, no) >= MIN_LABELS_FOR_THRESHOLD:
        return choose_threshold(relevance[confirmed], good[confirmed], ones[confirmed], target)
    if target == ThresholdTarget():
        return ChosenThreshold(DEFAULT_KEYWORD_THRESHOLD)
    return choose_threshold(relevance, good, ones, target)


def _keyword_only_predictions(
    log_odds: FloatArray, titles: FloatArray, count: int
) -> OutOfFoldPredictions:
    """Return the keywords' predictions in place of a validation."""
    return OutOfFoldPredictions(
        raw_scores=log_odds,
        title_scores=titles,
        naive_bayes=expit(log_odds),
        fold=np.zeros(count, dtype=np.intp),
        kind="multinomial",
        taxonomy=("multinomial", "flat"),
        named=(),
    )
