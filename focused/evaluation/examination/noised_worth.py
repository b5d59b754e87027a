"""A scorer whose order is noised: links are drawn in proportion to their odds, not ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from focused.learning.documents import HashedPage
from focused.learning.lesson import Lesson
from focused.learning.protocols import (
    JoinedScores,
    LearningScorer,
    Rescored,
    ScoredLinks,
    Visit,
    WaitingLink,
)
from focused.lots import lot
from focused.web.page import Link, Page

STRAYS = 0.2
"""This share of links is worth, to the order, what a link without evidence is."""

_STRAYS_WORTH = -2.0
_LEAST_LOT = 1e-9


class NoisedWorth:
    """A :class:`focused.learning.protocols.LearningScorer`: another's, but for links' worth.

    With Gumbel's noise on worths in nats the best of any number of links is one
    drawn in proportion to its odds (Luce's choice; Yellott 1977). A URL has the
    same noise at every turn, so that being linked to often, or scored again,
    draws no second lot.
    """

    def __init__(self, scorer: LearningScorer, seed: int) -> None:
        self._scorer = scorer
        self._seed = seed
        self.feature_names = scorer.feature_names

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Scores are the scorer's own."""
        return self._scorer.score(visit, links)

    def score_joined(
        self, visit: Visit, links: Sequence[Link], waiting: Sequence[WaitingLink | None]
    ) -> JoinedScores:
        """Scores and evidence are the scorer's own, the worth is noised."""
        told = self._scorer.score_joined(visit, links, waiting)
        worth = told.worth.copy()
        for i, link in enumerate(links):
            worth[i] = self._noised(float(worth[i]), link.url)
        return replace(told, worth=worth)

    def rescore(self, links: Sequence[WaitingLink]) -> Sequence[Rescored]:
        """Scores and evidence are the scorer's own, the worth is noised."""
        again = self._scorer.rescore(links)
        return [
            replace(each, worth=self._noised(each.worth, link.url))
            for each, link in zip(again, links, strict=True)
        ]

    def lesson(
        self, link: WaitingLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> Lesson:
        """The scorer's own."""
        return self._scorer.lesson(link, page, relevance, words)

    def learn(self, lesson: Lesson) -> None:
        """Teach the scorer."""
        self._scorer.learn(lesson)

    def state(self) -> bytes:
        """The scorer's."""
        return self._scorer.state()

    def restore(self, state: bytes) -> None:
        """Restore the scorer."""
        self._scorer.restore(state)

    def _noised(self, worth: float, url: str) -> float:
        stray = lot(f"stray {url}", self._seed) < STRAYS
        drawn = max(lot(f"noise {url}", self._seed), _LEAST_LOT)
        return (_STRAYS_WORTH if stray else worth) - math.log(-math.log(drawn))
