"""Link features that don't depend on the crawl's state.

They change only when the classifier is swapped, so that parser processes can compute them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.link_scoring.running_means import position_key
from focused.text.tokens import url_words
from focused.text.word_hashes import HashedTexts, LazyHashedTexts, hash_short_text
from focused.web.page import Link
from focused.web.urls import host_of, path_depth

_MAX_TEXT_WORDS = _URL_WORDS, _ANCHOR_WORDS, _CONTEXT_WORDS = 16, 12, 40

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StaticLinkFeatures:
    """Static features of n links with m distinct anchors and k distinct contexts.

    ``words`` are the first words of n URLs, m anchors, k contexts. ``anchors`` and ``contexts``,
    shape (n,), are each link's indices of these. ``url_scores``, ``anchor_scores`` and
    ``context_scores``, shape (n,), are the classifier's log-odds. ``levels``, shape (n,), are
    the path depths; ``navigation`` marks navigation links; ``tag_path_keys`` are keys of tag
    path and host.
    """

    words: HashedTexts
    anchors: IndexArray
    contexts: IndexArray
    url_scores: FloatArray
    anchor_scores: FloatArray
    context_scores: FloatArray
    levels: FloatArray
    navigation: FloatArray
    tag_path_keys: Sequence[int]

    @property
    def link_words(self) -> HashedTexts:
        """Words of the URLs, then of the anchors."""
        return self.words.slice_texts(0, len(self.tag_path_keys) + self._n_anchors)

    @property
    def target_words(self) -> HashedTexts:
        """Words of the anchors, then of the contexts."""
        return self.words.slice_texts(len(self.tag_path_keys), len(self.words.lengths))

    @property
    def anchor_indices(self) -> IndexArray:
        """Index of each link's anchor in :attr:`link_words`."""
        return self.anchors + len(self.tag_path_keys)

    @property
    def context_indices(self) -> IndexArray:
        """Index of each link's context in :attr:`target_words`."""
        return self.contexts + self._n_anchors

    @property
    def _n_anchors(self) -> int:
        return int(self.anchors.max(initial=-1)) + 1


def compute_static_features(
    classifier: TopicClassifier, links: Sequence[Link]
) -> StaticLinkFeatures:
    """Compute the static features of links, scoring their texts with the classifier."""
    # Pages repeat anchors and contexts: menus, list items.
    different_anchors, anchors = _unique_indices(link.anchor for link in links)
    different_contexts, contexts = _unique_indices(link.context for link in links)
    urls = [link.url for link in links]
    texts = _link_texts(urls, different_anchors, different_contexts)
    scores = classifier.score_texts(texts)
    end_of_anchors = len(urls) + len(different_anchors)
    return StaticLinkFeatures(
        words=_truncate_texts(texts, len(urls), len(different_anchors), len(different_contexts)),
        anchors=anchors,
        contexts=contexts,
        url_scores=scores[: len(urls)],
        anchor_scores=scores[len(urls) : end_of_anchors][anchors],
        context_scores=scores[end_of_anchors:][contexts],
        levels=np.array([path_depth(url) for url in urls], np.float64),
        navigation=np.array([link.navigation for link in links], np.float64),
        tag_path_keys=[position_key(host_of(link.url), link.tag_path) for link in links],
    )


def hash_link_texts(urls: Sequence[str], anchors: Sequence[str]) -> HashedTexts:
    """Hash the first words of URLs, then of anchors."""
    return _truncate_texts(_link_texts(urls, anchors), len(urls), len(anchors))


def hash_url(url: str) -> list[int]:
    """Return the hashes of the first words of a URL."""
    return hash_short_text(url_words(url))[:_URL_WORDS]


def anchor_words(anchor: str) -> list[int]:
    """Return the hashes of the first words of an anchor."""
    return hash_short_text(anchor)[:_ANCHOR_WORDS]


def _link_texts(urls: Sequence[str], *others: Sequence[str]) -> LazyHashedTexts:
    return LazyHashedTexts([*map(url_words, urls), *chain.from_iterable(others)])


def _truncate_texts(texts: LazyHashedTexts, *counts: int) -> HashedTexts:
    """Truncate ``counts`` URLs, anchors and contexts to their maximum number of words."""
    return texts.words.truncate(np.repeat(_MAX_TEXT_WORDS[: len(counts)], counts))


def _unique_indices(texts: Iterable[str]) -> tuple[Sequence[str], IndexArray]:
    """Return the distinct texts, and the index of each text."""
    index_by_text: dict[str, int] = {}
    indices = [index_by_text.setdefault(text, len(index_by_text)) for text in texts]
    return list(index_by_text), np.array(indices, np.intp)
