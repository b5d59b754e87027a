"""Wire a crawl: the one place that connects its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from focused.archive.archive import Archive
from focused.archive.warc_files import PAGES_PREFIX, WarcFiles, warcinfo_fields
from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.crawl_stats import Counters, StageTimes
from focused.crawl.dedup.duplicates import SharedContents
from focused.crawl.dedup.mirrors import MirrorFilter
from focused.crawl.deep_web.form_prober import FormProber
from focused.crawl.enqueue import LinkEnqueuer, LinkFilter
from focused.crawl.hosts.host_policy import HostPolicy, host_limits
from focused.crawl.hosts.robots_fetcher import RobotsFetcher
from focused.crawl.javascript import JavascriptPages
from focused.crawl.leases import DirectRequests, Leases
from focused.crawl.listeners import FrontierUpdater, QueueReprioritiser, SettledPageListener
from focused.crawl.loop import Crawl, CrawlState, HostAccess, Learning
from focused.crawl.online_training import ModelHistory, OnlineTraining, ShareExample
from focused.crawl.page_parser import ParseFunction, ResponseParser
from focused.crawl.policy import Policy, link_order_of, save_link_order
from focused.crawl.responses import ArchiveWriter, ResponseProcessor
from focused.crawl.revisits.announcements import Announcements
from focused.crawl.revisits.collection import Collection, RevisitQueue, WeightedPolicy
from focused.crawl.revisits.pacing import DownloadBudget, RevisitPacer
from focused.crawl.revisits.page_records import PageRecords
from focused.crawl.revisits.revisits import (
    ChangeDetector,
    CollectionUpdater,
    RevisitProcessor,
    Revisits,
)
from focused.crawl.revisits.versions import VersionChecker
from focused.crawl.second_fetches import SecondFetches
from focused.crawl.spam_filter import SpamFilter
from focused.crawl.stop_conditions import RunTimer, StopConditions
from focused.crawl.traps.trap_filter import TrapFilter
from focused.durations import DAY_S, HOUR_S
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.interface import Frontier, LinkQueue
from focused.revisit.disk_schedule import TableDueQueue, TableRecords
from focused.revisit.policy import PolicyInputs, find_revisit_policy
from focused.revisit.schedule import RevisitSchedule
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import Topic
from focused.web.scope_filter import compile_parameter_names


def build_crawl(
    topic: Topic,
    classifier: TopicClassifier,
    policy: Policy,
    store: StateStore,
    *,
    training_urls: frozenset[str] = frozenset(),
    follow_links: bool = True,
    parse: ParseFunction | None = None,
    keep_links: bool = True,
    stages: StageTimes | None = None,
    route: Callable[[Frontier, Tables], LinkQueue] | None = None,
    lease_numbers: Iterator[int] | None = None,
    warc_prefix: str = PAGES_PREFIX,
    share_example: ShareExample | None = None,
    shared_contents: SharedContents | None = None,
) -> Crawl:
    """Build the crawl of ``topic`` whose state is in ``store``.

    With ``follow_links`` False the driver queues links itself, by :meth:`Crawl.enqueue_url`.
    ``parse`` replaces the HTML parser; ``keep_links`` False leaves link rows out of the archive;
    ``stages`` collects the time spent by stage. ``route`` returns the queue of the links of pages,
    which may send those of other partitions away; without it they all go to the frontier.
    ``lease_numbers`` are shared by the crawls of one driver; ``warc_prefix`` begins the names of
    its WARC files.
    With ``share_example`` the crawl hands its training examples over and leaves it to others to
    train the scorer. With ``shared_contents`` pages of other partitions are originals, too.
    """
    tables, scope, politeness = store.tables, topic.scope, topic.politeness
    if not isinstance(classifier, SwappableClassifier):
        classifier = SwappableClassifier(classifier)
    save_link_order(tables, link_order_of(policy))
    counters = Counters.from_state(tables.get_meta("counters"))
    frontier = DiskFrontier(
        tables,
        worth_waiting_for=policy.worth_waiting_for,
        exploration=policy.exploration,
        limits=host_limits(scope),
        address_delay_of=politeness.delay_of,
    )
    state = CrawlState(
        store=store,
        frontier=frontier,
        archive=Archive(
            store, warc=_open_warc_files(topic, policy, store, warc_prefix), links=keep_links
        ),
        counters=counters,
        leases=Leases(lease_numbers),
        timer=RunTimer(counters),
        stages=stages or StageTimes(),
    )
    mirrors = MirrorFilter(
        tables,
        frontier.lookup_links,
        state.leases.has_url,
        skip_links=scope.mirrors,
        shared=shared_contents,
    )
    traps = TrapFilter(tables, on=scope.traps, keeps=compile_parameter_names(scope.keep_parameters))
    host_policy = HostPolicy(topic, counters, tables, frontier)
    link_filter = LinkFilter(
        scope, counters, host_policy, mirrors, traps, nofollow=politeness.nofollow
    )
    queue = frontier if route is None else route(frontier, tables)
    enqueuer = LinkEnqueuer(link_filter, policy.scorer, policy.ordering, queue)
    direct_requests = DirectRequests(frontier.hosts, host_policy, state.leases)
    robots = RobotsFetcher(
        frontier,
        host_policy,
        state.leases,
        direct_requests,
        enqueuer.offer_feed if follow_links else lambda url, now: False,
        state.archive.record,
    )
    training = OnlineTraining(
        policy,
        frontier,
        tables,
        patience_s=politeness.patience_s if policy.patient else 0.0,
        share=share_example,
    )
    spam_filter = SpamFilter(
        tables,
        classifier,
        action=scope.spam,
        close_site=traps.close_site,
        trusted_urls=training_urls,
        allow_hosts=scope.allow_hosts,
    )
    responses = ResponseProcessor(
        topic,
        ResponseParser(
            topic,
            classifier,
            policy.scorer,
            state.stages,
            parse,
            record_builder=lambda: state.archive.record_builder,
        ),
        tables,
        ArchiveWriter(state.archive, counters, classifier, policy),
        counters,
        enqueuer,
        spam_filter,
        training_urls=training_urls,
        follow_links=follow_links,
        stages=state.stages,
        shared_contents=shared_contents,
    )
    listeners: list[SettledPageListener] = [
        host_policy,
        mirrors,
        traps,
        FrontierUpdater(frontier, mirrors.take_released),
        training,
    ]
    if topic.deep_web.hosts and follow_links:
        keywords = topic.training.keywords
        prober = FormProber(topic.deep_web, keywords, tables, enqueuer.offer_feed)
        link_filter.is_reserved = prober.is_results_page
        listeners.append(prober)
    second_fetches: SecondFetches | None = None
    if scope.second_fetches and scope.spam != "ignore":
        second_fetches = SecondFetches(
            scope.second_fetches, tables, frontier, responses, spam_filter, counters
        )
        listeners.append(second_fetches)
    javascript = None
    if scope.javascript != "ignore":
        javascript = JavascriptPages(
            topic, tables, counters, lambda name: frontier.count(frontier.hosts.get(name))
        )
        listeners.append(javascript)
    if policy.reprioritiser is not None:
        listeners.append(QueueReprioritiser(frontier, policy.reprioritiser))
    revisits: Revisits | None = None
    if topic.revisit.continuous:
        by_score = link_order_of(policy).by_score
        revisits, updater = _build_revisits(topic, state, enqueuer, responses, by_score=by_score)
        listeners.insert(0, updater)
    return Crawl(
        topic,
        state,
        HostAccess(host_policy, robots, direct_requests),
        enqueuer,
        responses,
        Learning(training, ModelHistory(classifier, training, tables)),
        StopConditions(
            topic,
            frontier,
            counters,
            state.leases,
            robots,
            state.timer,
            traps.stats,
            None if revisits is None else revisits.pacer,
        ),
        listeners,
        revisits,
        second_fetches,
        javascript,
    )


def _build_revisits(
    topic: Topic,
    state: CrawlState,
    enqueuer: LinkEnqueuer,
    responses: ResponseProcessor,
    *,
    by_score: bool,
) -> tuple[Revisits, CollectionUpdater]:
    settings, tables, archive = topic.revisit, state.store.tables, state.archive
    budget = DownloadBudget(settings, tables)
    records = PageRecords(tables, archive)
    policy_records = TableRecords(tables)
    due_queue = TableDueQueue(tables, policy_records)
    make_policy = find_revisit_policy(settings.policy)

    def make_schedule(mean_interval_s: float) -> RevisitSchedule:
        policy = make_policy(PolicyInputs(mean_interval_s, policy_records))
        return RevisitSchedule(
            WeightedPolicy(policy, records),
            due_queue,
            policy_records,
            mean_interval_s=mean_interval_s,
            min_interval_s=settings.min_interval_hours * HOUR_S,
            max_interval_s=settings.max_interval_days * DAY_S,
        )

    # Where priorities don't follow from scores, due pages come before new links.
    competes = by_score and settings.share is None
    queue = RevisitQueue(tables, state.frontier, enqueuer, competes=competes)
    collection = Collection(settings, tables, records, make_schedule, archive, queue)
    versions = VersionChecker(tables)
    announcements = Announcements(tables, collection, versions, responses.queue_feed)
    detector = ChangeDetector(collection, versions, responses)
    processor = RevisitProcessor(
        collection, detector, announcements, responses, archive, state.counters
    )
    updater = CollectionUpdater(collection, versions, announcements, archive, state.counters)
    pacer = RevisitPacer(collection, budget)
    return Revisits(pacer, detector, processor, policy_records), updater


def _open_warc_files(
    topic: Topic, policy: Policy, store: StateStore, prefix: str
) -> WarcFiles | None:
    output = topic.output
    if output.warc == "off":
        return None
    return WarcFiles(
        output.folder,
        store.tables,
        output.warc,
        warcinfo_fields(topic, policy.name),
        prefix=prefix,
        max_bytes=output.max_warc_bytes,
    )
