"""Estimators of one's own, behind the seams of learning.

Anything fitted that has scikit-learn's ``predict_proba`` will do: a Pipeline
over texts becomes a classifier (:class:`SklearnTopicClassifier`), a classifier over link
features a scorer of links (:class:`SklearnLinkScorer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import (
    BoolArray,
    FloatArray,
    best_f1_threshold,
    expit,
    fit_platt_scaling,
)
from focused.classifier.topic_classifier import (
    MAX_LOG_ODDS,
    MAX_TEXT_SCORE,
    MIN_KNOWN_WORDS,
    CachedTextScores,
    sigmoid,
)
from focused.errors import ConfigurationError
from focused.link_scoring.protocols import LinkScorer, PageContext, ScoredLinks
from focused.text.tokens import tokenize
from focused.web.page import Classification, Link, Page


class FittedEstimator(Protocol):
    """What is asked of an estimator; scikit-learn's classifiers and pipelines have it."""

    @property
    def classes_(self) -> Any:
        """The classes, shape (k,), in the order of the columns of ``predict_proba``."""

    def predict_proba(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's own name
        """Probabilities of n inputs, shape (n, k)."""


def page_to_text(page: Page) -> str:
    """What an estimator over texts is shown of a page: title, description, headings, text."""
    return "\n".join((page.title, page.description, *page.headings, page.text))


@dataclass(frozen=True)
class SklearnTopicClassifier:
    """A :class:`focused.link_scoring.protocols.TopicClassifier` made of an estimator over texts.

    ``estimator`` is fitted already; its class ``good`` is the topic. It is
    shown ``text_of(page)``. Relevance is sigmoid(``slope`` * log-odds +
    ``offset``), which leaves the estimator's probabilities as they are unless
    told otherwise; a page counts as on topic from ``threshold``, in (0, 1).
    A short text's verdict is ``verdict_slope`` (>= 0) times its log-odds less
    those of the empty text, so that what says nothing adds nothing.

    :meth:`calibrated` finds slopes, offset and threshold on held-out pages.
    Raises :class:`ConfigurationError` for an estimator that cannot be used.
    Whatever the estimator raises at a page later makes that a failed page.
    """

    estimator: FittedEstimator
    threshold: float = 0.5
    good: object = True
    text_of: Callable[[Page], str] = page_to_text
    slope: float = 1.0
    offset: float = 0.0
    verdict_slope: float = 1.0
    _column: int = field(init=False, repr=False)
    _nothing: float = field(init=False, repr=False)
    _said: CachedTextScores = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < 1.0:
            raise ConfigurationError(f"threshold: must be between 0 and 1, not {self.threshold}")
        object.__setattr__(self, "_column", _class_column(self.estimator, self.good))
        _check_prediction(self.estimator, [""], self._column)
        object.__setattr__(self, "_nothing", float(self._log_odds([""])[0]))
        object.__setattr__(self, "_said", CachedTextScores(self._score_texts))

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
        """Calibrate on ``pages`` that the estimator was not fitted on, ``good[i]`` for page i.

        By Platt's sigmoid, as the topic classifier is; the threshold has the
        best F1 within 0.3 to 0.7. Raises :class:`ConfigurationError` when
        either side is missing or the estimator does not tell them apart.
        """
        truth = np.array(good, dtype=bool)
        if len(pages) != len(truth) or not 0 < truth.sum() < len(truth):
            raise ConfigurationError(
                "calibration needs pages on topic and pages off topic, and a truth for each"
            )
        raw = cls(estimator, good=good_class, text_of=text_of)
        raw_scores = raw._log_odds([text_of(page) for page in pages])
        slope, offset = fit_platt_scaling(raw_scores, truth)
        if slope <= 0:
            raise ConfigurationError(
                "the estimator does not tell these pages apart; is good_class "
                f"({good_class!r}) the topic's?"
            )
        threshold = best_f1_threshold(expit(slope * raw_scores + offset), truth)
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
        """Judge one page; a page of hardly a word gets the relevance of none."""
        text = self.text_of(page)
        if len(tokenize(text)) < MIN_KNOWN_WORDS:
            return Classification(self._relevance(self._nothing), on_topic=False, known=False)
        relevance = self._relevance(float(self._log_odds([text])[0]))
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts in nats, shape (n,), within ±MAX_TEXT_SCORE."""
        return self._said.of(texts)

    def _score_texts(self, texts: Sequence[str]) -> FloatArray:
        nats = self.verdict_slope * (self._log_odds(texts) - self._nothing)
        return np.asarray(np.clip(nats, -MAX_TEXT_SCORE, MAX_TEXT_SCORE))

    def _relevance(self, log_odds: float) -> float:
        return sigmoid(self.slope * log_odds + self.offset)

    def _log_odds(self, texts: Sequence[str]) -> FloatArray:
        """Within ±MAX_LOG_ODDS, shape (n,): an estimator's 0 or 1 is no certainty."""
        shares = _predict_proba(self.estimator, texts, self._column)
        with np.errstate(divide="ignore"):
            log_odds = np.log(shares) - np.log1p(-shares)
        return np.asarray(np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))


LinkFeatureExtractor = Callable[[PageContext, Sequence[Link]], NDArray[np.float64]]
"""``(page as visited, its links) -> features of the links``, shape (n, k)."""


class SklearnLinkScorer:
    """A :class:`focused.link_scoring.protocols.LinkScorer` made of an estimator over link features.

    The estimator is fitted already, on what ``features`` gives for the k
    ``feature_names``; its class ``good`` is that of links worth following. It
    is asked once for all links of a page, and learns nothing while it crawls.
    Raises :class:`ConfigurationError` for an estimator that cannot be used.
    """

    def __init__(
        self,
        estimator: FittedEstimator,
        features: LinkFeatureExtractor,
        feature_names: Sequence[str],
        *,
        good: object = True,
    ) -> None:
        self.feature_names = tuple(feature_names)
        self._estimator = estimator
        self._features = features
        self._column = _class_column(estimator, good)
        _check_prediction(estimator, np.zeros((1, len(self.feature_names))), self._column)

    @classmethod
    def over(
        cls,
        estimator: FittedEstimator,
        scorer: LinkScorer,
        feature_names: Sequence[str] | None = None,
        *,
        good: object = True,
    ) -> SklearnLinkScorer:
        """Take the features of another scorer, or those of them that are named, in that order.

        That scorer's own scores are not used, and it is taught nothing: leave
        out what it would learn in a crawl. Its features stand in the column
        ``raw_scores`` of its crawls' ``pages.parquet``, to fit on.
        """
        names = scorer.feature_names if feature_names is None else tuple(feature_names)
        if unknown := [name for name in names if name not in scorer.feature_names]:
            raise ConfigurationError(
                f"feature_names: {type(scorer).__name__} has no {', '.join(unknown)}; "
                f"it has {', '.join(scorer.feature_names)}"
            )
        columns = [scorer.feature_names.index(name) for name in names]
        return cls(
            estimator,
            lambda visit, links: scorer.score(visit, links).features[:, columns],
            names,
            good=good,
        )

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        if not links:
            return ScoredLinks(np.zeros(0), np.zeros((0, len(self.feature_names))))
        features = self._features(visit, links)
        return ScoredLinks(_predict_proba(self._estimator, features, self._column), features)


def _fit_text_score_slope(
    raw: SklearnTopicClassifier, pages: Sequence[Page], good: BoolArray
) -> float:
    """What a log-odds of a short text is worth in nats, by the titles of the pages."""
    titles = raw._log_odds([page.title for page in pages])
    return max(fit_platt_scaling(titles - raw._nothing, good)[0], 0.0)


def _class_column(estimator: FittedEstimator, good: object) -> int:
    if not callable(getattr(estimator, "predict_proba", None)):
        raise ConfigurationError(
            f"{type(estimator).__name__} has no predict_proba; wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, say"
        )
    try:
        classes = list(estimator.classes_)
    except AttributeError as error:
        raise ConfigurationError(
            f"{type(estimator).__name__} has no classes_: fit it first"
        ) from error
    if good not in classes:
        raise ConfigurationError(
            f"{type(estimator).__name__} has the classes {classes}, and {good!r} is none of them; "
            "say with good which is the topic"
        )
    return classes.index(good)


def _check_prediction(estimator: FittedEstimator, rows: Any, column: int) -> None:
    """What an estimator cannot be asked in a crawl is told before it."""
    try:
        _predict_proba(estimator, rows, column)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever somebody else's code may raise
        raise ConfigurationError(
            f"{type(estimator).__name__}.predict_proba does not take "
            f"{'texts' if isinstance(rows, list) else f'rows of {rows.shape[1]} features'}: {error}"
        ) from error


def _predict_proba(estimator: FittedEstimator, rows: Any, column: int) -> FloatArray:
    """The column's probabilities, shape (n,). Raises ConfigurationError for what are none."""
    table = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    if table.ndim != 2 or len(table) != len(rows) or table.shape[1] <= column:
        raise ConfigurationError(
            f"{type(estimator).__name__}.predict_proba gave shape {table.shape} "
            f"for {len(rows)} inputs"
        )
    shares = table[:, column]
    if not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise ConfigurationError(f"{type(estimator).__name__}.predict_proba gave no probabilities")
    return np.asarray(shares)
