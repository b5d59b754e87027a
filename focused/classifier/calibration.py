"""Calibration curves, the target of a threshold, and relevances as a crawl shows them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MIN_LOG_ODDS = 500.0  # below, exp would overflow

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Maps raw scores to probabilities within (0, 1); ``slope`` is > 0.

    Platt scaling: sigmoid(slope * score + offset). With enough samples the result is the mean
    of the sigmoid and isotonic regression, interpolated through ``shares`` at ``points``: the
    sigmoid may have the wrong form, and isotonic steps of few samples are noise.
    """

    slope: float
    offset: float
    points: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def at(self, raw_score: float) -> float:
        """Return the probability of one raw score."""
        log_odds = self.slope * raw_score + self.offset
        smooth = (
            1 / (1 + math.exp(-log_odds)) if log_odds > -_MIN_LOG_ODDS else math.exp(-_MIN_LOG_ODDS)
        )
        if not self.points:
            return smooth
        return (smooth + float(np.interp(raw_score, self.points, self.shares))) / 2


def expit(log_odds: FloatArray) -> FloatArray:
    """Return probabilities of log-odds, elementwise, without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))


def logit(probability: float) -> float:
    """Return the log-odds of a probability strictly between 0 and 1."""
    return math.log(probability / (1 - probability))


@dataclass(frozen=True, slots=True)
class ThresholdTarget:
    """What the threshold is chosen for: a precision, a recall, or the best F1 (both None)."""

    precision: float | None = None
    recall: float | None = None

    def __str__(self) -> str:
        if self.precision is not None:
            return f"a precision of {self.precision:.2f}"
        return "the best F1" if self.recall is None else f"a recall of {self.recall:.2f}"


TEMPERATURE = 1.6
PIVOT_LOG_ODDS = -1.5
"""Of least log loss on crawls of 28 topics on four webs, a quarter of the weight each. Constants of
three webs calibrate the fourth, too: docs/explanation/classifier.md, "Calibration in a crawl"."""


def temper(log_odds: float) -> float:
    """Return log-odds of being on topic for a page of a crawl; strictly increasing."""
    return PIVOT_LOG_ODDS + (log_odds - PIVOT_LOG_ODDS) / TEMPERATURE


def temper_relevance(relevance: float) -> float:
    """Return the tempered relevance of one in (0, 1)."""
    return 1.0 / (1.0 + math.exp(-temper(logit(relevance))))
