"""Fits the model that scores pages: word weights, and the meaning of the first words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from focused.classifier.calibration import FloatArray
from focused.classifier.estimators import fit_direction, fit_word_weights
from focused.classifier.semantic_scorer import LeadScorer
from focused.classifier.validation import (
    OutOfFoldPredictions,
    TrainingData,
    good_log_likelihood_ratio,
    word_parts,
)
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
