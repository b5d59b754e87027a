"""A topic classifier from any fitted scikit-learn estimator over texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import BoolArray, FloatArray, expit
from focused.classifier.calibration_fitting import best_f1_threshold, fit_platt_scaling
from focused.classifier.topic_classifier import (
    MAX_LOG_ODDS,
    MAX_TEXT_SCORE,
    MIN_KNOWN_WORDS,
    CachedTextScores,
    sigmoid,
)
from focused.errors import ConfigurationError
from focused.text.tokens import tokenize
from focused.web.page import Classification, Page


class FittedEstimator(Protocol):
    """The part of scikit-learn's classifier interface that Focused uses."""

    @property
    def classes_(self) -> Any:
        """The classes, shape (k,), in the order of the columns of ``predict_proba``."""

    def predict_proba(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's own name
        """Return class probabilities of n inputs, shape (n, k)."""


def page_to_text(page: Page) -> str:
    """Return title, description, headings and text of a page as one text."""
    return "\n".join((page.title, page.description, *page.headings, page.text))


@dataclass(frozen=True)
class SklearnTopicClassifier:
    """A :class:`focused.classifier.topic_classifier.TopicClassifier` from a fitted estimator.

    ``estimator`` receives ``text_of(page)``; its class ``good`` is the topic. Relevance is
    sigmoid(``slope`` * log-odds + ``offset``); the defaults keep the estimator's
    probabilities. A page counts as on topic from ``threshold``, in (0, 1). The score of a
    short text is ``verdict_slope`` (>= 0) times its log-odds less those of the empty text.

    Raises :class:`ConfigurationError` for an unusable estimator. An exception that the
    estimator raises for a page makes that page a failure.
    """

    estimator: FittedEstimator
    threshold: float = 0.5
    good: object = True
    text_of: Callable[[Page], str] = page_to_text
    slope: float = 1.0
    offset: float = 0.0
    verdict_slope: float = 1.0
    _column: int = field(init=False, repr=False)
    _empty_log_odds: float = field(init=False, repr=False)
    _cache: CachedTextScores = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < 1.0:
            raise ConfigurationError(f"threshold: must be between 0 and 1, not {self.threshold}")
        object.__setattr__(self, "_column", class_column(self.estimator, self.good))
        check_prediction(self.estimator, [""], self._column)
        object.__setattr__(self, "_empty_log_odds", float(self._log_odds([""])[0]))
        object.__setattr__(self, "_cache", CachedTextScores(self._score_texts))

    @classmethod
    def calibrated(
        cls,
        estimator: FittedEstimator,
        pages: Sequence[Page],
        good: Sequence[bool],
        *,
        good_class: object = True,
        text_of: Callable[[Page], str] = page_to_text,
    ) -> SklearnTopicClassifier:
        """Calibrate on ``pages`` the estimator was not fitted on; ``good[i]`` labels page i.

        Uses Platt scaling, and the threshold with the best F1 within 0.3 to 0.7. Raises
        :class:`ConfigurationError` when a class is missing or the estimator does not
        separate the classes.
        """
        truth = np.array(good, dtype=bool)
        if len(pages) != len(truth) or not 0 < truth.sum() < len(truth):
            raise ConfigurationError(
                "calibration needs pages on topic and pages off topic, and a label for each page"
            )
        raw = cls(estimator, good=good_class, text_of=text_of)
        scores = raw._log_odds([text_of(page) for page in pages])
        slope, offset = fit_platt_scaling(scores, truth)
        if slope <= 0:
            raise ConfigurationError(
                "the estimator does not separate these pages; is good_class "
                f"({good_class!r}) the class of the topic?"
            )
        threshold = best_f1_threshold(expit(slope * scores + offset), truth)
        return cls(
            estimator,
            threshold,
            good_class,
            text_of,
            slope,
            offset,
            verdict_slope=_fit_text_score_slope(raw, pages, truth),
        )

    def classify(self, page: Page) -> Classification:
        """Classify one page; a page with fewer than five words is not classified."""
        text = self.text_of(page)
        if len(tokenize(text)) < MIN_KNOWN_WORDS:
            return Classification(
                self._relevance(self._empty_log_odds), on_topic=False, known=False
            )
        relevance = self._relevance(float(self._log_odds([text])[0]))
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts, shape (n,), within ±``MAX_TEXT_SCORE``."""
        return self._cache.get(texts)

    def _score_texts(self, texts: Sequence[str]) -> FloatArray:
        nats = self.verdict_slope * (self._log_odds(texts) - self._empty_log_odds)
        return np.asarray(np.clip(nats, -MAX_TEXT_SCORE, MAX_TEXT_SCORE))

    def _relevance(self, log_odds: float) -> float:
        return sigmoid(self.slope * log_odds + self.offset)

    def _log_odds(self, texts: Sequence[str]) -> FloatArray:
        """Return log-odds, shape (n,), clipped: a predicted 0 or 1 is not certain."""
        probabilities = predict_probabilities(self.estimator, texts, self._column)
        with np.errstate(divide="ignore"):
            log_odds = np.log(probabilities) - np.log1p(-probabilities)
        return np.asarray(np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))


def _fit_text_score_slope(
    raw: SklearnTopicClassifier, pages: Sequence[Page], good: BoolArray
) -> float:
    """Fit the scale of short-text scores on the page titles."""
    titles = raw._log_odds([page.title for page in pages])
    return max(fit_platt_scaling(titles - raw._empty_log_odds, good)[0], 0.0)


def class_column(estimator: FittedEstimator, good: object) -> int:
    """Return the column of ``predict_proba`` for class ``good``; raises ConfigurationError."""
    if not callable(getattr(estimator, "predict_proba", None)):
        raise ConfigurationError(
            f"{type(estimator).__name__} has no predict_proba; wrap it, for example in "
            "sklearn.calibration.CalibratedClassifierCV"
        )
    try:
        classes = list(estimator.classes_)
    except AttributeError as error:
        raise ConfigurationError(
            f"{type(estimator).__name__} has no classes_: fit it first"
        ) from error
    if good not in classes:
        raise ConfigurationError(
            f"{type(estimator).__name__} has the classes {np.asarray(classes).tolist()}, "
            f"not {good!r}; "
            "set good to the class of the topic"
        )
    return classes.index(good)


def check_prediction(estimator: FittedEstimator, rows: Any, column: int) -> None:
    """Predict once before the crawl starts, so that a mismatch is reported at once."""
    try:
        predict_probabilities(estimator, rows, column)
    except ConfigurationError:
        raise
    except Exception as error:  # user code may raise anything
        raise ConfigurationError(
            f"{type(estimator).__name__}.predict_proba does not accept "
            f"{'texts' if isinstance(rows, list) else f'rows of {rows.shape[1]} features'}: {error}"
        ) from error


def predict_probabilities(estimator: FittedEstimator, rows: Any, column: int) -> FloatArray:
    """Return the probabilities of one class, shape (n,); raises ConfigurationError."""
    table = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    if table.ndim != 2 or len(table) != len(rows) or table.shape[1] <= column:
        raise ConfigurationError(
            f"{type(estimator).__name__}.predict_proba returned shape {table.shape} "
            f"for {len(rows)} inputs"
        )
    probabilities = table[:, column]
    if not ((probabilities >= 0.0) & (probabilities <= 1.0)).all():
        raise ConfigurationError(
            f"{type(estimator).__name__}.predict_proba returned values outside 0 to 1"
        )
    return np.asarray(probabilities)
