"""The features of a link: what is known of its target before the fetch.

Features are in nats of log-odds where possible; 0 carries no information. The features of
several in-links are merged into one row per target.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from focused.kernels.link_features import merge_rows
from focused.link_scoring.protocols import PageContext, ScorableLink
from focused.link_scoring.static_features import MAX_HALF_PRECISION
from focused.web.page import Classification

FEATURE_NAMES = (
    "parent",
    "parents",
    "in_links",
    "since",
    "anchor",
    "context",
    "url",
    "anchor_meaning",
    "context_meaning",
    "url_meaning",
    "siblings",
    "tag_path",
)
"""From the linking pages, merged over them:

- ``parent``: log-odds of the most relevant linking page, within ±4;
- ``parents``: their mean over the linking pages, ``in_links`` of them;
- ``since``: links since a page on topic, at most 8;
- ``anchor``, ``context``: the classifier's highest score of the anchors and of the contexts;
- ``anchor_meaning``, ``context_meaning``: the same by the meaning of their words.

From the URL: ``url`` and ``url_meaning``, the classifier's scores of its words.

From the crawl, updated before the fetch: mean relevance of links on the same page (``siblings``)
and in the same tag path to the same host (``tag_path``).
"""

FEATURE_INDEX = {name: place for place, name in enumerate(FEATURE_NAMES)}

FEATURE_FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parents": ("parent", "parents", "in_links", "since"),
        "text": ("anchor", "context"),
        "url": ("url",),
        "meaning": ("anchor_meaning", "context_meaning", "url_meaning"),
        "places": ("siblings", "tag_path"),
    }
)
"""Features with the same kind of information."""

MAX_PARENT_LOG_ODDS = 4.0
MAX_LINKS_SINCE_RELEVANT = 8.0
MAX_IN_LINKS = 8
"""Maximum number of in-links merged; after that only more relevant ones."""

_NUMBER = len(FEATURE_NAMES)
_PARENT, _PARENTS, _IN_LINKS = (
    FEATURE_INDEX["parent"],
    FEATURE_INDEX["parents"],
    FEATURE_INDEX["in_links"],
)
_MINIMUM_COLUMNS = [FEATURE_INDEX["since"]]
_MAXIMUM_COLUMNS = [
    _PARENT,
    FEATURE_INDEX["anchor"],
    FEATURE_INDEX["context"],
    FEATURE_INDEX["anchor_meaning"],
    FEATURE_INDEX["context_meaning"],
]


def merge_features(rows: list[list[float]], waiting: Sequence[ScorableLink | None]) -> list[bool]:
    """Merge each row with the features of the queued link, if there is one, in place.

    Return where this page's link is the most informative: its anchor and tag path represent the
    target.
    """
    return merge_rows(
        rows,
        [
            link.features if link is not None and len(link.features) == _NUMBER else None
            for link in waiting
        ],
        (_PARENT, _PARENTS, _IN_LINKS),
        _MINIMUM_COLUMNS,
        _MAXIMUM_COLUMNS,
        MAX_IN_LINKS,
    )


def has_enough_inlinks(link: ScorableLink) -> bool:
    """Whether only more relevant pages can still change the link's features."""
    return not adds_information(-math.inf, link)


def adds_information(log_odds: float, link: ScorableLink) -> bool:
    """Whether an in-link changes the features of a queued link; ``log_odds`` are its page's."""
    features = link.features
    # Seeds, a spider's own requests and links of other scorers have no such features.
    return (
        len(features) != _NUMBER
        or features[_IN_LINKS] < MAX_IN_LINKS
        or log_odds > features[_PARENT]
    )


_HALF_PRECISION = struct.Struct(f"<{_NUMBER}e")


def round_features(features: Sequence[float]) -> tuple[float, ...]:
    """Round features as queued links store them: half precision, to a thousandth of their value.

    Larger numbers become the largest of half precision, 65,504.
    """
    try:
        packed = _HALF_PRECISION.pack(*features)
    except OverflowError:  # of an imported link or of another crawl: a classifier's are clipped
        bounded = (max(-MAX_HALF_PRECISION, min(MAX_HALF_PRECISION, one)) for one in features)
        packed = _HALF_PRECISION.pack(*bounded)
    return _HALF_PRECISION.unpack(packed)


def links_since_relevant(context: PageContext) -> float:
    """Return links since the last on-topic page on the path; 0 on topic or for a seed."""
    if context.classification.on_topic or len(context.features) != _NUMBER:
        return 0.0
    return min(context.features[FEATURE_INDEX["since"]] + 1.0, MAX_LINKS_SINCE_RELEVANT)


def parent_log_odds(classification: Classification) -> float:
    """Return the page's log-odds, within ±:data:`MAX_PARENT_LOG_ODDS`."""
    return clipped_log_odds(classification.guiding_relevance)


def clipped_log_odds(relevance: float, nats: float = MAX_PARENT_LOG_ODDS) -> float:
    """Return log-odds of a relevance, within ±``nats``."""
    edge = 1.0 / (1.0 + math.exp(nats))
    clipped = min(max(relevance, edge), 1.0 - edge)
    return math.log(clipped / (1.0 - clipped))
