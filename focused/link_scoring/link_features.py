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

from focused.link_scoring.protocols import PageContext, ScorableLink
from focused.web.page import Classification

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

FEATURE_INDEX = {name: place for place, name in enumerate(FEATURE_NAMES)}

MAX_PARENT_LOG_ODDS = 4.0
MAX_LINKS_SINCE_RELEVANT = 8.0
MAX_IN_LINKS = 8
"""So many pages that link are joined; of further ones only those that are more relevant."""

_PARENT, _PARENTS, _IN_LINKS = (
    FEATURE_INDEX["parent"],
    FEATURE_INDEX["parents"],
    FEATURE_INDEX["in_links"],
)
_OUT_DEGREE = FEATURE_INDEX["out_degree"]
_MINIMUM_COLUMNS = [FEATURE_INDEX["since"], FEATURE_INDEX["navigation"]]
_MAXIMUM_COLUMNS = [
    _PARENT,
    FEATURE_INDEX["anchor"],
    FEATURE_INDEX["context"],
    FEATURE_INDEX["context_words"],
]


@dataclass(frozen=True, slots=True)
class MergedFeatures:
    """Evidence of this page and of those that linked before.

    ``rows`` has shape (n, len(FEATURE_NAMES)); ``is_best_inlink``, shape (n,), is True
    where this page's own link tells most: its anchor and place stand for the target.
    """

    rows: NDArray[np.float64]
    is_best_inlink: NDArray[np.bool_]


def merge_features(
    rows: NDArray[np.float64], waiting: Sequence[ScorableLink | None]
) -> MergedFeatures:
    """Join each row of a page's features with what is known of the link that waits, if one does."""
    is_best_inlink = np.ones(len(rows), dtype=np.bool_)
    places = [i for i, link in enumerate(waiting) if _has_link_features(link)]
    if not places:
        return MergedFeatures(rows, is_best_inlink)
    joined = rows[places]
    old = np.array([link.features for i in places if (link := waiting[i]) is not None])
    better = joined[:, _PARENT] > old[:, _PARENT]
    for column in _MINIMUM_COLUMNS:
        np.minimum(joined[:, column], old[:, column], out=joined[:, column])
    for column in _MAXIMUM_COLUMNS:
        np.maximum(joined[:, column], old[:, column], out=joined[:, column])
    joined[~better, _OUT_DEGREE] = old[~better, _OUT_DEGREE]
    count = old[:, _IN_LINKS] + 1.0
    joined[:, _PARENTS] = old[:, _PARENTS] + (joined[:, _PARENTS] - old[:, _PARENTS]) / count
    joined[:, _IN_LINKS] = np.minimum(count, MAX_IN_LINKS)
    kept = (count > MAX_IN_LINKS) & ~better
    joined[kept] = old[kept]
    rows[places] = joined
    is_best_inlink[places] = better
    return MergedFeatures(rows, is_best_inlink)


def has_enough_inlinks(link: ScorableLink) -> bool:
    """Whether a page that is not more relevant than those before tells nothing more of the link."""
    return _has_link_features(link) and link.features[_IN_LINKS] >= MAX_IN_LINKS


def adds_information(visit: PageContext, link: ScorableLink) -> bool:
    """Whether one more link from the page of ``visit`` changes the features of one that waits."""
    return (
        not has_enough_inlinks(link)
        or parent_log_odds(visit.classification) > link.features[_PARENT]
    )


def round_precision(
    numbers: NDArray[np.float64], to: type[np.floating[Any]]
) -> NDArray[np.float64]:
    """Numbers that a queued link can keep in fewer bytes; what is scored is what is kept.

    Half precision holds features to a thousandth of itself.
    """
    return numbers.astype(to).astype(np.float64)


def _has_link_features(link: ScorableLink | None) -> bool:
    # Seeds, a driver's own requests, and what another scorer has found have none of ours.
    return link is not None and len(link.features) == len(FEATURE_NAMES)


def links_since_relevant(visit: PageContext) -> float:
    """Links between the page and the last one on topic on the way to it; 0: on topic, or a seed."""
    if visit.classification.on_topic or len(visit.features) != len(FEATURE_NAMES):
        return 0.0
    return min(visit.features[FEATURE_INDEX["since"]] + 1.0, MAX_LINKS_SINCE_RELEVANT)


def parent_log_odds(classification: Classification) -> float:
    """The page's relevance in nats, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return clipped_log_odds(classification.relevance)


def clipped_log_odds(relevance: float, nats: float = MAX_PARENT_LOG_ODDS) -> float:
    """A relevance in nats, within ±``nats``."""
    edge = 1.0 / (1.0 + math.exp(nats))
    clipped = min(max(relevance, edge), 1.0 - edge)
    return math.log(clipped / (1.0 - clipped))
