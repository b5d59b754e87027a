"""What a policy may be made from."""

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
    """What a policy may use: never a label.

    ``classifier`` and ``apprentice`` are those of the live crawl. ``seed`` is for
    policies that draw lots. ``preliminary_crawl`` crawls once from the same seeds with
    the same budget under another policy and returns what was settled, in
    order; None where the pages cannot be had for nothing: in a live crawl.
    """

    classifier: TopicClassifier
    apprentice: LinkScorer
    seed: int = 0
    preliminary_crawl: Callable[[Policy], Sequence[SettledFetch]] | None = None


PolicyFactory = Callable[[PolicyInputs], Policy]
"""Makes a policy for one crawl: its state, where it has any, is that crawl's own."""


ScoreFunction = Callable[[PageContext, Sequence[Link]], ArrayLike]
"""``(page as visited, its links) -> scores in [0, 1], shape (n,) or one for all``."""


class FunctionScorer:
    """Scores links by ``scores`` alone; a :class:`focused.link_scoring.protocols.LinkScorer`."""

    feature_names: tuple[str, ...] = ()

    def __init__(self, scores: ScoreFunction) -> None:
        self._scores = scores

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        scores = np.broadcast_to(
            np.asarray(self._scores(visit, links), dtype=np.float64), (len(links),)
        )
        return ScoredLinks(scores, np.empty((len(links), 0)))


def constant_scorer() -> FunctionScorer:
    """Every link is worth the same."""
    return FunctionScorer(lambda visit, links: 0.0)
