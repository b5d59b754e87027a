"""The seams of learning: who judges pages, who scores links.

``Crawl`` speaks to these alone, so a user's own estimator fits where ours do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.text.documents import HashedPage
from focused.web.page import Classification, Link, Page

if TYPE_CHECKING:
    from focused.link_scoring.static_link_features import StaticLinkFeatures


class ScorableLink(Protocol):
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
    def tag_path_key(self) -> int:
        """The number of its path of tags to its host."""

    @property
    def features(self) -> Sequence[float]:
        """The features behind its score, shape (len(feature_names),)."""

    @property
    def found_at(self) -> float:
        """When it was found, in seconds of the crawl's clock."""


class TopicClassifier(Protocol):
    """Judges fetched pages and short texts."""

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""

    def classify(self, page: Page) -> Classification:
        """Judge one fetched page; never raises for odd content."""

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats of log-odds.

        0 says nothing (no known word); positive speaks for the topic. The
        topic's prior is left out, so that verdicts can be added up.
        """


@runtime_checkable
class HashedPageClassifier(TopicClassifier, Protocol):
    """A classifier that reads nothing of a page but its words, and takes them hashed."""

    def classify_hashed(self, page: HashedPage) -> Classification:
        """Judge one fetched page."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """A judged page, and how the crawl came to it.

    ``depth`` counts links from the nearest seed. ``score`` in [0, 1] and
    ``features``, shape (len(feature_names),), are those of the link that led
    here, as they were before the fetch; a seed has score 1 and no features.
    ``static_features`` is what the page's links say by themselves, when they were read ahead.
    """

    page: Page
    classification: Classification
    depth: int = 0
    score: float = 1.0
    features: Sequence[float] = ()
    static_features: StaticLinkFeatures | None = None


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

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""


@dataclass(frozen=True, slots=True)
class MergedScores:
    """The scores of one page's links with what other pages static_features, row i for link i.

    ``scores`` and ``features`` are as in :class:`ScoredLinks`. ``rank_score``, shape
    (n,), in nats, is what orders; more comes first. ``is_best_inlink``, shape (n,), is
    True where this page's link tells most of all that lead to the target.
    ``tag_path_keys`` are the numbers of the links' places in the tree of tags.
    """

    scores: NDArray[np.float64]
    features: NDArray[np.float64]
    rank_score: NDArray[np.float64]
    is_best_inlink: NDArray[np.bool_]
    tag_path_keys: Sequence[int]


@dataclass(frozen=True, slots=True)
class UpdatedScore:
    """A waiting link's score, rank_score and features by what is known now."""

    score: float
    rank_score: float
    features: tuple[float, ...]


@runtime_checkable
class OnlineLinkScorer(LinkScorer, Protocol):
    """A link scorer that learns from the pages its links led to.

    The crawl keeps each lesson in the transaction that settles its page, and
    :meth:`state` from time to time; after a restart it restores the state and
    teaches the lessons since then, in order. So what is learned may depend on
    nothing but the lessons.
    """

    def score_merged(
        self, visit: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> MergedScores:
        """Score links of one judged page; ``waiting[i]`` is link i where it is queued already."""

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Score queued links, with features of their own, by what is known now, in their order."""

    def make_example(
        self, link: ScorableLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> TrainingExample:
        """What a fetched page of judged ``relevance``, in [0, 1], teaches.

        ``words`` are the page's, where they were hashed already.
        """

    def learn(self, lesson: TrainingExample) -> None:
        """Take a lesson in."""

    def state(self) -> bytes:
        """All that was learned: data, no code."""

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""


@runtime_checkable
class UsesStaticFeatures(LinkScorer, Protocol):
    """A link scorer that makes use of :attr:`PageContext.static_features`."""

    uses_static_features: bool


@runtime_checkable
class ClassifierSwapListener(Protocol):
    """Keeps what a classifier said, as scorers may, and wants to know when another took office."""

    def classifier_swapped(self, at: float) -> None:
        """What was found until ``at``, in seconds of the crawl's clock, another classifier judged."""


class TrainingExample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The link that led to a page, and what the page was.

    ``url``, ``anchor``, ``parent``, ``tag_path_key`` and ``features`` are the link's as
    it was fetched; a seed has no features. ``words`` are the hashes of the page's
    first words, four bytes each, the smallest first. ``relevance`` in [0, 1] is the classifier's.
    """

    url: str
    anchor: str
    parent: str
    tag_path_key: int
    features: tuple[float, ...]
    words: bytes
    relevance: float


to_bytes = msgspec.msgpack.Encoder().encode
from_bytes = msgspec.msgpack.Decoder(TrainingExample).decode
