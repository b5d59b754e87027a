"""Protocols and data of link scoring.

The crawl calls these protocols only: implement :class:`LinkScorer`, or
:class:`OnlineLinkScorer` for a scorer that learns during the crawl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.link_scoring.static_features import StaticLinkFeatures
from focused.web.page import Classification, Link, Page


class ScorableLink(Protocol):
    """The fields of a queued link that scorers read."""

    @property
    def url(self) -> str:
        """Absolute and normalised."""

    @property
    def anchor(self) -> str:
        """The anchor text of the best in-link."""

    @property
    def parent(self) -> str | None:
        """The URL of the page with the best in-link."""

    @property
    def tag_path_key(self) -> int:
        """The key of the best in-link's tag path and host."""

    @property
    def features(self) -> Sequence[float]:
        """The features behind the score, shape (len(feature_names),)."""

    @property
    def found_at(self) -> float:
        """When the link was found, in seconds of the crawl's clock."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """A classified page and how the crawl reached it.

    ``depth`` counts links from the nearest seed. ``score`` in [0, 1] and ``features``,
    shape (len(feature_names),), belong to the link that led here, as they were before the
    fetch; a seed has score 1 and no features. ``static_features`` is set when a parser
    process computed the static features of the page's links.
    """

    page: Page
    classification: Classification
    depth: int = 0
    score: float = 1.0
    features: Sequence[float] = ()
    static_features: StaticLinkFeatures | None = None


@dataclass(frozen=True, slots=True)
class ScoredLinks:
    """Scores of one page's links, row i for link i.

    ``scores`` has shape (n,), probabilities in [0, 1]; ``features`` has shape
    (n, len(feature_names)).
    """

    scores: NDArray[np.float64]
    features: NDArray[np.float64]


class LinkScorer(Protocol):
    """Predicts the relevance of link targets before the download.

    Its ``calibrate_scores``, if any, maps scores of links with features to those shown and stored.
    """

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns, for reports and ``focused why``."""

    def score(self, context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page in one batch."""


class ConstantLinkScorer:
    """Scores every link 0.5: for crawls without a model."""

    feature_names: tuple[str, ...] = ()

    def score(self, context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Return 0.5 for each link, without features."""
        return ScoredLinks(np.full(len(links), 0.5), np.zeros((len(links), 0)))


class MergedScore(msgspec.Struct, frozen=True, gc=False):
    """The score of one link of a page, merged with the earlier in-links of its target.

    ``score`` is a probability, ``features`` has shape (len(feature_names),). ``rank_score``, in
    nats, orders the queue, highest first. ``is_best_inlink`` is True where this page's link is the
    best in-link of its target. ``tag_path_key`` is the key of the best in-link's tag path.
    """

    score: float
    rank_score: float
    features: tuple[float, ...]
    is_best_inlink: bool
    tag_path_key: int


@dataclass(frozen=True, slots=True)
class UpdatedScore:
    """The current score, rank score and features of a queued link."""

    score: float
    rank_score: float
    features: tuple[float, ...]


class TrainingExample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A followed link and the relevance of its target: one example for online training.

    ``url``, ``anchor``, ``parent``, ``tag_path_key`` and ``features`` are those of the link
    when it was fetched; a seed has no features. ``relevance`` in [0, 1] comes from the
    classifier, before it is tempered for the pages of a crawl; ``tempered`` is None if it is not.
    """

    url: str
    anchor: str
    parent: str
    tag_path_key: int
    features: tuple[float, ...]
    relevance: float
    tempered: float | None = None


decode_example = msgspec.msgpack.Decoder(TrainingExample).decode


@runtime_checkable
class OnlineLinkScorer(LinkScorer, Protocol):
    """A link scorer that learns from the pages its links led to.

    The crawl persists each training example in the transaction that settles its page, and
    :meth:`state` from time to time. After a restart it restores the state and replays the
    later examples in order. The learned state must therefore depend on the examples alone.
    """

    def score_merged(
        self, context: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> Sequence[MergedScore]:
        """Score the links of one page in order; ``waiting[i]`` is link i if it is queued."""

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Score queued links again with the current state, in their order."""

    def make_example(self, link: ScorableLink, page: Page, relevance: float) -> TrainingExample:
        """Build the training example of a fetched page."""

    def learn(self, example: TrainingExample) -> None:
        """Update the model with one example."""

    def state(self) -> bytes:
        """Return the learned state as plain data."""

    def restore(self, state: bytes) -> None:
        """Restore what :meth:`state` returned."""


@runtime_checkable
class UsesStaticFeatures(LinkScorer, Protocol):
    """A link scorer that reads :attr:`PageContext.static_features`."""

    uses_static_features: bool


@runtime_checkable
class ClassifierSwapListener(Protocol):
    """A scorer that stores classifier scores and needs to know when the model is swapped."""

    def classifier_swapped(self, at: float) -> None:
        """Note that links found until ``at``, in crawl seconds, have an earlier model's scores."""
