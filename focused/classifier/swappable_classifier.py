"""A classifier that another may follow in the middle of a crawl.

Whoever judges or scores by it holds this one object and speaks to the classifier in
office, so that a retrained model takes over everywhere between two pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.link_scoring.protocols import TopicClassifier
from focused.web.page import Classification, Page


class SwappableClassifier:
    """A :class:`focused.link_scoring.protocols.TopicClassifier`: whichever was appointed last."""

    def __init__(self, classifier: TopicClassifier, name: str = "") -> None:
        """``name`` tells the classifier from others in what a crawl keeps; "" has none."""
        self._classifier = classifier
        self.name = name

    def swap(self, classifier: TopicClassifier, name: str) -> None:
        """From the next page on ``classifier`` judges."""
        self._classifier = classifier
        self.name = name

    @property
    def current(self) -> TopicClassifier:
        """The classifier itself, who may be sent to another process."""
        return self._classifier

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self._classifier.threshold

    def classify(self, page: Page) -> Classification:
        """Judge one fetched page."""
        return self._classifier.classify(page)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats of log-odds."""
        return self._classifier.score_texts(texts)
