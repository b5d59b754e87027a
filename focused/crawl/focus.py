"""Hard and soft focus: whose links are followed.

After Chakrabarti, van den Berg and Dom (1999), "Focused crawling: a new approach to
topic-specific Web resource discovery", section 3.1. There, soft focus follows all links
and orders them by relevance, the good categories' share; hard focus follows only those of
pages whose likeliest leaf of the taxonomy is good or lies below what is good.
"""

from __future__ import annotations

from focused.directory.sides import is_below
from focused.topic import Training
from focused.web.page import Judgement

HARD_FOCUS = "hard focus"
"""The reason under which links are counted that the hard rule leaves unfollowed."""


def leads_on(training: Training, judgement: Judgement, depth: int) -> bool:
    """Whether the links of a page, ``depth`` links from a seed, are followed.

    Seeds' are in any case, and those of pages with too little text to be judged. A judge
    that names no categories answers by whether the page is on topic.
    """
    if training.focus != "hard" or depth == 0 or not judgement.known:
        return True
    if not judgement.category:
        return judgement.on_topic
    return any(is_below(judgement.category, good) for good in training.good)
