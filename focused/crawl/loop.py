"""The crank of a crawl: seed, next, settle. See the package docstring."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from focused.archive.archive import Archive
from focused.archive.warc_files import WarcFiles, warcinfo_fields
from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.crawl_stats import Counters, Stage, StageTimes
from focused.crawl.enqueue import LinkEnqueuer, LinkFilter
from focused.crawl.hosts.host_policy import HostPolicy, host_limits
from focused.crawl.hosts.robots_fetcher import RobotsFetcher
from focused.crawl.leases import DirectRequests, Lease, Leases
from focused.crawl.online_training import ModelHistory, OnlineTraining
from focused.crawl.page_parser import PageParser, ParsedPage, ParseFunction, ResponseParser
from focused.crawl.policy import LinkReprioritiser, Policy, link_order_of, save_link_order
from focused.crawl.responses import ArchiveWriter, ResponseProcessor
from focused.crawl.steps import (
    Fetch,
    FetchPurpose,
    RefusedRequest,
    ScoredLink,
    SettledFetch,
    Step,
    Wait,
)
from focused.crawl.stop_conditions import RunTimer, StopConditions
from focused.crawl.traps.trap_filter import TrapFilter
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.host import HostPace
from focused.frontier.interface import Frontier, NotYet, Offer
from focused.frontier.priorities import unproductive_after
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Fetched, Outcome
from focused.web.scope_filter import compile_parameter_names
from focused.web.urls import host_of, normalise, robots_url

logger = logging.getLogger(__name__)

# Links settled without a fetch (robots, full hosts) in one call of next(): a bound on its time.
_MAX_EXCLUSIONS_PER_CALL = 200


class Crawl:
    """One crawl of one topic over one folder; one owner, no threads, no clock."""

    def __init__(
        self,
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
    ) -> None:
        """``follow_links`` False: a driver pushes the links it wants with :meth:`enqueue_url`.

        ``parse`` stands in for the parser where pages are parsed already;
        ``keep_links`` False leaves the link rows out of the archive. ``stages``
        is told where the time goes.
        """
        self.topic = topic
        office = (
            classifier
            if isinstance(classifier, SwappableClassifier)
            else SwappableClassifier(classifier)
        )
        tables = store.tables
        save_link_order(tables, link_order_of(policy))
        self.counters = Counters.from_state(tables.get_meta("counters"))
        self.frontier: Frontier = DiskFrontier(
            tables,
            worth_waiting_for=policy.worth_waiting_for,
            exploration=policy.exploration,
            limits=host_limits(topic.scope),
            address_delay_of=topic.politeness.delay_of,
        )
        self.archive = Archive(store, warc=_open_warc_files(topic, policy, store), links=keep_links)
        self._store = store
        self._stages = stages or StageTimes()
        self._leases = Leases()
        self._being_parsed: set[int] = set()
        self._host_policy = HostPolicy(
            topic, self.counters, tables, self.frontier, self._leases.has_url
        )
        self.mirrors = self._host_policy.mirrors.pairs
        self.traps = TrapFilter(
            tables, on=topic.scope.traps, keeps=compile_parameter_names(topic.scope.keep_parameters)
        )
        nofollow = topic.politeness.nofollow
        admission = LinkFilter(
            topic.scope, self.counters, self._host_policy, self.traps, nofollow=nofollow
        )
        self._enqueuer = LinkEnqueuer(admission, policy.scorer, policy.ordering, self.frontier)
        self._response_parser = ResponseParser(
            topic,
            office,
            policy.scorer,
            self._stages,
            parse,
            record_builder=lambda: self.archive.record_builder,
        )
        self._responses = ResponseProcessor(
            topic,
            self._response_parser,
            tables,
            ArchiveWriter(self.archive, self.counters, office, policy),
            self.counters,
            self._enqueuer,
            training_urls=training_urls,
            follow_links=follow_links,
            stages=self._stages,
        )
        self._follow_links = follow_links
        self._patience_s = topic.politeness.patience_s if policy.patient else 0.0
        self._training = OnlineTraining(policy, self.frontier, tables)
        self._listeners = SettledPageListeners(
            self.frontier, self._host_policy, self.traps, self._training, policy.reprioritiser
        )
        self._model_history = ModelHistory(office, self._training, tables)
        self.direct_requests = DirectRequests(self.frontier.hosts, self._host_policy, self._leases)
        self.robots = RobotsFetcher(
            self.frontier,
            self._host_policy,
            self._leases,
            self.direct_requests,
            self._queue_sitemap,
            self.archive.record,
        )
        self._running = RunTimer(self.counters)
        self._stop_conditions = StopConditions(
            topic.budget, self.frontier, self.counters, self._leases, self.robots, self._running
        )
        self._host_policy.resume(self.frontier.interrupted)

    @property
    def last_activity_at(self) -> float:
        """When the crawl asked for or settled something last, by its driver's clock; 0.0: never."""
        asked_at = [at for _, at in self.frontier.interrupted]
        return max(self.archive.last_activity_at, *asked_at, 0.0)

    @property
    def in_flight(self) -> int:
        """How many leases are not settled."""
        return len(self._leases)

    def seed(self, urls: Iterable[str], now: float) -> int:
        """Queue the seeds, best of all; return how many were new."""
        seeds = [url for url in map(normalise, urls) if url is not None]
        self.traps.choose(seeds)
        new = sum(self.enqueue_url(url, 1.0, now) for url in seeds)
        self._commit(now)
        return new

    def enqueue_url(
        self,
        url: str,
        score: float,
        now: float,
        *,
        key: bytes | None = None,
        parent: SettledFetch | None = None,
        found: ScoredLink | None = None,
        payload: str | None = None,
    ) -> bool:
        """Queue one normalised URL by the scope's leave; True when it is new.

        ``key`` tells apart requests that share a URL; ``found`` is the link's
        own prediction on ``parent``'s page.
        """
        is_new = self._enqueuer.offer(url, score, now, key, parent, found, payload)
        if payload is not None:
            self._host_policy.link_came(host_of(url), now)
        return is_new

    def refuses(self, url: str, parent: SettledFetch | None) -> str | None:
        """Why :meth:`enqueue_url` would refuse a URL, None when it would not; a refusal counts."""
        return self._enqueuer.refuses(url, parent)

    def refuse_suspended(
        self, concerns: Callable[[str], bool], now: float
    ) -> Sequence[RefusedRequest]:
        """Settle the driver's own requests that would wait hours for a host that only fails.

        Those at hosts that were suspended since the last call, where ``concerns`` says so
        of their payload.
        """
        refused = [
            RefusedRequest(link, trouble)
            for name, trouble in self._host_policy.take_newly_suspended().items()
            for link in self.frontier.waiting(self.frontier.hosts.get(name))
            if link.payload is not None and concerns(link.payload)
        ]
        for each in refused:
            self.frontier.drop(each.link, now)
            settled = self._responses.exclude(each.link, each.failure, now, has_row=True)
            self._listeners.on_refused(settled, now)
        if refused:
            self._commit(now)
        return refused

    def next(self, now: float) -> Step:
        """Say what to do now: fetch, wait, or stop."""
        if self._running.begin(now):
            self.frontier.hosts.restore_address_delays(now)
            self._model_history.begin(self.counters.settled, now)
        with self._stages(Stage.CHOOSING):
            step = self._next(now)
        if isinstance(step, Fetch | RefusedRequest) or step == Wait(now):
            # After a kill it must be known who was asked, and when, and which links were refused.
            self._commit_frontier()
        return step

    def _next(self, now: float) -> Step:
        limit = self._stop_conditions.limit(now)
        if limit is not None:
            return self._stop_conditions.end(limit)
        hop = self.robots.take_due(now)
        if hop is not None:
            return self._leases.open(hop)
        for _ in range(_MAX_EXCLUSIONS_PER_CALL):
            offer = self._training.offer(now, self._patience_s)
            if offer is None:
                return self._stop_conditions.when_no_link_left()
            if isinstance(offer, NotYet):
                return self._stop_conditions.wait(offer.until, now)
            step = self._fetch(offer, now)
            if step is not None:
                return step
        return Wait(now)

    def reader(self) -> PageParser:
        """What reads pages as this crawl does, by the classifier that is in office now."""
        return self._response_parser.reader()

    def may_parse(self, lease_id: int, outcome: Outcome) -> bool:
        """Whether the answer is to be read for a page, here or ahead of :meth:`settle`."""
        lease = self._leases.of(lease_id)
        if (
            lease is None
            or lease.purpose is not FetchPurpose.PAGE
            or not isinstance(outcome, Fetched)
        ):
            return False
        return self._response_parser.refusal(lease.offer.link, outcome) is None

    def is_page(self, fetched: Fetched) -> bool:
        """Whether an answer that is not of the frontier could be read for a page."""
        return self._response_parser.refusal(None, fetched) is None

    def begin_parsing(self, lease_id: int) -> None:
        """The lease's page may take long to parse: if the process dies meanwhile, it was a try."""
        lease = self._leases.of(lease_id)
        if lease is not None and lease_id not in self._being_parsed:
            self._being_parsed.add(lease_id)
            self.frontier.save_tries(lease.offer, lease.offer.link.tries + 1)
            self._commit_frontier()

    def settle(
        self,
        lease_id: int,
        outcome: Outcome,
        now: float,
        reading: ParsedPage | Failed | None = None,
    ) -> SettledFetch | None:
        """Take in what a fetch brought; None when it was a robots.txt.

        ``reading`` is what :meth:`reader` made of the outcome; None: it is read here.
        """
        lease = self._leases.close(lease_id)
        self._being_parsed.discard(lease_id)
        if lease.purpose is FetchPurpose.ROBOTS:
            self.robots.settle(lease, outcome, now)
            self._commit(now)
            return None
        settled = self._settle_page(lease.offer, outcome, now, reading)
        self._commit(now)
        return settled

    def appoint(self, classifier: TopicClassifier, name: str, now: float) -> None:
        """Let another classifier take over between two pages; ``name`` tells it from others.

        What waits is scored by it when its turn comes.
        """
        self._model_history.appoint(classifier, name, self.counters.settled, now)
        self._commit(now)

    def put_back(self, lease_id: int, now: float) -> None:
        """The lease was not asked for: its link stays queued as it was."""
        lease = self._leases.close(lease_id)
        if lease.direct_request is not None:
            self.direct_requests.finish(lease.direct_request, None, now)
        if lease_id in self._being_parsed:
            self._being_parsed.discard(lease_id)
            self.frontier.save_tries(lease.offer, lease.offer.link.tries)
        self.frontier.put_back(lease.offer, lease.offer.host.pace, now)

    def record_robots(self, url: str, outcome: Outcome, now: float) -> None:
        """Take in a robots.txt that a driver fetched for a URL not of the frontier."""
        self.robots.learn(url, outcome, now)
        self._commit(now)

    def due_at(self, url: str) -> float:
        """When the URL's host may be asked again, in seconds of ``now``'s clock."""
        return self.frontier.hosts.get(host_of(url)).pace.due_at

    def close(self, now: float) -> None:
        """Put back what is under way, keep all, write the Parquet files."""
        for lease_id in self._leases.numbers():
            self.put_back(lease_id, now)
        self._commit(now)
        if self.topic.output.parquet:
            from focused.archive.parquet import (
                write_parquet_files,  # slow to import, and needed here alone
            )

            write_parquet_files(self._store.tables, self.topic.output.folder)
        self.archive.close()
        self._store.close()

    def is_finished(self, now: float) -> bool:
        """Whether nothing is left to do: no fetch under way, and no link or no budget left."""
        return self._stop_conditions.is_finished(now)

    def active_s(self, now: float) -> float:
        """Seconds that the crawl has run, all sessions together."""
        return self._running.so_far_s(now)

    def is_open(self, lease_id: int) -> bool:
        """Whether the lease waits to be settled."""
        return lease_id in self._leases

    def may_connect(self, lease_id: object, url: str, address: str, now: float) -> bool:
        """Whether the address where the host of ``url`` was found just now may be asked.

        A lease that may not is to be put back.
        """
        lease = self._leases.of(lease_id) if isinstance(lease_id, int) else None
        return self.direct_requests.may_connect(lease, url, address, now)

    def sync(self) -> None:
        """Force what is committed to the disk; the driver calls it about once a second."""
        self._store.sync()

    def _fetch(self, offer: Offer, now: float) -> Fetch | RefusedRequest | None:
        """Lease what the offer needs first.

        None when its link was settled without a fetch, Refused when the driver has to hear of it.
        """
        link, host = offer.link, offer.host
        refusal = self._host_policy.refusal(host, link) or self.traps.refusal_when_due(link)
        if refusal is None and link.tries >= self.topic.politeness.max_tries:
            # Links that fail leave the queue before: crawls died while this one's page was parsed.
            logger.error("%s is given up: crawls ended while its page was parsed", link.url)
            refusal = FailureKind.INTERNAL_ERROR
        if refusal is None and self._host_policy.needs_robots(host, link.url, now):
            return self._leases.open(Lease(offer, FetchPurpose.ROBOTS, robots_url(link.url)))
        # A driver's own request is refused by the driver, which tells whoever waits for it.
        if refusal is None and (link.payload or self._host_policy.robots_allows(host, link.url)):
            return self._leases.open(Lease(offer, FetchPurpose.PAGE, link.url))
        refusal = refusal or FailureKind.ROBOTS
        has_row = refusal is FailureKind.INTERNAL_ERROR or self._host_policy.has_row(host, refusal)
        excluded = self._responses.exclude(link, refusal, now, has_row=has_row)
        self._listeners.on_excluded(offer, excluded, now)
        self._keep_counters(now)
        return None if link.payload is None else RefusedRequest(link, refusal)

    def _settle_page(
        self, offer: Offer, outcome: Outcome, now: float, reading: ParsedPage | Failed | None
    ) -> SettledFetch:
        settled = self._responses.settle(offer.link, outcome, now, reading)
        self._host_policy.answered(offer.link.url, outcome)
        pace = self._host_policy.next_pace(offer.host, outcome, now)
        if settled.will_retry:
            self.frontier.retry(offer, pace, now)
            return settled
        with self._stages(Stage.LEARNING):
            self._listeners.on_page(offer, outcome, settled, pace, now)
        return settled

    def _queue_sitemap(self, url: str, now: float) -> None:
        if self._follow_links:
            self.enqueue_url(url, 1.0, now)

    def _commit(self, now: float) -> None:
        self._keep_counters(now)
        self._commit_frontier()

    def _keep_counters(self, now: float) -> None:
        self._running.keep(now)
        self._store.tables.put_meta("counters", self.counters)

    def _commit_frontier(self) -> None:
        with self._stages(Stage.COMMITTING):
            self.frontier.save()
            self._store.commit()


def _open_warc_files(topic: Topic, policy: Policy, store: StateStore) -> WarcFiles | None:
    output = topic.output
    if output.warc == "off":
        return None
    return WarcFiles(
        output.folder,
        store.tables,
        output.warc,
        warcinfo_fields(topic, policy.name),
        max_bytes=output.max_warc_bytes,
    )


class SettledPageListeners:
    """Tells all who learn from a settled link, in their order; the caller commits."""

    def __init__(
        self,
        frontier: Frontier,
        host_policy: HostPolicy,
        traps: TrapFilter,
        training: OnlineTraining,
        reprioritiser: LinkReprioritiser | None,
    ) -> None:
        self._frontier = frontier
        self._host_policy = host_policy
        self._traps = traps
        self._training = training
        self._steering = reprioritiser

    def on_excluded(self, offer: Offer, settled: SettledFetch, now: float) -> None:
        """The offered link was settled without a fetch."""
        self._frontier.settle(offer, offer.host.pace, now)
        if settled.failure is not FailureKind.MIRROR:
            self._host_policy.mirrors.failed(offer.link.url)
        self._requeue_released(now)
        self._reprioritise(settled, now)

    def on_refused(self, settled: SettledFetch, now: float) -> None:
        """A link that waited was taken out of its queue and settled without a fetch."""
        self._host_policy.mirrors.failed(settled.link.url)
        self._requeue_released(now)
        self._reprioritise(settled, now)

    def on_page(
        self, offer: Offer, outcome: Outcome, settled: SettledFetch, pace: HostPace, now: float
    ) -> None:
        """The offered link was asked for, and is not tried again."""
        if settled.outcome == "fetched":
            self._host_policy.fetched(offer.host, offer.link.url, settled)
        elif settled.outcome != "feed":
            self._host_policy.mirrors.failed(offer.link.url)
        self._traps.settled(offer.link, outcome, settled)
        offer.host.asked += 1
        if settled.outcome != "redirected" and settled.duplicate_of != offer.link.url:
            offer.host.unproductive = unproductive_after(offer.host.unproductive, settled.brought)
        self._frontier.settle(offer, pace, now)
        self._requeue_released(now)
        self._training.learn(settled)
        if settled.outcome == "fetched":
            self._training.refresh(offer.host, now)
        self._reprioritise(settled, now)

    def _requeue_released(self, now: float) -> None:
        for link in self._host_policy.mirrors.take_released():
            self._frontier.push(link, now)

    def _reprioritise(self, settled: SettledFetch, now: float) -> None:
        if self._steering is not None:
            self._frontier.reprioritise(self._steering.after(settled), now)
