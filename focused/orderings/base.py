"""The inputs of a policy, and a link scorer made of one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import LinkScorer, PageContext, ScoredLinks
from focused.web.page import Link


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """What a policy may use; never a label.

    ``classifier`` and ``apprentice`` are those of the live crawl. ``seed`` seeds random orders.
    ``preliminary_crawl`` crawls the same seeds with the same budget under another policy and
    returns the settled fetches in order; None in a live crawl.
    """

    classifier: TopicClassifier
    apprentice: LinkScorer
    seed: int = 0
    preliminary_crawl: Callable[[Policy], Sequence[SettledFetch]] | None = None


PolicyFactory = Callable[[PolicyInputs], Policy]
"""Creates a policy for one crawl; its state, if any, belongs to that crawl."""


ScoreFunction = Callable[[PageContext, Sequence[Link]], ArrayLike]
"""``(page context, its links) -> scores in [0, 1], shape (n,) or one for all``."""


class FunctionScorer:
    """Scores links by a function; a :class:`focused.link_scoring.protocols.LinkScorer`."""

    feature_names: tuple[str, ...] = ()

    def __init__(self, scores: ScoreFunction) -> None:
        self._scores = scores

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page."""
        scores = np.broadcast_to(
            np.asarray(self._scores(page_context, links), dtype=np.float64), (len(links),)
        )
        return ScoredLinks(scores, np.empty((len(links), 0)))


def constant_scorer() -> FunctionScorer:
    """Score all links the same."""
    return FunctionScorer(lambda page_context, links: 0.0)
