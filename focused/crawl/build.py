"""Wire a crawl: the one place that connects its parts."""

from __future__ import annotations

from collections.abc import Callable

from focused.archive.warc_files import PAGES_PREFIX
from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.archive_writer import ArchiveWriter
from focused.crawl.crawl_state import open_state
from focused.crawl.crawl_stats import StageTimes
from focused.crawl.dedup.duplicates import DuplicateDetector, SharedContents
from focused.crawl.dedup.mirrors import MirrorFilter
from focused.crawl.enqueue import LinkEnqueuer, LinkFilter
from focused.crawl.features import CrawlCore, FeatureParts, connect_features
from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.leases import DirectRequests
from focused.crawl.listeners import FrontierUpdater, Listeners, QueueReprioritiser
from focused.crawl.loop import Crawl
from focused.crawl.online_training import ModelHistory, OnlineTraining, ShareExample
from focused.crawl.page_parser import ParseFunction, ResponseParser
from focused.crawl.policy import Policy
from focused.crawl.purposes import HostAccess, PageRequests, RobotsRequests
from focused.crawl.responses import ResponseProcessor
from focused.crawl.robots_fetcher import RobotsFetcher
from focused.crawl.steps import ROBOTS
from focused.crawl.stop_conditions import StopConditions
from focused.crawl.traps.trap_filter import TrapFilter
from focused.frontier.disk_frontier import DiskFrontier, LinkQueue
from focused.frontier.queued_link import PAGE
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
    route: Callable[[DiskFrontier, Tables], LinkQueue] | None = None,
    warc_prefix: str = PAGES_PREFIX,
    share_example: ShareExample | None = None,
    shared_contents: SharedContents | None = None,
) -> Crawl:
    """Build the crawl of ``topic`` whose state is in ``store``.

    With ``follow_links`` False the driver queues links itself, by :meth:`Crawl.enqueue_url`.
    ``parse`` replaces the HTML parser; ``keep_links`` False leaves link rows out of the archive;
    ``stages`` collects the time spent by stage. ``route`` returns the queue of the links of pages,
    which may send those of other partitions away; without it they all go to the frontier.
    ``warc_prefix`` begins the names of its WARC files.
    With ``share_example`` the crawl hands its training examples over and leaves it to others to
    train the scorer. With ``shared_contents`` pages of other partitions are originals, too.
    """
    if not isinstance(classifier, SwappableClassifier):
        classifier = SwappableClassifier(classifier)
    state = open_state(topic, policy, store, stages, warc_prefix, keep_links=keep_links)
    tables, scope, frontier, counters = store.tables, topic.scope, state.frontier, state.counters
    seen = frontier.lookup_links
    mirrors = MirrorFilter(
        tables, seen, state.leases.has_url, skip_links=scope.mirrors, shared=shared_contents
    )
    traps = TrapFilter(tables, on=scope.traps, keeps=compile_parameter_names(scope.keep_parameters))
    state.before_commit.append(traps.stats.save)
    host_policy = HostPolicy(topic, counters, tables, frontier)
    link_filter = LinkFilter(topic, counters, host_policy, mirrors, traps)
    queue = frontier if route is None else route(frontier, tables)
    enqueuer = LinkEnqueuer(link_filter, policy.scorer, policy.ordering, queue)
    direct_requests = DirectRequests(frontier.hosts, host_policy, state.leases)
    queue_sitemap = enqueuer.offer_feed if follow_links else lambda url, now: False
    robots = RobotsFetcher(state, host_policy, direct_requests, queue_sitemap)
    responses = ResponseProcessor(
        topic,
        state,
        ResponseParser(topic, state, classifier, policy.scorer, parse),
        ArchiveWriter(state.archive, counters, classifier, policy),
        enqueuer,
        DuplicateDetector(tables, near=scope.near_duplicates, shared=shared_contents),
        training_urls=training_urls,
        follow_links=follow_links,
    )
    hosts = HostAccess(frontier.hosts, host_policy, robots, direct_requests)
    core = CrawlCore(
        topic, policy, classifier, training_urls, state, hosts, enqueuer, responses, follow_links
    )
    patience_s = topic.politeness.patience_s if policy.patient else 0.0
    training = OnlineTraining(policy, frontier, tables, patience_s=patience_s, share=share_example)
    features = connect_features(core)
    state.archive.add_columns({each.name: each.kind for each in core.columns})
    listeners = connect_listeners(core, training, features)
    pages = PageRequests(
        state, hosts, link_filter, responses, listeners, topic.politeness.max_tries
    )
    return Crawl(
        core,
        training,
        ModelHistory(classifier, training, tables),
        StopConditions(topic, state, robots, traps.stats, features.pacer),
        listeners,
        {PAGE: pages, ROBOTS: RobotsRequests(robots), **features.handlers},
        features,
    )


def connect_listeners(
    core: CrawlCore, training: OnlineTraining, features: FeatureParts
) -> Listeners:
    """Return what hears of each settled link, in order."""
    frontier, reprioritiser = core.state.frontier, core.policy.reprioritiser
    mirrors = core.link_filter.mirrors
    return Listeners(
        [
            *features.first_listeners,
            core.hosts.policy,
            mirrors,
            core.traps,
            FrontierUpdater(frontier, mirrors.take_released),
            training,
            *features.listeners,
            *([QueueReprioritiser(frontier, reprioritiser)] if reprioritiser else []),
        ]
    )
