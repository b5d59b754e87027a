"""Links as a crawl queues them when a scorer that learns has scored them."""

from collections.abc import Sequence

from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import OnlineLinkScorer, PageContext
from focused.web.page import Link
from focused.web.urls import host_of


def queued(
    scorer: OnlineLinkScorer,
    visit: PageContext,
    links: Sequence[Link],
    waiting: Sequence[QueuedLink | None] | None = None,
) -> list[QueuedLink]:
    """The links of a page as they wait after it was scored; ``waiting``, as they did before."""
    before = waiting or [None] * len(links)
    merged = scorer.score_merged(visit, links, before)
    return [
        QueuedLink(
            link_key(link.url),
            link.url,
            host_of(link.url),
            priority=found.rank_score,
            score=found.score,
            depth=visit.depth + 1,
            parent=visit.page.url if found.is_best_inlink or old is None else old.parent,
            anchor=link.anchor if found.is_best_inlink or old is None else old.anchor,
            features=found.features,
            tag_path_key=found.tag_path_key,
        )
        for link, old, found in zip(links, before, merged, strict=True)
    ]
