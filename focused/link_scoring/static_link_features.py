"""What a page's links say by themselves: nothing of it changes while a classifier is in office.

So it may be read ahead of the page's turn, and in another process, as the page itself may.
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
    """Of n links with m different anchors and k different contexts.

    ``words`` are those of n addresses, m anchors, k contexts: the first ones of each. ``anchors``
    and ``contexts``, shape (n,), are each link's place among these. ``url_scores``, ``anchor_scores``
    and ``context_scores``, shape (n,), are the topic model's verdicts in nats. ``levels``, shape (n,),
    is the depth of the paths, ``navigation`` tells which links are some; ``tag_path_keys`` are the
    numbers of the links' places in the tree of tags.
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
        """Of the addresses, then of the anchors."""
        return self.words.slice_texts(0, len(self.tag_path_keys) + self._n_anchors)

    @property
    def target_words(self) -> HashedTexts:
        """Of the anchors, then of the contexts."""
        return self.words.slice_texts(len(self.tag_path_keys), len(self.words.lengths))

    @property
    def anchor_indices(self) -> IndexArray:
        """Each link's anchor's place among :attr:`link_words`."""
        return self.anchors + len(self.tag_path_keys)

    @property
    def context_indices(self) -> IndexArray:
        """Each link's context's place among :attr:`target_words`."""
        return self.contexts + self._n_anchors

    @property
    def _n_anchors(self) -> int:
        return int(self.anchors.max(initial=-1)) + 1


def compute_static_features(
    classifier: TopicClassifier, links: Sequence[Link]
) -> StaticLinkFeatures:
    """Read links, and ask the topic model about their texts."""
    # A page repeats its anchors and contexts: menus, list items.
    different_anchors, anchors = _unique_indices(link.anchor for link in links)
    different_contexts, contexts = _unique_indices(link.context for link in links)
    urls = [link.url for link in links]
    texts = _link_texts(urls, different_anchors, different_contexts)
    verdicts = classifier.score_texts(texts)
    till_anchors = len(urls) + len(different_anchors)
    return StaticLinkFeatures(
        words=_truncate_texts(texts, len(urls), len(different_anchors), len(different_contexts)),
        anchors=anchors,
        contexts=contexts,
        url_scores=verdicts[: len(urls)],
        anchor_scores=verdicts[len(urls) : till_anchors][anchors],
        context_scores=verdicts[till_anchors:][contexts],
        levels=np.array([path_depth(url) for url in urls], np.float64),
        navigation=np.array([link.navigation for link in links], np.float64),
        tag_path_keys=[position_key(host_of(link.url), link.tag_path) for link in links],
    )


def hash_link_texts(urls: Sequence[str], anchors: Sequence[str]) -> HashedTexts:
    """The words of addresses, then of anchors, as they count."""
    return _truncate_texts(_link_texts(urls, anchors), len(urls), len(anchors))


def hash_url(url: str) -> list[int]:
    """The hashes of an address's words, as they count."""
    return hash_short_text(url_words(url))[:_URL_WORDS]


def anchor_words(anchor: str) -> list[int]:
    """The hashes of an anchor's words, as they count."""
    return hash_short_text(anchor)[:_ANCHOR_WORDS]


def _link_texts(urls: Sequence[str], *others: Sequence[str]) -> LazyHashedTexts:
    return LazyHashedTexts([*map(url_words, urls), *chain.from_iterable(others)])


def _truncate_texts(texts: LazyHashedTexts, *many: int) -> HashedTexts:
    """Those that count of so ``many`` addresses, anchors, contexts."""
    return texts.words.truncate(np.repeat(_MAX_TEXT_WORDS[: len(many)], many))


def _unique_indices(texts: Iterable[str]) -> tuple[Sequence[str], IndexArray]:
    """The different texts, and each one's place among them."""
    places: dict[str, int] = {}
    numbers = [places.setdefault(text, len(places)) for text in texts]
    return list(places), np.array(numbers, np.intp)
