"""Shark-search: the ancestors' relevance, and the similarity of anchor and context.

Hersovici, Jacovi, Maarek, Pelleg, Shtalhaim, Ur: The Shark-Search Algorithm, WWW7 1998. With
``sim`` the similarity to the topic, in [0, 1]:

- inherited = delta * sim(page) when the page is relevant, else delta * the page's own inherited
  score;
- anchor = sim(anchor text); context = 1 when anchor > 0, else sim(text around the link);
- neighbourhood = beta * anchor + (1 - beta) * context;
- score = gamma * inherited + (1 - gamma) * neighbourhood.

The paper calls the constants predefined; ours are delta = 0.5, beta = 0.8 and gamma = 0.5. Its
``sim`` is that of a vector space, 0 for most texts; ours is the classifier's: the relevance of an
on-topic page, and tanh(v / 2) for a short text that scores ``v`` nats, which is ``2 p - 1`` for the
probability ``p`` at even odds, or 0 for a negative ``v``. A seed inherits 1.

The inherited score is stored with the link as a feature, over redirects and restarts. The priority
is the score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.orderings import PolicyInputs
from focused.web.page import Link

DELTA = 0.5
BETA = 0.8
GAMMA = 0.5


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from the classifier."""
    return Policy("shark", SharkScorer(inputs.classifier))


class SharkScorer:
    """Scores links by the formulas above; a :class:`focused.link_scoring.protocols.LinkScorer`."""

    feature_names = ("inherited", "anchor", "context")

    def __init__(self, classifier: TopicClassifier) -> None:
        self._classifier = classifier

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page."""
        inherited = np.full(len(links), DELTA * _inherited_score(page_context))
        texts = [link.anchor for link in links] + [link.context for link in links]
        anchor, context = self._similarity(texts).reshape(2, len(links))
        context = np.where(anchor > 0.0, 1.0, context)
        neighbourhood = BETA * anchor + (1.0 - BETA) * context
        scores = GAMMA * inherited + (1.0 - GAMMA) * neighbourhood
        return ScoredLinks(scores, np.column_stack([inherited, anchor, context]))

    def _similarity(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if not texts:
            return np.zeros(0)
        return np.tanh(np.maximum(self._classifier.score_texts(texts), 0.0) / 2.0)


def _inherited_score(page_context: PageContext) -> float:
    """What a page's links inherit, before the decay."""
    if page_context.classification.on_topic:
        return page_context.classification.guiding_relevance
    return float(page_context.features[0]) if len(page_context.features) else 1.0
