"""The feature of web spam: probable spam neither guides the crawl nor counts as harvest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focused.installed_features import Feature
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts


def is_on(topic: Topic) -> bool:
    """Whether ``scope.spam`` avoids or reports spam."""
    return topic.scope.spam != "ignore"


def connect(core: CrawlCore) -> FeatureParts:
    """Build the filter, which reviews each page by what is known of its site."""
    from focused.crawl.copied_pages import CopiedPages
    from focused.crawl.features import FeatureParts
    from focused.crawl.spam_filter import (
        EVIDENCE,
        SCRIPT_TARGET,
        SpamFilter,
        find_script_target,
        rate_text,
    )
    from focused.spam.site_novelty import SiteNovelty
    from focused.spam.site_trust import SiteTrust

    topic, tables = core.topic, core.state.store.tables
    site_trust = SiteTrust(tables, core.training_urls)
    spam_filter = SpamFilter(
        site_trust,
        SiteNovelty(tables),
        CopiedPages(
            tables,
            core.responses.duplicates,
            core.responses.rows,
            site_trust,
            may_replace=not topic.revisit.continuous,
        ),
        core.classifier,
        core.state.counters,
        avoids=topic.scope.spam == "avoid",
        close_site=core.traps.close_site,
        allow_hosts=topic.scope.allow_hosts,
    )
    core.page_raters[EVIDENCE] = rate_text
    core.page_analysers[SCRIPT_TARGET] = find_script_target
    core.page_reviewers.append(spam_filter)
    return FeatureParts(first_listeners=[spam_filter])


feature = Feature(is_on, connect)
