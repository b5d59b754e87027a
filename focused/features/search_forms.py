"""The feature of search forms: queries by the forms of the hosts that the topic names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focused.installed_features import Feature
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts

REFUSAL = "search results"
"""The reason counted for links to result pages of queries, which the crawl queues itself."""


def is_on(topic: Topic) -> bool:
    """Whether ``deep_web.hosts`` names hosts."""
    return bool(topic.deep_web.hosts)


def connect(core: CrawlCore) -> FeatureParts:
    """Build the prober; links to result pages are left to it."""
    from focused.crawl.features import FeatureParts

    if not core.follow_links:
        return FeatureParts()
    from focused.crawl.deep_web.form_prober import FormProber

    topic = core.topic
    prober = FormProber(
        topic.deep_web, topic.training.keywords, core.state.store.tables, core.enqueuer.offer_feed
    )
    core.link_filter.refusals.append(lambda url: REFUSAL if prober.is_results_page(url) else None)
    return FeatureParts(listeners=[prober])


feature = Feature(is_on, connect)
