"""The crawl loop: seed, choose the next fetch, settle what came.

The next link is that of the host which :mod:`focused.frontier.host_scheduler` picks, the best in
its queue (:mod:`focused.frontier.disk_frontier`) after :mod:`focused.crawl.online_training` has
scored it again. What came goes to the handler of its purpose
(:meth:`focused.crawl.purposes.PageRequests.settle`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.crawl_stats import Stage
from focused.crawl.features import CrawlCore, FeatureParts
from focused.crawl.leases import Lease
from focused.crawl.listeners import Listeners, SettledEvent
from focused.crawl.online_training import ModelHistory, OnlineTraining
from focused.crawl.page_parser import EarlyResult
from focused.crawl.policy import load_link_order
from focused.crawl.purposes import RequestHandler
from focused.crawl.steps import (
    ROBOTS,
    Fetch,
    RefusedRequest,
    ScoredLink,
    SettledFetch,
    Step,
    Wait,
)
from focused.crawl.stop_conditions import StopConditions
from focused.crawl.traps.trap_filter import TrapFilter
from focused.frontier.disk_frontier import NotYet, Offer
from focused.frontier.queued_link import QueuedLink
from focused.web.page import Failed, Fetched, Outcome
from focused.web.robots.robots_rules import RobotsFile, is_long_robots_file
from focused.web.urls import host_of, normalize_url

if TYPE_CHECKING:
    from focused.crawl.frontier_editor import FrontierEditor

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Bound the time of one call of next().
_MAX_EXCLUSIONS_PER_CALL = 200
_MAX_REQUEUED_PER_CALL = 50


class Crawl:
    """One crawl of one topic: single owner, no threads, no clock.

    :func:`focused.crawl.build.build_crawl` wires one.
    """

    def __init__(
        self,
        core: CrawlCore,
        training: OnlineTraining,
        models: ModelHistory,
        stop_conditions: StopConditions,
        listeners: Listeners,
        handlers: Mapping[str, RequestHandler],
        features: FeatureParts,
    ) -> None:
        """``handlers`` handle requests by their purpose."""
        state = core.state
        self.topic = core.topic
        self.counters = state.counters
        self.frontier = state.frontier
        self.archive = state.archive
        self.hosts = core.hosts
        self.enqueuer = core.enqueuer
        self.parser = core.responses.parser
        self.training = training
        self.stop_conditions = stop_conditions
        self._state = state
        self._leases = state.leases
        self._responses = core.responses
        self._models = models
        self._handlers = handlers
        self._features = features
        self._pacer = features.pacer
        self._listeners = listeners
        self._being_parsed: set[int] = set()
        self._has_refused = False
        self.hosts.policy.resume(self.frontier.interrupted)

    @property
    def traps(self) -> TrapFilter:
        """The trap filter, with its statistics."""
        return self.enqueuer.link_filter.traps

    @property
    def mirrors(self) -> Mapping[str, str]:
        """The preferred URL prefix of each mirror."""
        return self.enqueuer.link_filter.mirrors.pairs

    def feature(self, part: type[T]) -> T | None:
        """Return the part of that class that a feature offers to drivers, None if it is off."""
        return next((each for each in self._features.offered if isinstance(each, part)), None)

    def feature_statistics(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tables of the features' statistics by key."""
        return {key: table() for key, table in self._features.statistics.items()}

    @property
    def last_activity_at(self) -> float:
        """When the crawl last requested or settled anything, by the driver's clock; 0.0: never."""
        asked_at = [at for _, at in self.frontier.interrupted]
        return max(self.archive.last_activity_at, *asked_at, 0.0)

    @property
    def in_flight(self) -> int:
        """The number of open leases."""
        return len(self._leases)

    @property
    def in_flight_pages(self) -> int:
        """The number of open leases of pages."""
        return self._leases.pages

    def seed(self, urls: Iterable[str], now: float) -> int:
        """Queue the seeds at the highest score; return how many are new."""
        seeds = [url for url in map(normalize_url, urls) if url is not None]
        self.traps.choose(seeds)
        self._responses.trust_sites(seeds)
        new = sum(self.enqueue_url(url, 1.0, now) for url in seeds)
        self._state.commit(now)
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
        """Queue one normalised URL if the link filter accepts it; True when it is new.

        ``key`` distinguishes requests of one URL; ``found`` is the link as scored on ``parent``.
        """
        is_new = self.enqueuer.offer(url, score, now, key, parent, found, payload)
        if payload is not None:
            self.hosts.policy.link_came(host_of(url), now)
        return is_new

    def editor(self, now: float) -> FrontierEditor:
        """Return an editor of this crawl's queued links; links in flight stay as they are."""
        from focused.crawl.frontier_editor import FrontierEditor  # most crawls are not edited

        return FrontierEditor(
            self.frontier,
            load_link_order(self._state.store.tables),
            self.topic.scope,
            self.hosts.policy.dead_hosts,
            lambda: self._state.commit(now),
            now,
        )

    def receive(self, links: Sequence[QueuedLink], now: float) -> int:
        """Queue links that other partitions found, and commit; return how many were accepted."""
        accepted = self.enqueuer.receive(links, now)
        self._state.commit(now)
        return accepted

    def refuse_suspended(
        self, concerns: Callable[[str], bool], now: float
    ) -> Sequence[RefusedRequest]:
        """Settle the driver's own requests at hosts that were suspended since the last call.

        Such a request would wait for hours. ``concerns`` selects requests by their payload.
        """
        refused = [
            RefusedRequest(link, failure)
            for name, failure in self.hosts.policy.take_newly_suspended().items()
            for link in self.frontier.waiting(self.frontier.hosts.get(name))
            if link.payload is not None and concerns(link.payload)
        ]
        for each in refused:
            self.frontier.drop(each.link, now)
            settled = self._responses.exclude(each.link, each.failure, now, has_row=True)
            self._listeners.notify(SettledEvent(settled, now))
        if refused:
            self._state.commit(now)
        return refused

    def next(self, now: float) -> Step:
        """Return what to do now: fetch, wait or stop."""
        if self._state.timer.begin(now):
            self.frontier.hosts.restore_address_delays(now)
            self._models.begin(self.counters.settled, now)
        with self._state.stages(Stage.SELECTING):
            step = self._next(now)
        # After a kill the state tells which requests were sent and which links refused.
        if self._has_refused:
            self._has_refused = False
            self._state.commit(now)
        elif isinstance(step, Fetch) or step == Wait(now):
            self._state.commit_frontier()
        return step

    def _next(self, now: float) -> Step:
        limit = self.stop_conditions.limit(now)
        if limit is not None:
            return self.stop_conditions.end(limit)
        redirected = self.hosts.robots.take_due(now)
        if redirected is not None:
            return self._leases.open(redirected)
        may_fetch_at = self._pacer.prepare(now, self.stop_conditions.is_harvest_over)
        if may_fetch_at > now:
            return Wait(may_fetch_at)
        requeued = 0
        for attempt in range(_MAX_EXCLUSIONS_PER_CALL):
            offer = self.training.offer(now, may_rescore_host=attempt == 0)
            if offer is None:
                return self.stop_conditions.when_no_link_left(now)
            if isinstance(offer, NotYet):
                return self.stop_conditions.wait(offer.until, now)
            lease = self._prepare(offer, now)
            if isinstance(lease, RefusedRequest):
                return lease
            if lease is None:
                continue
            if requeued < _MAX_REQUEUED_PER_CALL:
                # After the handler, which refuses many links whose score no longer matters.
                rescored = self.training.rescored(offer, now)
                if rescored is None:
                    requeued += 1
                    continue
                lease = replace(lease, offer=rescored)
            if lease.purpose != ROBOTS:
                self._pacer.count_download(now)
            return self._leases.open(lease)
        return Wait(now)

    def may_parse(self, lease_id: int, outcome: Outcome) -> bool:
        """Whether the response is to be parsed as a page."""
        lease = self._leases.of(lease_id)
        if lease is None or lease.purpose == ROBOTS or not isinstance(outcome, Fetched):
            return False
        return self.parser.refusal(lease.offer.link, outcome) is None

    def is_long_robots_file(self, lease_id: int, outcome: Outcome) -> bool:
        """Whether the response is a robots.txt to parse in a parser process."""
        lease = self._leases.of(lease_id)
        is_for_robots = lease is not None and lease.purpose == ROBOTS
        return is_for_robots and is_long_robots_file(outcome)

    def page_in_flight(self, lease_id: int) -> QueuedLink | None:
        """Return the link whose page a lease fetches, None for other leases."""
        lease = self._leases.of(lease_id)
        return lease.offer.link if lease is not None and lease.is_page else None

    def begin_parsing(self, lease_id: int) -> None:
        """Count a try before a page is parsed that may bring the process down."""
        lease = self._leases.of(lease_id)
        if lease is not None and lease.is_page and lease_id not in self._being_parsed:
            self._being_parsed.add(lease_id)
            self.frontier.save_tries(lease.offer, lease.offer.link.tries + 1)
            self._state.commit_frontier()

    def settle(
        self,
        lease_id: int,
        outcome: Outcome,
        now: float,
        parsed: EarlyResult = None,
    ) -> SettledFetch | None:
        """Process the outcome of a fetch; return None unless it was for a page.

        ``parsed`` is a result of :attr:`parser`, or a robots.txt that was
        parsed already; None parses here.
        """
        lease = self._leases.close(lease_id)
        self._being_parsed.discard(lease_id)
        if lease.purpose != ROBOTS and isinstance(outcome, Fetched):
            self._pacer.count_bytes(len(outcome.body), now)
        settled = self._handlers[lease.purpose].settle(lease, outcome, now, parsed)
        self._state.commit(now)
        return settled

    def swap_model(self, classifier: TopicClassifier, name: str, now: float) -> None:
        """Replace the classifier between two pages; ``name`` identifies the new one.

        Queued links are scored by it when they are offered next.
        """
        self._models.swap_model(classifier, name, self.counters.settled, now)
        self._state.commit(now)

    def put_back(self, lease_id: int, now: float) -> None:
        """Close a lease whose request was not sent; its link stays queued."""
        lease = self._leases.close(lease_id)
        if lease.direct_request is not None:
            self.hosts.direct_requests.finish(lease.direct_request, None, now)
        if lease_id in self._being_parsed:
            self._being_parsed.discard(lease_id)
            self.frontier.save_tries(lease.offer, lease.offer.link.tries)
        self.frontier.put_back(lease.offer, lease.offer.host.pace, now)

    def record_robots(
        self, url: str, outcome: Outcome, now: float, parsed: RobotsFile | Failed | None = None
    ) -> None:
        """Store a robots.txt that the driver fetched for a URL outside the frontier."""
        self.hosts.robots.learn(url, outcome, now, parsed)
        self._state.commit(now)

    def stop(self, now: float) -> None:
        """Put back open leases, commit, and flush to the disk."""
        for lease_id in self._leases.numbers():
            self.put_back(lease_id, now)
        self._state.commit(now)
        self.sync()

    def abandon(self) -> None:
        """Close without writing anything more, as if the process had died."""
        self.archive.close()
        self._state.store.abandon()

    def close(self, now: float) -> None:
        """Put back open leases, commit, and write the Parquet files."""
        self.stop(now)
        if self.topic.output.parquet:
            from focused.archive.parquet import write_parquet_files  # slow to import

            write_parquet_files(self._state.store.tables, self.topic.output.folder)
        self.archive.close()
        self._state.store.close()

    def is_finished(self, now: float) -> bool:
        """Whether no fetch is in flight and no link or no budget is left."""
        return self.stop_conditions.is_finished(now)

    def active_s(self, now: float) -> float:
        """Return the running time of all sessions, in seconds."""
        return self._state.timer.so_far_s(now)

    def is_open(self, lease_id: int) -> bool:
        """Whether the lease is still to be settled."""
        return lease_id in self._leases

    def may_connect(self, lease_id: object, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent to the address that the host of ``url`` resolved to.

        If not, put its lease back.
        """
        lease = self._leases.of(lease_id) if isinstance(lease_id, int) else None
        return self.hosts.direct_requests.may_connect(lease, url, address, now)

    def commit(self, now: float) -> None:
        """Commit what the driver wrote into the crawl's tables."""
        self._state.commit(now)

    def sync(self) -> None:
        """Flush commits to the disk; the driver calls it about once a second."""
        self._state.store.sync()

    def _prepare(self, offer: Offer, now: float) -> Lease | RefusedRequest | None:
        """Return the lease of what the offered link needs first; see :class:`RequestHandler`."""
        handler = self._handlers.get(offer.link.purpose)
        if handler is None:
            # The feature that queued it was switched off since.
            logger.info("%s is dropped: nothing handles %s", offer.link.url, offer.link.purpose)
            self.frontier.settle(offer, offer.host.pace, now)
            self.frontier.forget(offer.host.name, offer.link.key)
            return None
        lease = handler.prepare(offer, now)
        self._has_refused |= not isinstance(lease, Lease)
        return lease
