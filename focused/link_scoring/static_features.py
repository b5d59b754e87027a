"""The features of links that don't depend on the crawl's state: scores and places.

They change only when the classifier is swapped, so that parser processes can compute them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier, score_meanings
from focused.link_scoring.position_means import position_key
from focused.text.tokens import url_words
from focused.text.word_hashes import LazyHashedTexts
from focused.web.page import Link
from focused.web.urls import host_of, path_depth

MAX_HALF_PRECISION = 65_504.0


@dataclass(frozen=True, slots=True)
class StaticLinkFeatures:
    """Static features of n links with m distinct anchors and k distinct contexts.

    ``anchors`` and ``contexts`` are each link's indices of these. ``url_scores``,
    ``anchor_scores`` and ``context_scores`` are the classifier's log-odds by word and by meaning,
    of n URLs, m anchors and k contexts. ``levels`` are the path depths; ``tag_path_keys`` are keys
    of tag path and host.
    """

    anchors: Sequence[int]
    contexts: Sequence[int]
    url_scores: Sequence[tuple[float, float]]
    anchor_scores: Sequence[tuple[float, float]]
    context_scores: Sequence[tuple[float, float]]
    levels: Sequence[int]
    tag_path_keys: Sequence[int]


def compute_static_features(
    classifier: TopicClassifier, links: Sequence[Link]
) -> StaticLinkFeatures:
    """Compute the static features of links, scoring their texts with the classifier."""
    # Pages repeat anchors and contexts: menus, list items.
    different_anchors, anchors = _unique_indices(link.anchor for link in links)
    different_contexts, contexts = _unique_indices(link.context for link in links)
    urls = [link.url for link in links]
    texts = LazyHashedTexts([*map(url_words, urls), *different_anchors, *different_contexts])
    scores = score_words_and_meanings(classifier, texts)
    end_of_anchors = len(urls) + len(different_anchors)
    return StaticLinkFeatures(
        anchors=anchors,
        contexts=contexts,
        url_scores=scores[: len(urls)],
        anchor_scores=scores[len(urls) : end_of_anchors],
        context_scores=scores[end_of_anchors:],
        levels=list(map(path_depth, urls)),
        tag_path_keys=[position_key(host_of(link.url), link.tag_path) for link in links],
    )


def score_words_and_meanings(
    classifier: TopicClassifier, texts: Sequence[str]
) -> list[tuple[float, float]]:
    """Return the classifier's log-odds of each text by word and by meaning; finite."""
    by_word = _bounded(classifier.score_texts(texts))
    return list(zip(by_word, _bounded(score_meanings(classifier, texts)), strict=True))


def _bounded(scores: NDArray[np.float64]) -> list[float]:
    """Return scores that half precision holds; 0 for NaN."""
    numbers: list[float] = scores.tolist()
    most = MAX_HALF_PRECISION
    if sum(map(abs, numbers)) <= most:  # then each is; False for NaN
        return numbers
    return [0.0 if math.isnan(number) else min(most, max(-most, number)) for number in numbers]


def _unique_indices(texts: Iterable[str]) -> tuple[Sequence[str], Sequence[int]]:
    """Return the distinct texts, and the index of each text."""
    index_by_text: dict[str, int] = {}
    indices = [index_by_text.setdefault(text, len(index_by_text)) for text in texts]
    return list(index_by_text), indices
