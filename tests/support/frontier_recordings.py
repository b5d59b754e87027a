"""A recording of a few pages on two hosts, as the benchmark of the frontier keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from frontier_recording import Recording, Watch

from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink, SettledFetch
from focused.frontier.queued_link import QueuedLink, link_key
from focused.web.page import Link, Page
from focused.web.urls import host_of
from tests.support.keyword_guide import WhaleScorer

PAGES = 40
FEATURES = len(WhaleScorer().feature_names)


def settled(
    url: str, *links: str, gone: Sequence[str] = (), has_other_parents: bool = False
) -> SettledFetch:
    """A page that was fetched and links to ``links``; to ``gone``, too, whose turn was before.

    ``has_other_parents``: other pages link there and add more.
    """
    before = (
        QueuedLink(key=b"", url="", host="", priority=0.0, score=0.0) if has_other_parents else None
    )
    page = Page(url=url, links=tuple(Link(target) for target in (*links, *gone)))
    scored = {
        target: ScoredLink(
            Link(target, anchor=f"to {target}"),
            score=0.5,
            features=(0.25,) * FEATURES,
            rank_score=float(number),
            before=before,
        )
        for number, target in enumerate(links)
    }
    link = QueuedLink(key=link_key(url), url=url, host=host_of(url), priority=0.0, score=1.0)
    return SettledFetch(link, "fetched", page=page, scored=scored)


def recording() -> Recording:
    """Pages of one host, each with three links to the next ones, the first two of which wait."""
    watch = Watch()
    for number in range(PAGES):
        own = [f"https://www.whales.test/page-{number + step}.html" for step in (1, 2, 3)]
        watch(
            settled(
                f"https://www.whales.test/page-{number}.html",
                *own,
                "https://sea.test/",
                has_other_parents=True,
            )
        )
    return watch.recording("test", Policy("test", WhaleScorer()))
