"""A scorer that learns, simple enough to check by eye: the whale scorer with second thoughts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from focused.learning.evidence import log_odds_within
from focused.learning.lesson import Lesson
from focused.learning.protocols import JoinedScores, Rescored, Visit, WaitingLink
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

    def score_joined(
        self, visit: Visit, links: Sequence[Link], waiting: Sequence[WaitingLink | None]
    ) -> JoinedScores:
        own = self.score(visit, links)
        features, leads = own.features.copy(), np.ones(len(links), dtype=bool)
        for i, before in enumerate(waiting):
            if before is None or len(before.evidence) != len(self.feature_names):
                continue
            self.joined.append((before.url, before.parent))
            leads[i] = features[i, 1] > before.evidence[1]
            features[i] = np.maximum(features[i], before.evidence)
        scores = features @ np.array([0.6, 0.3])
        worth = np.array([log_odds_within(score) for score in scores.tolist()])
        return JoinedScores(scores, features, worth, leads, [7] * len(links))

    def rescore(self, links: Sequence[WaitingLink]) -> Sequence[Rescored]:
        return [self.think_again(link) for link in links]

    def think_again(self, link: WaitingLink) -> Rescored:
        before = 0.6 * link.evidence[0] + 0.3 * link.evidence[1]
        score = self.second_thoughts.get(link.url, before)
        return Rescored(score, log_odds_within(score), tuple(link.evidence))

    def lesson(
        self, link: WaitingLink, page: Page, relevance: float, words: object = None
    ) -> Lesson:
        evidence = tuple(link.evidence)
        return Lesson(
            link.url, link.anchor, link.parent or "", link.trail, evidence, b"", relevance
        )

    def learn(self, lesson: Lesson) -> None:
        self.heard.append(lesson.url)
        self.lessons.append((lesson.url, lesson.anchor, lesson.relevance))

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self.lessons)

    def restore(self, state: bytes) -> None:
        self.lessons = msgspec.msgpack.decode(state, type=list[tuple[str, str, float]])
