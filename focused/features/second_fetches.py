"""The feature of second fetches, which find sites that answer another page the next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focused.installed_features import Feature
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts


def is_on(topic: Topic) -> bool:
    """Whether ``scope.second_fetches`` is a share above 0 and spam is not ignored."""
    return bool(topic.scope.second_fetches) and topic.scope.spam != "ignore"


def connect(core: CrawlCore) -> FeatureParts:
    """Build the sampling and the handler of the second fetches."""
    from focused.crawl.features import FeatureParts
    from focused.crawl.second_fetches import SECOND_FETCH, SecondFetches, SecondFetchRequests

    state = core.state
    second = SecondFetches(
        core.topic.scope.second_fetches,
        state.store.tables,
        state.frontier,
        core.responses,
        core.spam_filter,
        state.counters,
    )
    requests = SecondFetchRequests(second, core.hosts, state.frontier, core.traps.refusal_reason)
    return FeatureParts(handlers={SECOND_FETCH: requests}, listeners=[second])


feature = Feature(is_on, connect)
