"""The apprentice: predicts the relevance of a link's target, and learns during the crawl.

Computes link features (:mod:`focused.link_scoring.link_features`) and weighs them with a
linear model (:mod:`focused.link_scoring.linear_model`). After each classified page it
updates the model and the running means of the words, pages and tag paths of the link that
led there (in the spirit of Chakrabarti, Punera, Subramanyam, WWW 2002). Queued links are
scored again before they are fetched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.link_scoring.linear_model import DEPTH_PENALTY, LinearModel, LinkPrior, load_link_prior
from focused.link_scoring.link_features import (
    FEATURE_INDEX,
    FEATURE_NAMES,
    StaticLinkFeatures,
    anchor_words,
    compute_static_features,
    hash_link_texts,
    hash_url,
    links_since_relevant,
    merge_features,
    parent_log_odds,
    round_precision,
    score_words_and_meanings,
)
from focused.link_scoring.protocols import (
    MergedScores,
    PageContext,
    ScorableLink,
    ScoredLinks,
    TrainingExample,
    UpdatedScore,
)
from focused.link_scoring.running_means import PositionMeans, WordMeans, position_key
from focused.text.documents import HashedPage, hash_page
from focused.text.tokens import url_words
from focused.web.host_names import registered_domain
from focused.web.page import Link, Page
from focused.web.urls import host_of, path_depth

_MAX_PAGE_WORDS = 400
_MAX_PAGE_CHARS = 5_000

# Each by the classifier's words and by meaning.
_ANCHOR = [FEATURE_INDEX["anchor"], FEATURE_INDEX["anchor_meaning"]]
_URL = [FEATURE_INDEX["url"], FEATURE_INDEX["url_meaning"]]
_ANCHOR_COLUMNS = [FEATURE_INDEX["anchor_words"], FEATURE_INDEX["page_words"]]
_CRAWL_COLUMNS = slice(FEATURE_INDEX["anchor_words"], None)

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


class Apprentice:
    """The :class:`focused.link_scoring.protocols.OnlineLinkScorer` of one crawl.

    Memory: two word tables of 8 MB each, two tables of running means of up to 30 MB each, and
    the last training examples.
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

        ``learns`` False freezes the prior; running means of words and positions are still updated.
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
        self._link_words = WordMeans()
        self._page_words = WordMeans()
        self._sibling_means = PositionMeans()
        self._tag_path_means = PositionMeans()
        self._classifier_since = -math.inf

    def variant(
        self,
        *,
        prior: LinkPrior | None = None,
        without: Sequence[str] = (),
        learns: bool = True,
        depth_penalty: float = DEPTH_PENALTY,
        discounts_meaning: bool = True,
    ) -> Apprentice:
        """Return a new apprentice with the same classifier and, by default, the same prior."""
        return Apprentice(
            self._classifier,
            prior or self.prior,
            without=without,
            learns=learns,
            depth_penalty=depth_penalty,
            discounts_meaning=discounts_meaning,
        )

    def score(self, context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one page, ignoring earlier in-links."""
        merged = self.score_merged(context, links, [None] * len(links))
        return ScoredLinks(merged.scores, merged.features)

    def score_merged(
        self, context: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> MergedScores:
        """Score the links of one page, merged with the features of those already queued."""
        static, indices = self._static_features_of(context, links)
        link_words = self._link_words.features(static.link_words)
        page_words = self._page_words.features(static.target_words)
        rows = _page_features(context, static, indices, page_words[static.context_indices[indices]])
        is_best_inlink = merge_features(rows, waiting)
        rate = self._link_words.rate
        siblings = self._sibling_means.features_of(position_key(context.page.url), rate)
        anchor_words = link_words[static.anchor_indices[indices]].tolist()
        url_words = link_words[indices].tolist()
        page_words_of_anchors = page_words[static.anchors[indices]].tolist()
        tag_path_keys = [static.tag_path_keys[i] for i in indices.tolist()]
        for i, row in enumerate(rows):
            other = waiting[i]
            if other is None or is_best_inlink[i]:
                of_anchor, of_page = anchor_words[i], page_words_of_anchors[i]
                of_siblings = siblings
            else:
                # rescore updates these before the fetch.
                of_anchor, of_page = (other.features[column] for column in _ANCHOR_COLUMNS)
                parent = position_key(other.parent or "")
                of_siblings = self._sibling_means.features_of(parent, rate)
                tag_path_keys[i] = other.tag_path_key
            row[_CRAWL_COLUMNS] = of_anchor, url_words[i], of_page, of_siblings, 0.0
        merged = np.array(rows).reshape(-1, len(FEATURE_NAMES))
        merged[:, FEATURE_INDEX["tag_path"]] = self._tag_path_means.features(tag_path_keys, rate)
        merged = round_precision(merged, np.float16)
        scores, rank_score = self._predict(merged, static.levels[indices])
        return MergedScores(
            scores, merged, rank_score, np.array(is_best_inlink, np.bool_), tag_path_keys
        )

    def _static_features_of(
        self, context: PageContext, links: Sequence[Link]
    ) -> tuple[StaticLinkFeatures, IndexArray]:
        """Return the static features of the page's links, and the index of each of ``links``."""
        if context.static_features is None:
            return compute_static_features(self._classifier, links), np.arange(len(links))
        if len(links) == len(context.page.links):
            return context.static_features, np.arange(len(links))
        index_by_url = {link.url: index for index, link in enumerate(context.page.links)}
        return context.static_features, np.array(
            [index_by_url[link.url] for link in links], np.intp
        )

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Score queued links with the current model."""
        if len(links) == 1:
            return [self._rescore_one(links[0])]
        rows = np.array([link.features for link in links]).reshape(-1, len(FEATURE_NAMES))
        is_outdated = [link.found_at <= self._classifier_since for link in links]
        if any(is_outdated):
            self._reclassify_texts(rows, links)
        words = hash_link_texts([link.url for link in links], [link.anchor for link in links])
        urls, anchors = (
            words.slice_texts(0, len(links)),
            words.slice_texts(len(links), 2 * len(links)),
        )
        rate = self._link_words.rate
        parents = [position_key(link.parent or "") for link in links]
        rows[:, FEATURE_INDEX["url_words"]] = self._link_words.features(urls)
        rows[:, FEATURE_INDEX["anchor_words"]] = self._link_words.features(anchors)
        rows[:, FEATURE_INDEX["page_words"]] = self._page_words.features(anchors)
        rows[:, FEATURE_INDEX["siblings"]] = self._sibling_means.features(parents, rate)
        tag_path_keys = [link.tag_path_key for link in links]
        rows[:, FEATURE_INDEX["tag_path"]] = self._tag_path_means.features(tag_path_keys, rate)
        rows = round_precision(rows, np.float16)
        scores, rank_score = self._predict(rows, _url_levels(links))
        columns = zip(scores.tolist(), rank_score.tolist(), map(tuple, rows.tolist()), strict=True)
        return [UpdatedScore(*each) for each in columns]

    def _reclassify_texts(self, rows: FloatArray, links: Sequence[ScorableLink]) -> None:
        """Update the classifier's text scores of links found before the model was swapped."""
        is_outdated = [i for i, link in enumerate(links) if link.found_at <= self._classifier_since]
        outdated = [links[i] for i in is_outdated]
        texts = [*(url_words(link.url) for link in outdated), *(link.anchor for link in outdated)]
        scores = score_words_and_meanings(self._classifier, texts)
        rows[np.ix_(is_outdated, _URL)] = scores[: len(is_outdated)]
        rows[np.ix_(is_outdated, _ANCHOR)] = scores[len(is_outdated) :]

    def _rescore_one(self, link: ScorableLink) -> UpdatedScore:
        """Score one link as :meth:`rescore` does; faster without arrays."""
        anchor = anchor_words(link.anchor)
        rows = np.array([link.features])
        if link.found_at <= self._classifier_since:
            self._reclassify_texts(rows, [link])
        row = rows[0]
        rate = self._link_words.rate
        row[FEATURE_INDEX["anchor_words"]] = self._link_words.features_of(anchor)
        row[FEATURE_INDEX["url_words"]] = self._link_words.features_of(hash_url(link.url))
        row[FEATURE_INDEX["page_words"]] = self._page_words.features_of(anchor)
        row[FEATURE_INDEX["siblings"]] = self._sibling_means.features_of(
            position_key(link.parent or ""), rate
        )
        row[FEATURE_INDEX["tag_path"]] = self._tag_path_means.features_of(link.tag_path_key, rate)
        rows = round_precision(rows, np.float16)
        scores, rank_score = self._predict(rows, _url_levels([link]))
        return UpdatedScore(scores.item(), rank_score.item(), tuple(rows[0].tolist()))

    def _predict(self, rows: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Among several sites such a meaning tells which of them to leave.
        discounts = self._may_discount_meaning and self._only_site is not None
        return self._linear_model.predict(rows, levels, discounts_meaning=discounts)

    def calibrate_scores(self, scores: FloatArray) -> FloatArray:
        """Return calibrated scores of links with features, shape (n,), in the same order."""
        return self._linear_model.calibrate(scores)

    def classifier_swapped(self, at: float) -> None:
        """Note that links found until ``at`` have scores of an earlier model.

        :meth:`rescore` updates the scores of anchor and URL. Contexts and parents are no longer
        available: their scores stay. Crawls that share this scorer may be notified in any order.
        """
        self._classifier_since = max(self._classifier_since, at)

    def make_example(
        self, link: ScorableLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> TrainingExample:
        """Build the training example of a fetched page."""
        words = words or hash_page(page, max_chars=_MAX_PAGE_CHARS)
        return TrainingExample(
            url=link.url,
            anchor=link.anchor,
            parent=link.parent or "",
            tag_path_key=link.tag_path_key,
            features=tuple(link.features) if len(link.features) == len(FEATURE_NAMES) else (),
            words=words.first(_MAX_PAGE_WORDS).astype("<u4").tobytes(),
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
        self._page_words.learn(np.frombuffer(example.words, "<u4"), relevance)
        if not example.features:  # a seed has no link
            return
        link_words = (*hash_url(example.url), *anchor_words(example.anchor))
        self._link_words.learn(np.array(link_words, np.uint32), relevance)
        self._sibling_means.learn(position_key(example.parent), relevance)
        self._tag_path_means.learn(example.tag_path_key, relevance)

    def state(self) -> bytes:
        """Return the learned state as plain data."""
        return msgspec.msgpack.encode(
            {
                **self._linear_model.state(),
                "only_site": self._only_site,
                "link_words": self._link_words.state(),
                "page_words": self._page_words.state(),
                "siblings": self._sibling_means.state(),
                "tag_paths": self._tag_path_means.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Restore what :meth:`state` returned."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._linear_model.restore(kept)
        self._only_site = kept.get("only_site")  # states of earlier versions have none
        self._link_words = WordMeans.restored(kept["link_words"])
        self._page_words = WordMeans.restored(kept["page_words"])
        self._sibling_means = PositionMeans.restored(kept["siblings"])
        self._tag_path_means = PositionMeans.restored(kept["tag_paths"])


def _page_features(
    context: PageContext,
    static: StaticLinkFeatures,
    indices: IndexArray,
    context_words: FloatArray,
) -> list[list[float]]:
    """Return the features from the page, in the order of :data:`FEATURE_NAMES`; 0 for the rest.

    They are rounded where merging calculates, because the queued features are rounded.
    """
    of_page = (
        parent_log_odds(context.classification),
        links_since_relevant(context),
        math.log1p(len(context.page.links)),
    )
    relevance, since, out_degree = round_precision(np.array(of_page), np.float16).tolist()
    columns = zip(
        static.navigation[indices].tolist(),
        static.anchor_scores[indices].tolist(),
        static.context_scores[indices].tolist(),
        static.url_scores[indices].tolist(),
        context_words.tolist(),
        strict=True,
    )
    return [
        [
            *(relevance, relevance, 1.0, since, out_degree, navigation),
            *(anchor[0], around[0], url[0], anchor[1], around[1], url[1]),
            *(words, 0.0, 0.0, 0.0, 0.0, 0.0),
        ]
        for navigation, anchor, around, url, words in columns
    ]


def _url_levels(links: Sequence[ScorableLink]) -> FloatArray:
    return np.array([path_depth(link.url) for link in links], np.float64)
