"""What a page shows of its links' targets, before they are fetched.

Evidence is in nats of log-odds, so that it can be added up: 0 says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.learning.protocols import TopicJudge
from focused.learning.tokens import url_words
from focused.web.page import Judgement, Link, Page
from focused.web.url import host_of

FEATURE_NAMES = ("parent", "anchor", "context", "url", "other_host", "nofollow")

MAX_PARENT_LOG_ODDS = 4.0


def link_features(
    judge: TopicJudge, page: Page, judgement: Judgement, links: Sequence[Link]
) -> NDArray[np.float64]:
    """One row a link, shape (n, len(FEATURE_NAMES)).

    ``parent`` is the page's calibrated relevance in log-odds, within ±4;
    ``anchor``, ``context`` and ``url`` are the topic model's verdicts in nats
    (of the address the words of host, path and query); ``other_host`` and
    ``nofollow`` are 0 or 1.
    """
    rows = np.zeros((len(links), len(FEATURE_NAMES)))
    if not links:
        return rows
    texts = [link.anchor for link in links]
    texts += [link.context for link in links]
    texts += [url_words(link.url) for link in links]
    rows[:, 0] = parent_log_odds(judgement)
    rows[:, 1:4] = judge.verdicts(texts).reshape(3, len(links)).T
    home = host_of(page.url)
    rows[:, 4] = [host_of(link.url) != home for link in links]
    rows[:, 5] = [link.nofollow for link in links]
    return rows


def parent_log_odds(judgement: Judgement) -> float:
    """The page's relevance in nats, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    edge = 1.0 / (1.0 + np.exp(MAX_PARENT_LOG_ODDS))
    relevance = float(np.clip(judgement.relevance, edge, 1.0 - edge))
    return float(np.log(relevance / (1.0 - relevance)))
