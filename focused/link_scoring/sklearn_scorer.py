"""A link scorer from any fitted scikit-learn estimator over link features."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.sklearn_classifier import (
    FittedEstimator,
    check_prediction,
    class_column,
    predict_probabilities,
)
from focused.errors import ConfigurationError
from focused.link_scoring.protocols import LinkScorer, PageContext, ScoredLinks
from focused.web.page import Link

LinkFeatureExtractor = Callable[[PageContext, Sequence[Link]], NDArray[np.float64]]
"""``(page context, links of the page) -> features of the links``, shape (n, k)."""


class SklearnLinkScorer:
    """A :class:`focused.link_scoring.protocols.LinkScorer` from a fitted estimator.

    ``extract_features`` returns the k columns ``feature_names`` that the estimator was
    fitted on; the estimator's class ``good`` is that of links worth following. The
    estimator predicts once per page and does not learn during the crawl.
    Raises :class:`ConfigurationError` for an unusable estimator.
    """

    def __init__(
        self,
        estimator: FittedEstimator,
        extract_features: LinkFeatureExtractor,
        feature_names: Sequence[str],
        *,
        good: object = True,
    ) -> None:
        self.feature_names = tuple(feature_names)
        self._estimator = estimator
        self._extract_features = extract_features
        self._column = class_column(estimator, good)
        check_prediction(estimator, np.zeros((1, len(self.feature_names))), self._column)

    @classmethod
    def over(
        cls,
        estimator: FittedEstimator,
        scorer: LinkScorer,
        feature_names: Sequence[str] | None = None,
        *,
        good: object = True,
    ) -> SklearnLinkScorer:
        """Use the features of another scorer, all or the named ones in that order.

        The other scorer's scores are ignored, and it does not learn: leave out features
        that it would learn during a crawl. To fit, read its features from the column
        ``features`` of ``pages.parquet``.
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
            lambda context, links: scorer.score(context, links).features[:, columns],
            names,
            good=good,
        )

    def score(self, context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page in one batch."""
        if not links:
            return ScoredLinks(np.zeros(0), np.zeros((0, len(self.feature_names))))
        features = self._extract_features(context, links)
        return ScoredLinks(predict_probabilities(self._estimator, features, self._column), features)
