"""A scorer that learns, simple enough to check by eye: the whale scorer with second thoughts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from focused.link_scoring.link_features import clipped_log_odds
from focused.link_scoring.protocols import (
    MergedScore,
    PageContext,
    ScorableLink,
    TrainingExample,
    UpdatedScore,
)
from focused.web.page import Link, Page
from tests.support.keyword_guide import WhaleScorer


class Pupil(WhaleScorer):
    """Scores as the whale scorer; afterwards as ``second_thoughts`` says, by URL.

    Keeps its ``lessons``, and those of them that it ``heard`` itself: no state
    brought them. Of several in-links the page of the highest relevance counts.
    """

    def __init__(self, second_thoughts: Mapping[str, float] | None = None) -> None:
        self.lessons: list[tuple[str, str, float]] = []
        self.heard: list[str] = []
        self.second_thoughts = dict(second_thoughts or {})
        self.joined: list[tuple[str, str | None]] = []

    def score_merged(
        self, visit: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> Sequence[MergedScore]:
        own = self.score(visit, links)
        features, is_best_inlink = own.features.copy(), [True] * len(links)
        for i, before in enumerate(waiting):
            if before is None or len(before.features) != len(self.feature_names):
                continue
            self.joined.append((before.url, before.parent))
            is_best_inlink[i] = bool(features[i, 1] > before.features[1])
            features[i] = np.maximum(features[i], before.features)
        scores = features @ np.array([0.6, 0.3])
        rank_score = [clipped_log_odds(score) for score in scores.tolist()]
        rows = zip(scores.tolist(), rank_score, features.tolist(), is_best_inlink, strict=True)
        return [MergedScore(score, rank, tuple(row), best, 7) for score, rank, row, best in rows]

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        return [self.think_again(link) for link in links]

    def think_again(self, link: ScorableLink) -> UpdatedScore:
        before = 0.6 * link.features[0] + 0.3 * link.features[1]
        score = self.second_thoughts.get(link.url, before)
        return UpdatedScore(score, clipped_log_odds(score), tuple(link.features))

    def make_example(
        self, link: ScorableLink, page: Page, relevance: float, words: object = None
    ) -> TrainingExample:
        features = tuple(link.features)
        return TrainingExample(
            link.url, link.anchor, link.parent or "", link.tag_path_key, features, b"", relevance
        )

    def learn(self, lesson: TrainingExample) -> None:
        self.heard.append(lesson.url)
        self.lessons.append((lesson.url, lesson.anchor, lesson.relevance))

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self.lessons)

    def restore(self, state: bytes) -> None:
        self.lessons = msgspec.msgpack.decode(state, type=list[tuple[str, str, float]])
