"""What is known of a link's target before it is fetched.

Evidence is in nats of log-odds where it can be, so that it can be added up: 0
says nothing. A target is linked to from several pages; what they tell is
joined, so one row stands for all its in-links.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.protocols import Visit, WaitingLink
from focused.web.page import Judgement

FEATURE_NAMES = (
    "parent",
    "parents",
    "in_links",
    "since",
    "out_degree",
    "navigation",
    "anchor",
    "context",
    "url",
    "context_words",
    "anchor_words",
    "url_words",
    "page_words",
    "siblings",
    "tag_path",
)
"""Told by the pages that link, and joined over them:

- ``parent``: relevance of the most relevant page that links, within ±4 nats;
- ``parents``: the mean of that over the pages that link, ``in_links`` of them;
- ``since``: links since a page on topic, at most 8;
- ``out_degree``: ln(1 + links) of the most relevant page that links;
- ``navigation``: 1 when only navigation links there;
- ``anchor``, ``context``: the topic model's verdict on the best of each, in nats;
- ``context_words``: what the context's words were worth in this crawl's pages.

Told by the address: ``url``, the topic model's verdict on its words.

Told by the crawl, and asked again when the link's turn comes: what the words
of the anchor (``anchor_words``) and of the address (``url_words``) were worth
as words of followed links, and the anchor's as words of pages
(``page_words``); how links of the same page (``siblings``) and in the same
path of tags to the same host (``tag_path``) fared.
"""

COLUMN = {name: place for place, name in enumerate(FEATURE_NAMES)}

MAX_PARENT_LOG_ODDS = 4.0
MAX_SINCE = 8.0
MAX_IN_LINKS = 8
"""So many pages that link are joined; of further ones only those that are more relevant."""

_PARENT, _PARENTS, _IN_LINKS = COLUMN["parent"], COLUMN["parents"], COLUMN["in_links"]
_OUT_DEGREE = COLUMN["out_degree"]
_LOWEST = [COLUMN["since"], COLUMN["navigation"]]
_HIGHEST = [_PARENT, COLUMN["anchor"], COLUMN["context"], COLUMN["context_words"]]


@dataclass(frozen=True, slots=True)
class Joined:
    """Evidence of this page and of those that linked before.

    ``rows`` has shape (n, len(FEATURE_NAMES)); ``leads``, shape (n,), is True
    where this page's own link tells most: its anchor and place stand for the target.
    """

    rows: NDArray[np.float64]
    leads: NDArray[np.bool_]


def join(rows: NDArray[np.float64], waiting: Sequence[WaitingLink | None]) -> Joined:
    """Join each row of a page's evidence with what is known of the link that waits, if one does."""
    leads = np.ones(len(rows), dtype=np.bool_)
    places = [i for i, link in enumerate(waiting) if _has_evidence(link)]
    if not places:
        return Joined(rows, leads)
    joined = rows[places]
    old = np.array([link.evidence for i in places if (link := waiting[i]) is not None])
    better = joined[:, _PARENT] > old[:, _PARENT]
    for column in _LOWEST:
        np.minimum(joined[:, column], old[:, column], out=joined[:, column])
    for column in _HIGHEST:
        np.maximum(joined[:, column], old[:, column], out=joined[:, column])
    joined[~better, _OUT_DEGREE] = old[~better, _OUT_DEGREE]
    count = old[:, _IN_LINKS] + 1.0
    joined[:, _PARENTS] = old[:, _PARENTS] + (joined[:, _PARENTS] - old[:, _PARENTS]) / count
    joined[:, _IN_LINKS] = np.minimum(count, MAX_IN_LINKS)
    kept = (count > MAX_IN_LINKS) & ~better
    joined[kept] = old[kept]
    rows[places] = joined
    leads[places] = better
    return Joined(rows, leads)


def is_full(link: WaitingLink) -> bool:
    """Whether a page that is not more relevant than those before tells nothing more of the link."""
    return _has_evidence(link) and link.evidence[_IN_LINKS] >= MAX_IN_LINKS


def tells_more(visit: Visit, link: WaitingLink) -> bool:
    """Whether one more link from the page of ``visit`` changes the evidence of one that waits."""
    return not is_full(link) or parent_log_odds(visit.judgement) > link.evidence[_PARENT]


def rounded(numbers: NDArray[np.float64], to: type[np.floating[Any]]) -> NDArray[np.float64]:
    """Numbers that a queued link can keep in fewer bytes; what is scored is what is kept.

    Half precision holds evidence to a thousandth of itself.
    """
    return numbers.astype(to).astype(np.float64)


def _has_evidence(link: WaitingLink | None) -> bool:
    # Seeds, a driver's own requests, and what another scorer has found have none of ours.
    return link is not None and len(link.evidence) == len(FEATURE_NAMES)


def since_relevant(visit: Visit) -> float:
    """Links between the page and the last one on topic on the way to it; 0: on topic, or a seed."""
    if visit.judgement.on_topic or len(visit.evidence) != len(FEATURE_NAMES):
        return 0.0
    return min(visit.evidence[COLUMN["since"]] + 1.0, MAX_SINCE)


def parent_log_odds(judgement: Judgement) -> float:
    """The page's relevance in nats, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return log_odds_within(judgement.relevance)


def log_odds_within(relevance: float, nats: float = MAX_PARENT_LOG_ODDS) -> float:
    """A relevance in nats, within ±``nats``."""
    edge = 1.0 / (1.0 + math.exp(nats))
    clipped = min(max(relevance, edge), 1.0 - edge)
    return math.log(clipped / (1.0 - clipped))
