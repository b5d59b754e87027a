"""The feature of pages that need JavaScript: count them, or let a driver render them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focused.installed_features import Feature
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts

_LISTED_HOSTS = 100


def is_on(topic: Topic) -> bool:
    """Whether ``scope.javascript`` counts or renders such pages."""
    return topic.scope.javascript != "ignore"


def connect(core: CrawlCore) -> FeatureParts:
    """Build the bookkeeping; the driver's renderer asks it which pages to render."""
    from focused.crawl.features import FeatureParts
    from focused.crawl.javascript import JavascriptPages

    frontier = core.state.frontier
    pages = JavascriptPages(
        core.topic,
        core.state.store.tables,
        core.state.counters,
        lambda name: frontier.count(frontier.hosts.get(name)),
    )
    return FeatureParts(
        listeners=[pages],
        statistics={"javascript_hosts": lambda: pages.needing_by_host(_LISTED_HOSTS)},
        offered=[pages],
    )


feature = Feature(is_on, connect)
