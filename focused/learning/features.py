"""What is known of a link's target before it is fetched.

Evidence is in nats of log-odds, so that it can be added up: 0 says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.learning.link_words import LinkWords
from focused.learning.protocols import TopicJudge, Visit
from focused.learning.tokens import url_words
from focused.learning.topic_classifier import sigmoid
from focused.web.page import Judgement, Link
from focused.web.url import host_of

FEATURE_NAMES = ("parent", "inherited", "anchor", "context", "url", "words", "other_host")

MAX_PARENT_LOG_ODDS = 4.0

INHERITANCE = 0.5
"""What is left of relevance from page to page along a path (Shark-search's δ, Hersovici 1998)."""


def link_features(
    judge: TopicJudge, learned: LinkWords, visit: Visit, links: Sequence[Link]
) -> NDArray[np.float64]:
    """One row a link, shape (n, len(FEATURE_NAMES)).

    ``parent`` is the page's calibrated relevance in log-odds, within ±4, and
    ``inherited`` that of the best page on the way here, halved at each step;
    ``anchor``, ``context`` and ``url`` are the topic model's verdicts in nats
    (of the address the words of host, path and query); ``words`` is what the
    words of anchor and address were worth in this crawl; ``other_host`` is 0 or 1.
    """
    rows = np.zeros((len(links), len(FEATURE_NAMES)))
    if not links:
        return rows
    texts = [link.anchor for link in links]
    texts += [link.context for link in links]
    texts += [url_words(link.url) for link in links]
    rows[:, 0] = parent_log_odds(visit.judgement)
    rows[:, 1] = log_odds_within(inherited(visit))
    rows[:, 2:5] = judge.verdicts(texts).reshape(3, len(links)).T
    rows[:, 5] = [learned.evidence(link.url, link.anchor) for link in links]
    home = host_of(visit.page.url)
    rows[:, 6] = [host_of(link.url) != home for link in links]
    return rows


def inherited(visit: Visit) -> float:
    """The page's relevance, or half of what it inherited when that is more, in [0, 1]."""
    if len(visit.evidence) != len(FEATURE_NAMES):  # a seed, or found by another policy
        return visit.judgement.relevance
    before = sigmoid(visit.evidence[FEATURE_NAMES.index("inherited")])
    return max(visit.judgement.relevance, INHERITANCE * before)


def parent_log_odds(judgement: Judgement) -> float:
    """The page's relevance in nats, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return log_odds_within(judgement.relevance)


def log_odds_within(relevance: float) -> float:
    """A relevance in nats, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    edge = 1.0 / (1.0 + np.exp(MAX_PARENT_LOG_ODDS))
    clipped = float(np.clip(relevance, edge, 1.0 - edge))
    return float(np.log(clipped / (1.0 - clipped)))
