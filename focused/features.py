"""The features that come with the crawler: when they are on, and their wiring.

The objects are entry points of the group ``focused.features``. This module is imported for every
crawl; what a feature wires is imported when its topic switches it on. :mod:`focused.crawl.features`
describes the seams.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focused.installed_features import Feature

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts

SEARCH_RESULTS = "search results"
"""The reason counted for links to result pages of queries, which the crawl queues itself."""

_LISTED_HOSTS = 100


def _connect_documents(core: CrawlCore) -> FeatureParts:
    """Let PDFs, office files and the like be pages."""
    from focused.crawl.features import FeatureParts
    from focused.documents.convert import DocumentConverter

    core.converters.append(DocumentConverter(core.topic.scope.documents))
    return FeatureParts()


def _connect_javascript(core: CrawlCore) -> FeatureParts:
    """Build the bookkeeping; the driver's renderer asks it which pages to render."""
    from focused.crawl.classified_page import PageColumn
    from focused.crawl.features import FeatureParts
    from focused.crawl.javascript import JavascriptPages

    core.columns.append(
        PageColumn("rendered", "flag", lambda page: page.response.rendered is not None)
    )
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


def _connect_revisits(core: CrawlCore) -> FeatureParts:
    """Build the collection with its schedule, and the handler of revisits."""
    from focused.crawl.features import FeatureParts
    from focused.crawl.policy import link_order_of
    from focused.crawl.revisits.announcements import Announcements
    from focused.crawl.revisits.collection import REVISIT, Collection, RevisitQueue
    from focused.crawl.revisits.pacing import DownloadBudget, RevisitPacer
    from focused.crawl.revisits.page_records import PageRecords
    from focused.crawl.revisits.revisits import CollectionUpdater, RevisitProcessor
    from focused.crawl.revisits.versions import BLOCKS, VersionChecker, read_blocks
    from focused.durations import DAY_S, HOUR_S
    from focused.revisit.disk_schedule import TableDueQueue, TableRecords
    from focused.revisit.policy import RevisitInputs, find_revisit_policy
    from focused.revisit.schedule import RevisitSchedule
    from focused.revisit.signalled_policy import SignalledPolicy

    core.page_analysers[BLOCKS] = read_blocks
    settings, state, responses = core.topic.revisit, core.state, core.responses
    tables, archive = state.store.tables, state.archive
    records = PageRecords(tables, archive)
    policy_records = TableRecords(tables)
    due_queue = TableDueQueue(tables, policy_records)
    make_policy = find_revisit_policy(settings.policy)

    max_days = settings.max_interval_days
    max_interval_s = math.inf if max_days is None else max_days * DAY_S

    def make_schedule(mean_interval_s: float) -> RevisitSchedule:
        policy = make_policy(RevisitInputs(mean_interval_s, policy_records))
        return RevisitSchedule(
            SignalledPolicy(policy, policy_records, mean_interval_s, records.weight),
            due_queue,
            policy_records,
            mean_interval_s=mean_interval_s,
            min_interval_s=settings.min_interval_hours * HOUR_S,
            max_interval_s=max_interval_s,
            min_pace=settings.min_pace,
            weight_of=records.weight,
        )

    # Where priorities don't follow from scores, due pages come before new links.
    competes = link_order_of(core.policy).by_score and settings.share is None
    queue = RevisitQueue(tables, state.frontier, core.enqueuer, competes=competes)
    collection = Collection(settings, tables, records, make_schedule, archive, queue)
    versions = VersionChecker(tables)
    announcements = Announcements(tables, collection, versions, responses.queue_feed)
    processor = RevisitProcessor(
        core.hosts,
        state.frontier,
        collection,
        versions,
        announcements,
        responses,
        archive,
        state.counters,
    )
    pacer = RevisitPacer(collection, DownloadBudget(settings, tables))
    state.before_commit.extend([pacer.save, policy_records.save])
    updater = CollectionUpdater(collection, versions, announcements, archive, state.counters)
    return FeatureParts(handlers={REVISIT: processor}, first_listeners=[updater], pacer=pacer)


def _connect_search_forms(core: CrawlCore) -> FeatureParts:
    """Build the prober; links to result pages are left to it."""
    from focused.crawl.features import FeatureParts

    if not core.follow_links:
        return FeatureParts()
    from focused.crawl.deep_web.form_prober import FormProber

    topic = core.topic
    prober = FormProber(
        topic.deep_web, topic.training.keywords, core.state.store.tables, core.enqueuer.offer_feed
    )
    core.link_filter.refusals.append(
        lambda url: SEARCH_RESULTS if prober.is_results_page(url) else None
    )
    return FeatureParts(listeners=[prober])


def _connect_spam(core: CrawlCore) -> FeatureParts:
    """Build the filter, which reviews each page by what is known of its site."""
    from focused.crawl.classified_page import PageColumn
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
    core.columns.append(
        PageColumn("spam", "number", lambda page: None if page.feed else page.classification.spam)
    )
    core.page_raters[EVIDENCE] = rate_text
    core.page_analysers[SCRIPT_TARGET] = find_script_target
    core.page_reviewers.append(spam_filter)
    return FeatureParts(first_listeners=[spam_filter])


documents = Feature(lambda topic: bool(topic.scope.documents), _connect_documents)
"""Documents as pages, of the formats in ``scope.documents``."""

javascript = Feature(
    lambda topic: topic.scope.javascript != "ignore",
    _connect_javascript,
    counts={
        "javascript/EVENT": "Pages that need JavaScript and what became of them: "
        "docs/reference/crawl-folder.md#javascript."
    },
    tables={
        "javascript_hosts": "Hosts with pages that show nothing without JavaScript; set when the "
        "crawl ends. `stats.json` lists at most 100 with the number of such pages."
    },
)
"""Pages that need JavaScript: count them, or let a driver render them."""

revisits = Feature(
    lambda topic: topic.revisit.continuous,
    _connect_revisits,
    counts={
        "revisits/RESULT": "Pages visited again, by result: docs/how-to/freshness.md#results.",
        "missing_pages_requested": "Requests for pages that cannot exist, to recognise soft 404s.",
    },
    downloads="revisits",
)
"""Continuous crawls, which visit their pages again."""

search_forms = Feature(lambda topic: bool(topic.deep_web.hosts), _connect_search_forms)
"""Queries by the search forms of the hosts that the topic names."""

spam = Feature(
    lambda topic: topic.scope.spam != "ignore",
    _connect_spam,
    counts={"spam": "Fetched pages that are probably spam."},
)
"""Web spam: probable spam neither guides the crawl nor counts as harvest."""
