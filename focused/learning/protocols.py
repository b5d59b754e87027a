"""The seams of learning: who judges pages, who scores links.

``Crawl`` speaks to these alone, so a user's own estimator fits where ours do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from focused.learning.documents import HashedPage
from focused.learning.lesson import Lesson
from focused.web.page import Judgement, Link, Page

if TYPE_CHECKING:
    from focused.learning.told_by_links import ToldByLinks


class WaitingLink(Protocol):
    """A queued link, as far as it is scored again."""

    @property
    def url(self) -> str:
        """Absolute and normalised."""

    @property
    def anchor(self) -> str:
        """The anchor that tells most of all that lead to the target."""

    @property
    def parent(self) -> str | None:
        """The URL of the page it was found on."""

    @property
    def trail(self) -> int:
        """The number of its path of tags to its host."""

    @property
    def evidence(self) -> Sequence[float]:
        """The features behind its score, shape (len(feature_names),)."""

    @property
    def found_at(self) -> float:
        """When it was found, in seconds of the crawl's clock."""


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


@runtime_checkable
class JudgesWords(TopicJudge, Protocol):
    """A judge that reads nothing of a page but its words, and takes them hashed."""

    def judge_words(self, page: HashedPage) -> Judgement:
        """Judge one fetched page."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A judged page, and how the crawl came to it.

    ``depth`` counts links from the nearest seed. ``score`` in [0, 1] and
    ``evidence``, shape (len(feature_names),), are those of the link that led
    here, as they were before the fetch; a seed has score 1 and no evidence.
    ``told`` is what the page's links say by themselves, when they were read ahead.
    """

    page: Page
    judgement: Judgement
    depth: int = 0
    score: float = 1.0
    evidence: Sequence[float] = ()
    told: ToldByLinks | None = None


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


@dataclass(frozen=True, slots=True)
class JoinedScores:
    """The scores of one page's links with what other pages told, row i for link i.

    ``scores`` and ``features`` are as in :class:`ScoredLinks`. ``worth``, shape
    (n,), in nats, is what orders; more comes first. ``leads``, shape (n,), is
    True where this page's link tells most of all that lead to the target.
    ``trails`` are the numbers of the links' places in the tree of tags.
    """

    scores: NDArray[np.float64]
    features: NDArray[np.float64]
    worth: NDArray[np.float64]
    leads: NDArray[np.bool_]
    trails: Sequence[int]


@dataclass(frozen=True, slots=True)
class Rescored:
    """A waiting link's score, worth and evidence by what is known now."""

    score: float
    worth: float
    evidence: tuple[float, ...]


@runtime_checkable
class LearningScorer(LinkScorer, Protocol):
    """A link scorer that learns from the pages its links led to.

    The crawl keeps each lesson in the transaction that settles its page, and
    :meth:`state` from time to time; after a restart it restores the state and
    teaches the lessons since then, in order. So what is learned may depend on
    nothing but the lessons.
    """

    def score_joined(
        self, visit: Visit, links: Sequence[Link], waiting: Sequence[WaitingLink | None]
    ) -> JoinedScores:
        """Score links of one judged page; ``waiting[i]`` is link i where it is queued already."""

    def rescore(self, links: Sequence[WaitingLink]) -> Sequence[Rescored]:
        """Score queued links, with evidence of their own, by what is known now, in their order."""

    def lesson(
        self, link: WaitingLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> Lesson:
        """What a fetched page of judged ``relevance``, in [0, 1], teaches.

        ``words`` are the page's, where they were hashed already.
        """

    def learn(self, lesson: Lesson) -> None:
        """Take a lesson in."""

    def state(self) -> bytes:
        """All that was learned: data, no code."""

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""


@runtime_checkable
class TakesTold(LinkScorer, Protocol):
    """A link scorer that makes use of :attr:`Visit.told`."""

    takes_told: bool


@runtime_checkable
class FollowsJudge(Protocol):
    """Keeps what a judge said, as scorers may, and wants to know when another took office."""

    def judge_changed(self, at: float) -> None:
        """What was found until ``at``, in seconds of the crawl's clock, another judge judged."""
