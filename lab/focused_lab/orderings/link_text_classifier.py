"""A classifier of links by their words, trained on the crawl's own links.

Links are sparse rows of hashed words, with anchor, context and URL apart. Naive Bayes separates
relevant targets from others; a logistic regression on held-out links calibrates it, because naive
Bayes counts repeated features again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import xxhash
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse import vstack as stack_rows
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from focused.classifier.calibration import expit, logit
from focused.text.tokens import tokenize, url_words
from focused.web.page import Link

HASH_COLUMNS = 1 << 16
"""Hashed words: more than the vocabulary of the links of some thousand pages."""

_MIN_CLASS_WEIGHT = 2.0  # in links: nothing can be learned from fewer
_CACHED_TEXTS = 50_000
_CONTEXT_WORDS = 40  # later words are far from the link


def link_matrix(links: Sequence[Link]) -> csr_array:
    """Word counts, one row per link, shape (n, :data:`HASH_COLUMNS`)."""
    found = [
        part
        for link in links
        for part in (
            _hashed_columns("anchor", link.anchor),
            _hashed_columns("context", link.context),
            _hashed_columns("url", link.url),
        )
    ]
    columns = np.concatenate([np.empty(0, dtype=np.int32), *found])
    lengths = np.array([len(part) for part in found], dtype=np.int64).reshape(-1, 3).sum(axis=1)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    counts = np.ones(len(columns), dtype=np.float32)
    return csr_array((counts, columns, ends), shape=(len(links), HASH_COLUMNS))


@lru_cache(maxsize=_CACHED_TEXTS)  # menus repeat on every page of a site
def _hashed_columns(field: str, text: str) -> NDArray[np.int32]:
    found = tokenize(url_words(text) if field == "url" else text)
    if field == "context":
        found = found[:_CONTEXT_WORDS]
    hashes = [xxhash.xxh3_64_intdigest(f"{field} {word}".encode()) % HASH_COLUMNS for word in found]
    return np.array(hashes, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class LinkTextClassifier:
    """A fitted model of links; predicts in [0, 1].

    ``weights``, shape (HASH_COLUMNS,), are log-odds per word; ``scale`` and ``extra_scale`` weigh
    their sum and the extra feature, ``bias`` is in nats.
    """

    weights: NDArray[np.float64]
    scale: float
    extra_scale: float
    bias: float

    @classmethod
    def fit(
        cls,
        rows: csr_array,
        relevance: NDArray[np.float64],
        targets: Sequence[str],
        extra: NDArray[np.float64] | None = None,
    ) -> Self | None:
        """Fit to links with known targets; None when one class is nearly empty.

        ``rows`` as of :func:`link_matrix`, n of them; ``relevance``, shape (n,) in [0, 1], counts
        each link partly as relevant, partly as not; ``targets`` are their URLs, because links to
        one target are not independent; ``extra``, shape (n,), is a further feature in nats.
        """
        if min(relevance.sum(), (1.0 - relevance).sum()) < _MIN_CLASS_WEIGHT:
            return None
        extra = np.zeros(len(relevance)) if extra is None else extra
        fold = np.array(
            [xxhash.xxh3_64_intdigest(url.encode()) % 2 for url in targets], dtype=np.int64
        )
        features = np.zeros(len(relevance))
        for held in (0, 1):
            if not (fold == held).any() or not (fold != held).any():
                return None
            weights = _naive_bayes(rows[fold != held], relevance[fold != held])
            features[fold == held] = rows[fold == held] @ weights
        scale, extra_scale, bias = _fit_calibration(np.column_stack([features, extra]), relevance)
        return cls(_naive_bayes(rows, relevance), scale, extra_scale, bias)

    def predict(
        self, rows: csr_array, extra: float | NDArray[np.float64] = 0.0
    ) -> NDArray[np.float64]:
        """The probability that each link's target is relevant, shape (n,)."""
        features = np.asarray(rows @ self.weights)
        return np.asarray(expit(self.bias + self.scale * features + self.extra_scale * extra))


def _naive_bayes(rows: csr_array, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of each word with Laplace smoothing; the calibration adds the prior."""
    twice = stack_rows([rows, rows], format="csr")
    labels = np.repeat([1, 0], len(relevance))
    model = MultinomialNB(alpha=1.0, fit_prior=False)
    model.fit(twice, labels, sample_weight=np.concatenate([relevance, 1.0 - relevance]))
    off_topic, on_topic = model.feature_log_prob_
    return np.asarray(on_topic - off_topic, dtype=np.float64)


def _fit_calibration(
    features: NDArray[np.float64], relevance: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Platt's sigmoid with soft labels and non-negative slopes.

    A column with a negative slope is removed and the rest fitted again: clipping alone would leave
    a bias that compensates for it.
    """
    labels = np.repeat([1, 0], len(relevance))
    soft = np.concatenate([relevance, 1.0 - relevance])
    scales = np.zeros(features.shape[1])
    kept = np.arange(features.shape[1])
    while kept.size:
        model = LogisticRegression(C=1.0)
        model.fit(np.vstack([features[:, kept]] * 2), labels, sample_weight=soft)
        slopes = model.coef_[0]
        if (slopes >= 0.0).all():
            scales[kept] = slopes
            return float(scales[0]), float(scales[1]), float(model.intercept_[0])
        kept = kept[slopes >= 0.0]
    return 0.0, 0.0, logit(float(relevance.mean()))
