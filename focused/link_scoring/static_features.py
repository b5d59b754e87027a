"""The features of links that don't depend on the crawl's state: words, scores, places.

They change only when the classifier is swapped, so that parser processes can compute them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier, score_meanings
from focused.link_scoring.running_means import position_key
from focused.text.tokens import url_words
from focused.text.word_hashes import HashedTexts, LazyHashedTexts, hash_texts
from focused.web.page import Link
from focused.web.urls import host_of, path_depth

MAX_HALF_PRECISION = 65_504.0
_URL_WORDS, _ANCHOR_WORDS, _CONTEXT_WORDS = 16, 12, 40


class LimitedTexts(NamedTuple):
    """The words of n texts, and how many of each text's first words count, shape (n,)."""

    texts: HashedTexts
    limits: Sequence[int]


@dataclass(frozen=True, slots=True)
class StaticLinkFeatures:
    """Static features of n links with m distinct anchors and k distinct contexts.

    ``words`` are those of n URLs, m anchors, k contexts. ``anchors`` and ``contexts`` are each
    link's indices of these. ``url_scores``, ``anchor_scores`` and ``context_scores`` are the
    classifier's log-odds by word and by meaning, of n URLs, m anchors and k contexts. ``levels``
    are the path depths; ``navigation`` marks navigation links; ``tag_path_keys`` are keys of tag
    path and host.
    """

    words: HashedTexts
    anchors: Sequence[int]
    contexts: Sequence[int]
    url_scores: Sequence[tuple[float, float]]
    anchor_scores: Sequence[tuple[float, float]]
    context_scores: Sequence[tuple[float, float]]
    levels: Sequence[int]
    navigation: Sequence[bool]
    tag_path_keys: Sequence[int]

    @property
    def link_words(self) -> LimitedTexts:
        """Words of the URLs, then of the anchors."""
        n, m = len(self.url_scores), len(self.anchor_scores)
        limits = [_URL_WORDS] * n + [_ANCHOR_WORDS] * m
        return LimitedTexts(self.words.slice_texts(0, n + m), limits)

    @property
    def target_words(self) -> LimitedTexts:
        """Words of the anchors, then of the contexts."""
        n, m, k = len(self.url_scores), len(self.anchor_scores), len(self.context_scores)
        limits = [_ANCHOR_WORDS] * m + [_CONTEXT_WORDS] * k
        return LimitedTexts(self.words.slice_texts(n, n + m + k), limits)


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
        words=texts.words,
        anchors=anchors,
        contexts=contexts,
        url_scores=scores[: len(urls)],
        anchor_scores=scores[len(urls) : end_of_anchors],
        context_scores=scores[end_of_anchors:],
        levels=list(map(path_depth, urls)),
        navigation=[link.navigation for link in links],
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


def hash_link_words(urls: Sequence[str], anchors: Sequence[str]) -> LimitedTexts:
    """Hash the words of URLs, then of anchors."""
    limits = [_URL_WORDS] * len(urls) + [_ANCHOR_WORDS] * len(anchors)
    return LimitedTexts(hash_texts([*map(url_words, urls), *anchors]), limits)


def _unique_indices(texts: Iterable[str]) -> tuple[Sequence[str], Sequence[int]]:
    """Return the distinct texts, and the index of each text."""
    index_by_text: dict[str, int] = {}
    indices = [index_by_text.setdefault(text, len(index_by_text)) for text in texts]
    return list(index_by_text), indices
