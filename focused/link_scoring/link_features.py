"""The features of a link: what is known of its target before the fetch.

Features are in nats of log-odds where possible; 0 carries no information. The features of
several in-links are merged into one row per target.
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
"""From the linking pages, merged over them:

- ``parent``: log-odds of the most relevant linking page, within ±4;
- ``parents``: their mean over the linking pages, ``in_links`` of them;
- ``since``: links since a page on topic, at most 8;
- ``out_degree``: ln(1 + links) of the most relevant linking page;
- ``navigation``: 1 if only navigation links there;
- ``anchor``, ``context``: the classifier's highest score of the anchors and of the contexts;
- ``context_words``: mean relevance of pages with the context's words.

From the URL: ``url``, the classifier's score of its words.

From the crawl, updated before the fetch: mean relevance by the words of the anchor
(``anchor_words``) and of the URL (``url_words``) as words of followed links, and by the
anchor's words as words of pages (``page_words``); mean relevance of links on the same page
(``siblings``) and in the same tag path to the same host (``tag_path``).
"""

FEATURE_INDEX = {name: place for place, name in enumerate(FEATURE_NAMES)}

MAX_PARENT_LOG_ODDS = 4.0
MAX_LINKS_SINCE_RELEVANT = 8.0
MAX_IN_LINKS = 8
"""Maximum number of in-links merged; after that only more relevant ones."""

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
    """Features of this page's links merged with those of earlier in-links.

    ``rows`` has shape (n, len(FEATURE_NAMES)); ``is_best_inlink``, shape (n,), is True where
    this page's link is the most informative: its anchor and tag path represent the target.
    """

    rows: NDArray[np.float64]
    is_best_inlink: NDArray[np.bool_]


def merge_features(
    rows: NDArray[np.float64], waiting: Sequence[ScorableLink | None]
) -> MergedFeatures:
    """Merge each row with the features of the queued link, if there is one."""
    is_best_inlink = np.ones(len(rows), dtype=np.bool_)
    merged_indices = [i for i, link in enumerate(waiting) if _has_link_features(link)]
    if not merged_indices:
        return MergedFeatures(rows, is_best_inlink)
    joined = rows[merged_indices]
    queued = np.array([link.features for i in merged_indices if (link := waiting[i]) is not None])
    is_better = joined[:, _PARENT] > queued[:, _PARENT]
    for column in _MINIMUM_COLUMNS:
        np.minimum(joined[:, column], queued[:, column], out=joined[:, column])
    for column in _MAXIMUM_COLUMNS:
        np.maximum(joined[:, column], queued[:, column], out=joined[:, column])
    joined[~is_better, _OUT_DEGREE] = queued[~is_better, _OUT_DEGREE]
    count = queued[:, _IN_LINKS] + 1.0
    joined[:, _PARENTS] = queued[:, _PARENTS] + (joined[:, _PARENTS] - queued[:, _PARENTS]) / count
    joined[:, _IN_LINKS] = np.minimum(count, MAX_IN_LINKS)
    kept = (count > MAX_IN_LINKS) & ~is_better
    joined[kept] = queued[kept]
    rows[merged_indices] = joined
    is_best_inlink[merged_indices] = is_better
    return MergedFeatures(rows, is_best_inlink)


def has_enough_inlinks(link: ScorableLink) -> bool:
    """Whether only more relevant pages can still change the link's features."""
    return _has_link_features(link) and link.features[_IN_LINKS] >= MAX_IN_LINKS


def adds_information(context: PageContext, link: ScorableLink) -> bool:
    """Whether an in-link from the page of ``context`` changes the features of a queued link."""
    return (
        not has_enough_inlinks(link)
        or parent_log_odds(context.classification) > link.features[_PARENT]
    )


def round_precision(
    numbers: NDArray[np.float64], to: type[np.floating[Any]]
) -> NDArray[np.float64]:
    """Round to the precision in which queued links store their features and scores.

    Half precision keeps features to a thousandth of their value.
    """
    return numbers.astype(to).astype(np.float64)


def _has_link_features(link: ScorableLink | None) -> bool:
    # Seeds, a spider's own requests and links of other scorers have no such features.
    return link is not None and len(link.features) == len(FEATURE_NAMES)


def links_since_relevant(context: PageContext) -> float:
    """Return links since the last on-topic page on the path; 0 on topic or for a seed."""
    if context.classification.on_topic or len(context.features) != len(FEATURE_NAMES):
        return 0.0
    return min(context.features[FEATURE_INDEX["since"]] + 1.0, MAX_LINKS_SINCE_RELEVANT)


def parent_log_odds(classification: Classification) -> float:
    """Return the page's log-odds, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return clipped_log_odds(classification.relevance)


def clipped_log_odds(relevance: float, nats: float = MAX_PARENT_LOG_ODDS) -> float:
    """Return log-odds of a relevance, within ±``nats``."""
    edge = 1.0 / (1.0 + math.exp(nats))
    clipped = min(max(relevance, edge), 1.0 - edge)
    return math.log(clipped / (1.0 - clipped))
