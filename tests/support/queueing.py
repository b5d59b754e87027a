"""Links as a crawl queues them when a scorer that learns has scored them."""

from __future__ import annotations

from collections.abc import Sequence

from focused.frontier.queued import QueuedLink, link_key
from focused.learning.protocols import LearningScorer, Visit
from focused.web.page import Link
from focused.web.url import host_of


def queued(
    scorer: LearningScorer,
    visit: Visit,
    links: Sequence[Link],
    waiting: Sequence[QueuedLink | None] | None = None,
) -> list[QueuedLink]:
    """The links of a page as they wait after it was scored; ``waiting``, as they did before."""
    before = waiting or [None] * len(links)
    told = scorer.score_joined(visit, links, before)
    return [
        QueuedLink(
            link_key(link.url),
            link.url,
            host_of(link.url),
            priority=float(told.worth[i]),
            score=float(told.scores[i]),
            depth=visit.depth + 1,
            parent=visit.page.url if told.leads[i] or old is None else old.parent,
            anchor=link.anchor if told.leads[i] or old is None else old.anchor,
            evidence=tuple(told.features[i].tolist()),
            trail=told.trails[i],
        )
        for i, (link, old) in enumerate(zip(links, before, strict=True))
    ]
