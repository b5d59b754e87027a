"""The seams of learning: who judges pages, who scores links.

``Crawl`` speaks to these alone, so a user's own estimator fits where ours do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from focused.web.page import Judgement, Link, Page


class TopicJudge(Protocol):
    """Judges fetched pages and short texts."""

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""

    def judge(self, page: Page) -> Judgement:
        """Judge one fetched page; never raises for odd content."""

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats of log-odds.

        0 says nothing (no known word); positive speaks for the topic. The
        topic's prior is left out, so that verdicts can be added up.
        """


@dataclass(frozen=True, slots=True)
class Visit:
    """A judged page, and how the crawl came to it.

    ``depth`` counts links from the nearest seed. ``score`` in [0, 1] and
    ``evidence``, shape (len(feature_names),), are those of the link that led
    here, as they were before the fetch; a seed has score 1 and no evidence.
    """

    page: Page
    judgement: Judgement
    depth: int = 0
    score: float = 1.0
    evidence: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class ScoredLinks:
    """The apprentice's answer for one page's links, row i for link i.

    ``scores`` has shape (n,), probabilities in [0, 1]; ``features`` has shape
    (n, len(feature_names)), what made them.
    """

    scores: NDArray[np.float64]
    features: NDArray[np.float64]


class LinkScorer(Protocol):
    """Predicts how relevant links' targets will be, before the download."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns, for reports and ``focused why``."""

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""


@runtime_checkable
class LearningScorer(LinkScorer, Protocol):
    """A link scorer that learns from the pages its links led to.

    The crawl rebuilds it after a restart by teaching it again, in order, what
    its archive holds; so what it learns may depend on nothing else.
    """

    def learn(self, url: str, anchor: str, relevance: float) -> None:
        """Take in the judged relevance, in [0, 1], of a followed link's target."""

    def rescore(
        self, url: str, anchor: str, evidence: Sequence[float]
    ) -> tuple[float, Sequence[float]]:
        """Score a queued link by what is known now; return score and evidence."""
