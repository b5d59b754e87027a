"""The apprentice: how relevant will a link's target be?

It gathers features of the target (:mod:`focused.link_scoring.link_features`), and weighs
it (:mod:`focused.link_scoring.linear_model`) into a probability. After each judged page
the words and places of the link that led there are rank_score more or less (in the
spirit of Chakrabarti, Punera, Subramanyam, WWW 2002); what was scored before is
scored again when its turn comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.link_scoring.linear_model import DEPTH_PENALTY, LinearModel
from focused.link_scoring.link_features import (
    FEATURE_INDEX,
    FEATURE_NAMES,
    links_since_relevant,
    merge_features,
    parent_log_odds,
    round_precision,
)
from focused.link_scoring.link_prior import LinkPrior, load_link_prior
from focused.link_scoring.protocols import (
    MergedScores,
    PageContext,
    ScorableLink,
    ScoredLinks,
    TrainingExample,
    UpdatedScore,
)
from focused.link_scoring.running_means import PositionMeans, WordMeans, position_key
from focused.link_scoring.static_link_features import (
    StaticLinkFeatures,
    anchor_words,
    compute_static_features,
    hash_link_texts,
    hash_url,
)
from focused.text.documents import HashedPage, hash_page
from focused.text.tokens import url_words
from focused.web.page import Link, Page
from focused.web.urls import path_depth

_MAX_PAGE_WORDS = 400
_MAX_PAGE_CHARS = 5_000

_ANCHOR, _URL = FEATURE_INDEX["anchor"], FEATURE_INDEX["url"]
_ANCHOR_COLUMNS = [FEATURE_INDEX["anchor_words"], FEATURE_INDEX["page_words"]]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


class Apprentice:
    """A :class:`focused.link_scoring.protocols.OnlineLinkScorer`; one crawl's own.

    Memory: two tables of words, 8 MB each, two of places, 30 MB each when they are full, and the
    last lessons.
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
    ) -> None:
        """``without`` names features that are given no weight, to see what they are rank_score.

        ``learns`` False: the prior stays as it is, what words and places were
        rank_score is all that the crawl teaches. ``depth_penalty`` is in nats a level of
        the path. Raises ConfigurationError when the prior cannot be loaded.
        """
        self._classifier = classifier
        self.prior = prior or load_link_prior()
        self._linear_model = LinearModel(
            self.prior, without, learns=learns, depth_penalty=depth_penalty
        )
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
    ) -> Apprentice:
        """A new apprentice with the same classifier and, unless static_features otherwise, the same prior."""
        return Apprentice(
            self._classifier,
            prior or self.prior,
            without=without,
            learns=learns,
            depth_penalty=depth_penalty,
        )

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch, as if no other page linked there."""
        joined = self.score_merged(visit, links, [None] * len(links))
        return ScoredLinks(joined.scores, joined.features)

    def score_merged(
        self, visit: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> MergedScores:
        """Score links of one judged page together with what is known of those that wait."""
        static_features, at = self._static_features_of(visit, links)
        as_links = self._link_words.features(static_features.link_words)
        as_pages = self._page_words.features(static_features.target_words)
        rows = self._page_features(visit, static_features, at)
        rows[:, FEATURE_INDEX["context_words"]] = as_pages[static_features.context_indices[at]]
        # Before they are held against those that were kept, which were rounded, too.
        joined = merge_features(round_precision(rows, np.float16), waiting)
        rows, tag_path_keys = joined.rows, [static_features.tag_path_keys[i] for i in at]
        rate = self._link_words.rate
        rows[:, FEATURE_INDEX["url_words"]] = as_links[at]
        rows[:, FEATURE_INDEX["anchor_words"]] = as_links[static_features.anchor_indices[at]]
        rows[:, FEATURE_INDEX["page_words"]] = as_pages[static_features.anchors[at]]
        rows[:, FEATURE_INDEX["siblings"]] = self._sibling_means.features_of(
            position_key(visit.page.url), rate
        )
        for i in np.flatnonzero(~joined.is_best_inlink).tolist():
            # It is asked anew when its turn comes.
            other = waiting[i]
            assert other is not None, "another link is_best_inlink where none waits"
            rows[i, _ANCHOR_COLUMNS] = [other.features[column] for column in _ANCHOR_COLUMNS]
            parent = position_key(other.parent or "")
            rows[i, FEATURE_INDEX["siblings"]] = self._sibling_means.features_of(parent, rate)
            tag_path_keys[i] = other.tag_path_key
        rows[:, FEATURE_INDEX["tag_path"]] = self._tag_path_means.features(tag_path_keys, rate)
        rows = round_precision(rows, np.float16)
        scores, rank_score = self._linear_model.predict(rows, static_features.levels[at])
        return MergedScores(scores, rows, rank_score, joined.is_best_inlink, tag_path_keys)

    def _static_features_of(
        self, visit: PageContext, links: Sequence[Link]
    ) -> tuple[StaticLinkFeatures, IndexArray]:
        """What the links say, and the place of each of ``links`` in it."""
        if visit.static_features is None:
            return compute_static_features(self._classifier, links), np.arange(len(links))
        if len(links) == len(visit.page.links):
            return visit.static_features, np.arange(len(links))
        places = {link.url: place for place, link in enumerate(visit.page.links)}
        return visit.static_features, np.array([places[link.url] for link in links], np.intp)

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Score queued links by what is known now."""
        if len(links) == 1:
            return [self._rescore_one(links[0])]
        rows = np.array([link.features for link in links]).reshape(-1, len(FEATURE_NAMES))
        anew = [link.found_at <= self._classifier_since for link in links]
        if any(anew):
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
        scores, rank_score = self._linear_model.predict(rows, _url_levels(links))
        every = zip(scores.tolist(), rank_score.tolist(), map(tuple, rows.tolist()), strict=True)
        return [UpdatedScore(*each) for each in every]

    def _reclassify_texts(self, rows: FloatArray, links: Sequence[ScorableLink]) -> None:
        """Ask the classifier in office about links that were found before it was."""
        anew = [i for i, link in enumerate(links) if link.found_at <= self._classifier_since]
        asked = [links[i] for i in anew]
        texts = [*(url_words(link.url) for link in asked), *(link.anchor for link in asked)]
        verdicts = self._classifier.score_texts(texts)
        rows[anew, _URL], rows[anew, _ANCHOR] = verdicts[: len(anew)], verdicts[len(anew) :]

    def _rescore_one(self, link: ScorableLink) -> UpdatedScore:
        """:meth:`rescore` of one, as each link is at its turn: sooner without arrays."""
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
        scores, rank_score = self._linear_model.predict(rows, _url_levels([link]))
        return UpdatedScore(scores.item(), rank_score.item(), tuple(rows[0].tolist()))

    def classifier_swapped(self, at: float) -> None:
        """Another classifier has its office since ``at``: what was found before is asked of it anew.

        Anchor and address are, when the link's turn comes; contexts and parents are no longer
        at hand, and stay as they were judged.
        """
        self._classifier_since = at

    def make_example(
        self, link: ScorableLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> TrainingExample:
        """What a fetched page teaches; ``relevance`` in [0, 1] is the classifier's."""
        words = words or hash_page(page, most_chars=_MAX_PAGE_CHARS)
        return TrainingExample(
            url=link.url,
            anchor=link.anchor,
            parent=link.parent or "",
            tag_path_key=link.tag_path_key,
            features=tuple(link.features) if len(link.features) == len(FEATURE_NAMES) else (),
            words=words.first(_MAX_PAGE_WORDS).astype("<u4").tobytes(),
            relevance=relevance,
        )

    def learn(self, lesson: TrainingExample) -> None:
        """Take a lesson in."""
        relevance = lesson.relevance
        self._linear_model.learn(lesson.features, relevance)
        self._page_words.learn(np.frombuffer(lesson.words, "<u4"), relevance)
        if not lesson.features:  # a seed: nobody's link led there
            return
        of_link = (*hash_url(lesson.url), *anchor_words(lesson.anchor))
        self._link_words.learn(np.array(of_link, np.uint32), relevance)
        self._sibling_means.learn(position_key(lesson.parent), relevance)
        self._tag_path_means.learn(lesson.tag_path_key, relevance)

    def state(self) -> bytes:
        """All that was learned, as plain data; see :meth:`restore`."""
        return msgspec.msgpack.encode(
            {
                **self._linear_model.state(),
                "link_words": self._link_words.state(),
                "page_words": self._page_words.state(),
                "siblings": self._sibling_means.state(),
                "tag_paths": self._tag_path_means.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._linear_model.restore(kept)
        self._link_words = WordMeans.restored(kept["link_words"])
        self._page_words = WordMeans.restored(kept["page_words"])
        self._sibling_means = PositionMeans.restored(kept["siblings"])
        self._tag_path_means = PositionMeans.restored(kept["tag_paths"])

    def _page_features(
        self, visit: PageContext, static_features: StaticLinkFeatures, at: IndexArray
    ) -> FloatArray:
        rows = np.zeros((len(at), len(FEATURE_NAMES)))
        relevance = parent_log_odds(visit.classification)
        rows[:, FEATURE_INDEX["parent"]] = rows[:, FEATURE_INDEX["parents"]] = relevance
        rows[:, FEATURE_INDEX["in_links"]] = 1.0
        rows[:, FEATURE_INDEX["since"]] = links_since_relevant(visit)
        rows[:, FEATURE_INDEX["out_degree"]] = math.log1p(len(visit.page.links))
        rows[:, FEATURE_INDEX["navigation"]] = static_features.navigation[at]
        rows[:, _ANCHOR] = static_features.anchor_scores[at]
        rows[:, _URL] = static_features.url_scores[at]
        rows[:, FEATURE_INDEX["context"]] = static_features.context_scores[at]
        return rows


def _url_levels(links: Sequence[ScorableLink]) -> FloatArray:
    return np.array([path_depth(link.url) for link in links], np.float64)
