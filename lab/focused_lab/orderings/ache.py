"""ACHE: an online link classifier, retrained on the crawl's own links.

Barbosa, Freire: An Adaptive Crawler for Locating Hidden-Web Entry Points, WWW 2007 (its adaptive
link learner), as in the focused crawler ACHE: two classes (FORWARD_CLASSIFIER_BINARY), trained
every 500 pages; until the first training links of relevant pages come first, in random order.

Differences: one calibrated naive Bayes on hashed words
(:mod:`focused_lab.orderings.link_text_classifier`) replaces feature selection with a classifier per
number of clicks. "Random among the top" is a random order within each tenth of predicted
probability. Each training moves all waiting links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse import vstack as stack_rows

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs
from focused.text import hash_fraction
from focused.web.page import Link
from focused_lab.orderings.link_text_classifier import LinkTextClassifier, link_matrix

PAGES_BETWEEN_TRAININGS = 500
_SCORE_BUCKETS = 10


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy; ``inputs.seed`` seeds the random order."""
    return with_batch_size(inputs, PAGES_BETWEEN_TRAININGS)


def with_batch_size(inputs: PolicyInputs, pages_between_trainings: int) -> Policy:
    """Create the policy with another batch size."""
    learning = _OnlineLearning(inputs.seed, pages_between_trainings)
    return Policy("ache", FunctionScorer(learning.scores), reprioritiser=learning)


class _OnlineLearning:
    """The features of each link when first met, and the outcomes so far.

    Features are sparse rows, about a hundred bytes a link.
    """

    def __init__(self, seed: int, pages_between_trainings: int) -> None:
        self._seed = seed
        self._batch = pages_between_trainings
        self._pages = 0
        self._learner: LinkTextClassifier | None = None
        self._place: dict[str, int] = {}
        self._blocks: list[csr_array] = []
        self._gone: set[str] = set()
        self._labels: dict[str, float] = {}

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> NDArray[np.float64]:
        """Score links by the classifier, or by their page before the first training."""
        new = [link for link in links if link.url not in self._place]
        if new:
            first = len(self._place)
            self._place.update((link.url, first + i) for i, link in enumerate(new))
            self._blocks.append(link_matrix(new))
        if self._learner is None:
            level = 0.5 * page_context.classification.on_topic
            return np.array([level + 0.5 * self._lot(link.url) for link in links])
        return self._levelled(self._learner.predict(link_matrix(links)), [x.url for x in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Record the outcome; retrain and move all waiting links when a batch is full."""
        link = settled.link
        self._gone.add(link.url)
        if settled.classification is None or settled.outcome != "fetched":
            return {}
        origin = link.parent if link.hops and link.parent is not None else link.url
        self._labels[origin] = float(settled.classification.on_topic)
        self._pages += 1
        return self._train() if self._pages % self._batch == 0 else {}

    def _train(self) -> Mapping[str, float]:
        rows = stack_rows(self._blocks, format="csr") if self._blocks else link_matrix([])
        self._blocks = [rows]
        known = [url for url in self._labels if url in self._place]
        learner = LinkTextClassifier.fit(
            rows[[self._place[url] for url in known]],
            np.array([self._labels[url] for url in known]),
            known,
        )
        if learner is None:
            return {}
        self._learner = learner
        waiting = [url for url in self._place if url not in self._gone]
        if not waiting:
            return {}
        scores = learner.predict(rows[[self._place[url] for url in waiting]])
        return dict(zip(waiting, self._levelled(scores, waiting).tolist(), strict=True))

    def _levelled(self, scores: NDArray[np.float64], urls: Sequence[str]) -> NDArray[np.float64]:
        levels = np.minimum(np.floor(scores * _SCORE_BUCKETS), _SCORE_BUCKETS - 1)
        return (levels + [self._lot(url) for url in urls]) / _SCORE_BUCKETS

    def _lot(self, url: str) -> float:
        """A hash in [0, 1), so that repeated links get the same value."""
        return hash_fraction(url, self._seed)
