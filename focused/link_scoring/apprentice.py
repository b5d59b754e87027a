"""The apprentice: predicts the relevance of a link's target, and learns during the crawl.

Computes link features (:mod:`focused.link_scoring.link_features`) and weighs them with a
linear model (:mod:`focused.link_scoring.linear_model`). After each classified page it
updates the model and the running means of the page and the tag path of the link that led there
(in the spirit of Chakrabarti, Punera, Subramanyam, WWW 2002). Queued links are scored again before
they are fetched.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from focused.classifier.topic_classifier import TopicClassifier
from focused.link_scoring.linear_model import DEPTH_PENALTY, LinearModel, LinkPrior, load_link_prior
from focused.link_scoring.link_features import (
    FEATURE_INDEX,
    FEATURE_NAMES,
    links_since_relevant,
    merge_features,
    parent_log_odds,
    round_features,
)
from focused.link_scoring.position_means import PositionMeans, position_key
from focused.link_scoring.protocols import (
    MergedScore,
    PageContext,
    ScorableLink,
    ScoredLinks,
    TrainingExample,
    UpdatedScore,
)
from focused.link_scoring.static_features import (
    StaticLinkFeatures,
    compute_static_features,
    score_words_and_meanings,
)
from focused.text.tokens import url_words
from focused.web.host_names import registered_domain
from focused.web.page import Link, Page
from focused.web.urls import host_of, path_depth

# Each by the classifier's words and by meaning.
_ANCHOR = [FEATURE_INDEX["anchor"], FEATURE_INDEX["anchor_meaning"]]
_URL = [FEATURE_INDEX["url"], FEATURE_INDEX["url_meaning"]]
_CRAWL_COLUMNS = slice(FEATURE_INDEX["siblings"], None)

_PAGE_FEATURES = struct.Struct("<2e")


class Apprentice:
    """The :class:`focused.link_scoring.protocols.OnlineLinkScorer` of one crawl.

    Memory: two tables of running means of up to 24 MB each, and the last training examples.
    """

    feature_names = FEATURE_NAMES
    uses_static_features = True

    def __init__(
        self,
        classifier: TopicClassifier,
        prior: LinkPrior | None = None,
        *,
        without: Sequence[str] = (),
        learns: bool = True,
        depth_penalty: float = DEPTH_PENALTY,
        discounts_meaning: bool = True,
    ) -> None:
        """``without`` names features to ignore, for ablations.

        ``learns`` False freezes the prior; running means of positions are still updated.
        ``depth_penalty`` is in nats per level of the path. With ``discounts_meaning``, on a single
        site, links whose meaning is unlike the topic's are not ranked lower for it before the topic
        is found. Raises ConfigurationError if the prior cannot be loaded.
        """
        self._classifier = classifier
        self.prior = prior or load_link_prior()
        self._linear_model = LinearModel(
            self.prior,
            without,
            learns=learns,
            depth_penalty=depth_penalty,
        )
        self._may_discount_meaning = discounts_meaning
        # The site of all examples; "" before the first, None when there are several.
        self._only_site: str | None = ""
        self._sibling_means = PositionMeans()
        self._tag_path_means = PositionMeans()
        self._classifier_since = -math.inf

    def score(self, context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one page, ignoring earlier in-links."""
        merged = self.score_merged(context, links, [None] * len(links))
        features = np.array([each.features for each in merged]).reshape(-1, len(FEATURE_NAMES))
        return ScoredLinks(np.array([each.score for each in merged]), features)

    def score_merged(
        self, context: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> Sequence[MergedScore]:
        """Score the links of one page, merged with the features of those already queued."""
        static, indices = self._static_features_of(context, links)
        of_page = _page_features(context)
        rows = [[*of_page, *_text_features(static, i), 0.0, 0.0] for i in indices]
        is_best_inlink = merge_features(rows, waiting)
        page_key = position_key(context.page.url)
        parents, tag_path_keys = [], []
        for i, other, is_best in zip(indices, waiting, is_best_inlink, strict=True):
            if other is None or is_best:
                parents.append(page_key)
                tag_path_keys.append(static.tag_path_keys[i])
            else:
                parents.append(position_key(other.parent or ""))
                tag_path_keys.append(other.tag_path_key)
        for row, places in zip(rows, self._place_features(parents, tag_path_keys), strict=True):
            row[_CRAWL_COLUMNS] = places
        features = list(map(round_features, rows))
        scores = self._predict(features, [static.levels[i] for i in indices])
        columns = zip(*scores, features, is_best_inlink, tag_path_keys, strict=True)
        return [MergedScore(*each) for each in columns]

    def _static_features_of(
        self, context: PageContext, links: Sequence[Link]
    ) -> tuple[StaticLinkFeatures, Sequence[int]]:
        """Return the static features of the page's links, and the index of each of ``links``."""
        if context.static_features is None:
            return compute_static_features(self._classifier, links), range(len(links))
        index_by_url = {link.url: index for index, link in enumerate(context.page.links)}
        return context.static_features, [index_by_url[link.url] for link in links]

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Score queued links with the current model."""
        rows = [list(link.features) for link in links]
        self._reclassify_texts(rows, links)
        parents = [position_key(link.parent or "") for link in links]
        of_places = self._place_features(parents, [link.tag_path_key for link in links])
        for row, places in zip(rows, of_places, strict=True):
            row[_CRAWL_COLUMNS] = places
        features = list(map(round_features, rows))
        scores = self._predict(features, [path_depth(link.url) for link in links])
        return [UpdatedScore(*each) for each in zip(*scores, features, strict=True)]

    def _place_features(
        self, parents: Sequence[int], tag_paths: Sequence[int]
    ) -> Iterator[tuple[float, float]]:
        """Yield the features of links by the keys of their page and of their tag path."""
        siblings = self._sibling_means.features(parents)
        return zip(siblings, self._tag_path_means.features(tag_paths), strict=True)

    def _reclassify_texts(self, rows: list[list[float]], links: Sequence[ScorableLink]) -> None:
        """Update the classifier's text scores of links found before the model was swapped."""
        pairs = zip(rows, links, strict=True)
        outdated = [pair for pair in pairs if pair[1].found_at <= self._classifier_since]
        if not outdated:
            return
        texts = [text for _, link in outdated for text in (url_words(link.url), link.anchor)]
        scores = iter(score_words_and_meanings(self._classifier, texts))
        for (row, _), of_url, of_anchor in zip(outdated, scores, scores, strict=True):
            for column, score in zip((*_URL, *_ANCHOR), (*of_url, *of_anchor), strict=True):
                row[column] = score

    def _predict(
        self, features: Sequence[Sequence[float]], levels: Sequence[int]
    ) -> tuple[list[float], list[float]]:
        # Among several sites such a meaning tells which of them to leave.
        discounts = self._may_discount_meaning and self._only_site is not None
        return self._linear_model.predict(features, levels, discounts_meaning=discounts)

    def calibrate_scores(self, scores: Sequence[float]) -> list[float]:
        """Return calibrated scores of links with features, in the same order."""
        return self._linear_model.calibrate(scores)

    def classifier_swapped(self, at: float) -> None:
        """Note that links found until ``at`` have scores of an earlier model.

        :meth:`rescore` updates the scores of anchor and URL. Contexts and parents are no longer
        available: their scores stay. Crawls that share this scorer may be notified in any order.
        """
        self._classifier_since = max(self._classifier_since, at)

    def make_example(self, link: ScorableLink, page: Page, relevance: float) -> TrainingExample:
        """Build the training example of a fetched page."""
        return TrainingExample(
            url=link.url,
            anchor=link.anchor,
            parent=link.parent or "",
            tag_path_key=link.tag_path_key,
            features=tuple(link.features) if len(link.features) == len(FEATURE_NAMES) else (),
            relevance=relevance,
        )

    def learn(self, example: TrainingExample) -> None:
        """Update the model and the running means with one example."""
        relevance = example.relevance
        tempered = relevance if example.tempered is None else example.tempered
        self._linear_model.learn(example.features, relevance, tempered)
        if self._only_site is not None:
            site = registered_domain(host_of(example.url))
            self._only_site = site if self._only_site in ("", site) else None
        if not example.features:  # a seed has no link
            return
        self._sibling_means.learn(position_key(example.parent), relevance)
        self._tag_path_means.learn(example.tag_path_key, relevance)

    def state(self) -> bytes:
        """Return the learned state as plain data."""
        return msgspec.msgpack.encode(
            {
                **self._linear_model.state(),
                "only_site": self._only_site,
                "siblings": self._sibling_means.state(),
                "tag_paths": self._tag_path_means.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Restore what :meth:`state` returned."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._linear_model.restore(kept)
        self._only_site = kept.get("only_site")  # states of earlier versions have none
        self._sibling_means = PositionMeans.restored(kept["siblings"])
        self._tag_path_means = PositionMeans.restored(kept["tag_paths"])


def _page_features(context: PageContext) -> tuple[float, float, float, float]:
    """Return the features from the page, in the order of :data:`FEATURE_NAMES`.

    They are rounded where merging calculates, because the queued features are rounded.
    """
    of_page = parent_log_odds(context.classification), links_since_relevant(context)
    relevance, since = _PAGE_FEATURES.unpack(_PAGE_FEATURES.pack(*of_page))
    return relevance, relevance, 1.0, since


def _text_features(static: StaticLinkFeatures, i: int) -> Iterator[float]:
    """Return the classifier's scores of link i in the order of :data:`FEATURE_NAMES`."""
    texts = (
        static.anchor_scores[static.anchors[i]],
        static.context_scores[static.contexts[i]],
        static.url_scores[i],
    )
    return chain.from_iterable(zip(*texts, strict=True))
