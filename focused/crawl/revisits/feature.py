"""The feature of continuous crawls, wired."""

from __future__ import annotations

import math

from focused.crawl.features import CrawlCore, FeatureParts
from focused.crawl.policy import link_order_of
from focused.crawl.revisits.announcements import Announcements
from focused.crawl.revisits.collection import REVISIT, Collection, RevisitQueue
from focused.crawl.revisits.pacing import DownloadBudget, RevisitPacer
from focused.crawl.revisits.page_records import PageRecords
from focused.crawl.revisits.revisits import CollectionUpdater, RevisitProcessor
from focused.crawl.revisits.versions import BLOCKS, VersionChecker, read_blocks
from focused.durations import DAY_S, HOUR_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.policy import RevisitInputs, find_revisit_policy
from focused.revisit.schedule import RevisitSchedule
from focused.revisit.signalled_policy import SignalledPolicy


def connect(core: CrawlCore) -> FeatureParts:
    """Build the collection with its schedule, and the handler of revisits."""
    core.page_analysers[BLOCKS] = read_blocks
    settings, state, responses = core.topic.revisit, core.state, core.responses
    tables, archive = state.store.tables, state.archive
    records = PageRecords(tables, archive)
    policy_records = TableRecords(tables)
    make_policy = find_revisit_policy(settings.policy)

    max_days = settings.max_interval_days
    max_interval_s = math.inf if max_days is None else max_days * DAY_S

    def make_schedule(mean_interval_s: float) -> RevisitSchedule:
        policy = make_policy(RevisitInputs(mean_interval_s, policy_records))
        return RevisitSchedule(
            SignalledPolicy(policy, policy_records, mean_interval_s, records.weight),
            policy_records,
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
