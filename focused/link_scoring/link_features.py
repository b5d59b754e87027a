"""The features of a link: what is known of its target before the fetch.

Features are in nats of log-odds where possible; 0 carries no information. The features of
several in-links are merged into one row per target.

:class:`StaticLinkFeatures` don't depend on the crawl's state. They change only when the classifier
is swapped, so that parser processes can compute them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier, score_meanings
from focused.kernels.link_features import merge_rows
from focused.link_scoring.protocols import PageContext, ScorableLink
from focused.link_scoring.running_means import position_key
from focused.text.tokens import url_words
from focused.text.word_hashes import HashedTexts, LazyHashedTexts, hash_short_text
from focused.web.page import Classification, Link
from focused.web.urls import host_of, path_depth

FEATURE_NAMES = (
    "parent",
    "parents",
    "in_links",
    "since",
    "out_degree",
    "navigation",
    "anchor",
    "context",
    "url",
    "anchor_meaning",
    "context_meaning",
    "url_meaning",
    "context_words",
    "anchor_words",
    "url_words",
    "page_words",
    "siblings",
    "tag_path",
)
"""From the linking pages, merged over them:

- ``parent``: log-odds of the most relevant linking page, within ±4;
- ``parents``: their mean over the linking pages, ``in_links`` of them;
- ``since``: links since a page on topic, at most 8;
- ``out_degree``: ln(1 + links) of the most relevant linking page;
- ``navigation``: 1 if only navigation links there;
- ``anchor``, ``context``: the classifier's highest score of the anchors and of the contexts;
- ``anchor_meaning``, ``context_meaning``: the same by the meaning of their words;
- ``context_words``: mean relevance of pages with the context's words.

From the URL: ``url`` and ``url_meaning``, the classifier's scores of its words.

From the crawl, updated before the fetch: mean relevance by the words of the anchor
(``anchor_words``) and of the URL (``url_words``) as words of followed links, and by the
anchor's words as words of pages (``page_words``); mean relevance of links on the same page
(``siblings``) and in the same tag path to the same host (``tag_path``).
"""

FEATURE_INDEX = {name: place for place, name in enumerate(FEATURE_NAMES)}

FEATURE_FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parents": ("parent", "parents", "in_links", "since"),
        "text": ("anchor", "context"),
        "url": ("url",),
        "meaning": ("anchor_meaning", "context_meaning", "url_meaning"),
        "crawl-words": ("anchor_words", "url_words", "page_words", "context_words"),
        "places": ("siblings", "tag_path"),
        "shape": ("out_degree", "navigation"),
    }
)
"""Features with the same kind of information."""

MAX_PARENT_LOG_ODDS = 4.0
MAX_LINKS_SINCE_RELEVANT = 8.0
MAX_IN_LINKS = 8
"""Maximum number of in-links merged; after that only more relevant ones."""

_PARENT, _PARENTS, _IN_LINKS = (
    FEATURE_INDEX["parent"],
    FEATURE_INDEX["parents"],
    FEATURE_INDEX["in_links"],
)
_OUT_DEGREE = FEATURE_INDEX["out_degree"]
_MINIMUM_COLUMNS = [FEATURE_INDEX["since"], FEATURE_INDEX["navigation"]]
_MAXIMUM_COLUMNS = [
    _PARENT,
    FEATURE_INDEX["anchor"],
    FEATURE_INDEX["context"],
    FEATURE_INDEX["anchor_meaning"],
    FEATURE_INDEX["context_meaning"],
    FEATURE_INDEX["context_words"],
]


def merge_features(rows: list[list[float]], waiting: Sequence[ScorableLink | None]) -> list[bool]:
    """Merge each row with the features of the queued link, if there is one, in place.

    Return where this page's link is the most informative: its anchor and tag path represent the
    target.
    """
    return merge_rows(
        rows,
        [link.features if _has_link_features(link) else None for link in waiting],
        (_PARENT, _PARENTS, _IN_LINKS, _OUT_DEGREE),
        _MINIMUM_COLUMNS,
        _MAXIMUM_COLUMNS,
        MAX_IN_LINKS,
    )


def has_enough_inlinks(link: ScorableLink) -> bool:
    """Whether only more relevant pages can still change the link's features."""
    return _has_link_features(link) and link.features[_IN_LINKS] >= MAX_IN_LINKS


def adds_information(log_odds: float, link: ScorableLink) -> bool:
    """Whether an in-link changes the features of a queued link; ``log_odds`` are its page's."""
    return not has_enough_inlinks(link) or log_odds > link.features[_PARENT]


def round_precision(
    numbers: NDArray[np.float64], to: type[np.floating[Any]]
) -> NDArray[np.float64]:
    """Round to the precision in which queued links store their features and scores.

    Half precision keeps features to a thousandth of their value.
    """
    return numbers.astype(to).astype(np.float64)


def _has_link_features(link: ScorableLink | None) -> TypeGuard[ScorableLink]:
    # Seeds, a spider's own requests and links of other scorers have no such features.
    return link is not None and len(link.features) == len(FEATURE_NAMES)


def links_since_relevant(context: PageContext) -> float:
    """Return links since the last on-topic page on the path; 0 on topic or for a seed."""
    if context.classification.on_topic or len(context.features) != len(FEATURE_NAMES):
        return 0.0
    return min(context.features[FEATURE_INDEX["since"]] + 1.0, MAX_LINKS_SINCE_RELEVANT)


def parent_log_odds(classification: Classification) -> float:
    """Return the page's log-odds, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return clipped_log_odds(classification.guiding_relevance)


def clipped_log_odds(relevance: float, nats: float = MAX_PARENT_LOG_ODDS) -> float:
    """Return log-odds of a relevance, within ±``nats``."""
    edge = 1.0 / (1.0 + math.exp(nats))
    clipped = min(max(relevance, edge), 1.0 - edge)
    return math.log(clipped / (1.0 - clipped))


_MAX_TEXT_WORDS = _URL_WORDS, _ANCHOR_WORDS, _CONTEXT_WORDS = 16, 12, 40

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StaticLinkFeatures:
    """Static features of n links with m distinct anchors and k distinct contexts.

    ``words`` are the first words of n URLs, m anchors, k contexts. ``anchors`` and ``contexts``,
    shape (n,), are each link's indices of these. ``url_scores``, ``anchor_scores`` and
    ``context_scores``, shape (n, 2), are the classifier's log-odds by word and by meaning.
    ``levels``, shape (n,), are the path depths; ``navigation`` marks navigation links;
    ``tag_path_keys`` are keys of tag path and host.
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
    scores = score_words_and_meanings(classifier, texts)
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


def score_words_and_meanings(classifier: TopicClassifier, texts: Sequence[str]) -> FloatArray:
    """Return the classifier's log-odds of texts by word and by meaning, shape (n, 2)."""
    return np.column_stack((classifier.score_texts(texts), score_meanings(classifier, texts)))


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
