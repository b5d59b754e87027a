"""The crank of a crawl: seed, next, settle. See the package docstring."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from focused.archive import Archive
from focused.archive_warc import WarcFiles, about_crawl
from focused.crawl.admission import Admission
from focused.crawl.aftermath import Aftermath
from focused.crawl.apprenticeship import Apprenticeship
from focused.crawl.counters import Counters
from focused.crawl.discovery import Discovery
from focused.crawl.ending import Ending
from focused.crawl.host_care import HostCare, host_limits
from focused.crawl.intake import Intake
from focused.crawl.leases import Lease, Leases
from focused.crawl.order import keep_order, order_of
from focused.crawl.page_rows import PageRows
from focused.crawl.policy import Policy
from focused.crawl.reading import Parse, Reader, Reading
from focused.crawl.robots_errands import RobotsErrands
from focused.crawl.running_time import RunningTime
from focused.crawl.settling import Settling
from focused.crawl.stages import Stage, Stages
from focused.crawl.steps import Fetch, Purpose, Refused, ScoredLink, Settled, Step, Wait
from focused.crawl.tenure import Tenure
from focused.crawl.traps import Traps
from focused.crawl.visits import Visits
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.frontier import Frontier, NotYet, Offer
from focused.frontier.store import StateStore
from focused.learning.judge_in_office import JudgeInOffice
from focused.learning.protocols import TopicJudge
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Fetched, Outcome
from focused.web.parameters import parameters_in
from focused.web.url import host_of, normalise, robots_url

logger = logging.getLogger(__name__)

# Links settled without a fetch (robots, full hosts) in one call of next(): a bound on its time.
_EXCLUSIONS_PER_CALL = 200


class Crawl:
    """One crawl of one topic over one folder; one owner, no threads, no clock."""

    def __init__(
        self,
        topic: Topic,
        judge: TopicJudge,
        policy: Policy,
        store: StateStore,
        *,
        training_urls: frozenset[str] = frozenset(),
        follow_links: bool = True,
        parse: Parse | None = None,
        keep_links: bool = True,
        stages: Stages | None = None,
    ) -> None:
        """``follow_links`` False: a driver pushes the links it wants with :meth:`offer_link`.

        ``parse`` stands in for the parser where pages are parsed already;
        ``keep_links`` False leaves the link rows out of the archive. ``stages``
        is told where the time goes.
        """
        self.topic = topic
        office = judge if isinstance(judge, JudgeInOffice) else JudgeInOffice(judge)
        tables = store.tables
        keep_order(tables, order_of(policy))
        self.counters = Counters.from_state(tables.get_meta("counters"))
        self.frontier: Frontier = DiskFrontier(
            tables,
            worth_waiting_for=policy.worth_waiting_for,
            exploration=policy.exploration,
            limits=host_limits(topic.scope),
            address_delay_of=topic.politeness.delay_of,
        )
        self.archive = Archive(store, warc=_warc_files(topic, policy, store), links=keep_links)
        self._store = store
        self._stages = stages or Stages()
        self._leases = Leases()
        self._being_parsed: set[int] = set()
        self._care = HostCare(topic, self.counters, tables, self.frontier, self._leases.has_url)
        self.mirrors = self._care.mirrors.pairs
        self.traps = Traps(
            tables, on=topic.scope.traps, keeps=parameters_in(topic.scope.keep_parameters)
        )
        nofollow = topic.politeness.nofollow
        admission = Admission(topic.scope, self.counters, self._care, self.traps, nofollow=nofollow)
        self._discovery = Discovery(admission, policy.scorer, policy.ordering, self.frontier)
        self._intake = Intake(
            topic,
            office,
            policy.scorer,
            self._stages,
            parse,
            capture_writer=lambda: self.archive.capture_writer,
        )
        self._settling = Settling(
            topic,
            self._intake,
            tables,
            PageRows(self.archive, self.counters, office, policy),
            self.counters,
            self._discovery,
            training_urls=training_urls,
            follow_links=follow_links,
            stages=self._stages,
        )
        self._follow_links = follow_links
        self._patience_s = topic.politeness.patience_s if policy.patient else 0.0
        self._apprenticeship = Apprenticeship(policy, self.frontier, tables)
        self._aftermath = Aftermath(
            self.frontier, self._care, self.traps, self._apprenticeship, policy.steering
        )
        self._tenure = Tenure(office, self._apprenticeship, tables)
        self.visits = Visits(self.frontier.hosts, self._care, self._leases)
        self.robots = RobotsErrands(
            self.frontier,
            self._care,
            self._leases,
            self.visits,
            self._queue_sitemap,
            self.archive.record,
        )
        self._running = RunningTime(self.counters)
        self._ending = Ending(
            topic.budget, self.frontier, self.counters, self._leases, self.robots, self._running
        )
        self._care.resume(self.frontier.interrupted)

    @property
    def last_at(self) -> float:
        """When the crawl asked for or settled something last, by its driver's clock; 0.0: never."""
        asked_at = [at for _, at in self.frontier.interrupted]
        return max(self.archive.last_at, *asked_at, 0.0)

    @property
    def under_way(self) -> int:
        """How many leases are not settled."""
        return len(self._leases)

    def seed(self, urls: Iterable[str], now: float) -> int:
        """Queue the seeds, best of all; return how many were new."""
        seeds = [url for url in map(normalise, urls) if url is not None]
        self.traps.choose(seeds)
        new = sum(self.offer_link(url, 1.0, now) for url in seeds)
        self._commit(now)
        return new

    def offer_link(
        self,
        url: str,
        score: float,
        now: float,
        *,
        key: bytes | None = None,
        parent: Settled | None = None,
        found: ScoredLink | None = None,
        payload: str | None = None,
    ) -> bool:
        """Queue one normalised URL by the scope's leave; True when it is new.

        ``key`` tells apart requests that share a URL; ``found`` is the link's
        own prediction on ``parent``'s page.
        """
        is_new = self._discovery.offer(url, score, now, key, parent, found, payload)
        if payload is not None:
            self._care.link_came(host_of(url), now)
        return is_new

    def refuses(self, url: str, parent: Settled | None) -> str | None:
        """Why :meth:`offer_link` would refuse a URL, None when it would not; a refusal counts."""
        return self._discovery.refuses(url, parent)

    def refuse_suspended(self, concerns: Callable[[str], bool], now: float) -> Sequence[Refused]:
        """Settle the driver's own requests that would wait hours for a host that only fails.

        Those at hosts that were suspended since the last call, where ``concerns`` says so
        of their payload.
        """
        refused = [
            Refused(link, trouble)
            for name, trouble in self._care.take_newly_suspended().items()
            for link in self.frontier.waiting(self.frontier.hosts.get(name))
            if link.payload is not None and concerns(link.payload)
        ]
        for each in refused:
            self.frontier.drop(each.link, now)
            settled = self._settling.exclude(each.link, each.failure, now, has_row=True)
            self._aftermath.of_refusal(settled, now)
        if refused:
            self._commit(now)
        return refused

    def next(self, now: float) -> Step:
        """Say what to do now: fetch, wait, or stop."""
        if self._running.begin(now):
            self.frontier.hosts.rest_addresses(now)
            self._tenure.begin(self.counters.settled, now)
        with self._stages(Stage.CHOOSING):
            step = self._next(now)
        if isinstance(step, Fetch | Refused) or step == Wait(now):
            # After a kill it must be known who was asked, and when, and which links were refused.
            self._commit_frontier()
        return step

    def _next(self, now: float) -> Step:
        limit = self._ending.limit(now)
        if limit is not None:
            return self._ending.end(limit)
        hop = self.robots.take_due(now)
        if hop is not None:
            return self._leases.open(hop)
        for _ in range(_EXCLUSIONS_PER_CALL):
            offer = self._apprenticeship.offer(now, self._patience_s)
            if offer is None:
                return self._ending.no_link_left()
            if isinstance(offer, NotYet):
                return self._ending.wait(offer.until, now)
            step = self._fetch(offer, now)
            if step is not None:
                return step
        return Wait(now)

    def reader(self) -> Reader:
        """What reads pages as this crawl does, by the judge that is in office now."""
        return self._intake.reader()

    def may_read(self, lease_id: int, outcome: Outcome) -> bool:
        """Whether the answer is to be read for a page, here or ahead of :meth:`settle`."""
        lease = self._leases.of(lease_id)
        if lease is None or lease.purpose is not Purpose.PAGE or not isinstance(outcome, Fetched):
            return False
        return self._intake.refusal(lease.offer.link, outcome) is None

    def is_page(self, fetched: Fetched) -> bool:
        """Whether an answer that is not of the frontier could be read for a page."""
        return self._intake.refusal(None, fetched) is None

    def begin_parsing(self, lease_id: int) -> None:
        """The lease's page may take long to parse: if the process dies meanwhile, it was a try."""
        lease = self._leases.of(lease_id)
        if lease is not None and lease_id not in self._being_parsed:
            self._being_parsed.add(lease_id)
            self.frontier.keep_tries(lease.offer, lease.offer.link.tries + 1)
            self._commit_frontier()

    def settle(
        self,
        lease_id: int,
        outcome: Outcome,
        now: float,
        reading: Reading | Failed | None = None,
    ) -> Settled | None:
        """Take in what a fetch brought; None when it was a robots.txt.

        ``reading`` is what :meth:`reader` made of the outcome; None: it is read here.
        """
        lease = self._leases.close(lease_id)
        self._being_parsed.discard(lease_id)
        if lease.purpose is Purpose.ROBOTS:
            self.robots.settle(lease, outcome, now)
            self._commit(now)
            return None
        settled = self._settle_page(lease.offer, outcome, now, reading)
        self._commit(now)
        return settled

    def appoint(self, judge: TopicJudge, name: str, now: float) -> None:
        """Let another judge take over between two pages; ``name`` tells it from others.

        What waits is scored by it when its turn comes.
        """
        self._tenure.appoint(judge, name, self.counters.settled, now)
        self._commit(now)

    def put_back(self, lease_id: int, now: float) -> None:
        """The lease was not asked for: its link stays queued as it was."""
        lease = self._leases.close(lease_id)
        if lease.visit is not None:
            self.visits.leave(lease.visit, None, now)
        if lease_id in self._being_parsed:
            self._being_parsed.discard(lease_id)
            self.frontier.keep_tries(lease.offer, lease.offer.link.tries)
        self.frontier.put_back(lease.offer, lease.offer.host.pace, now)

    def learn_robots(self, url: str, outcome: Outcome, now: float) -> None:
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
            from focused.archive_parquet import export  # slow to import, and needed here alone

            export(self._store.tables, self.topic.output.folder)
        self.archive.close()
        self._store.close()

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to do: no fetch under way, and no link or no budget left."""
        return self._ending.is_over(now)

    def active_s(self, now: float) -> float:
        """Seconds that the crawl has run, all sessions together."""
        return self._running.so_far_s(now)

    def is_open(self, lease_id: int) -> bool:
        """Whether the lease waits to be settled."""
        return lease_id in self._leases

    def may_leave(self, lease_id: object, url: str, address: str, now: float) -> bool:
        """Whether the address where the host of ``url`` was found just now may be asked.

        A lease that may not is to be put back.
        """
        lease = self._leases.of(lease_id) if isinstance(lease_id, int) else None
        return self.visits.stands_at(lease, url, address, now)

    def sync(self) -> None:
        """Force what is committed to the disk; the driver calls it about once a second."""
        self._store.sync()

    def _fetch(self, offer: Offer, now: float) -> Fetch | Refused | None:
        """Lease what the offer needs first.

        None when its link was settled without a fetch, Refused when the driver has to hear of it.
        """
        link, host = offer.link, offer.host
        refusal = self._care.refusal(host, link) or self.traps.at_its_turn(link)
        if refusal is None and link.tries >= self.topic.politeness.max_tries:
            # Links that fail leave the queue before: crawls died while this one's page was parsed.
            logger.error("%s is given up: crawls ended while its page was parsed", link.url)
            refusal = FailureKind.UNDIGESTED
        if refusal is None and self._care.must_ask_robots(host, link.url, now):
            return self._leases.open(Lease(offer, Purpose.ROBOTS, robots_url(link.url)))
        # A driver's own request is refused by the driver, which tells whoever waits for it.
        if refusal is None and (link.payload or self._care.robots_allow(host, link.url)):
            return self._leases.open(Lease(offer, Purpose.PAGE, link.url))
        refusal = refusal or FailureKind.ROBOTS
        has_row = refusal is FailureKind.UNDIGESTED or self._care.has_row(host, refusal)
        excluded = self._settling.exclude(link, refusal, now, has_row=has_row)
        self._aftermath.of_exclusion(offer, excluded, now)
        self._keep_counters(now)
        return None if link.payload is None else Refused(link, refusal)

    def _settle_page(
        self, offer: Offer, outcome: Outcome, now: float, reading: Reading | Failed | None
    ) -> Settled:
        settled = self._settling.settle(offer.link, outcome, now, reading)
        self._care.answered(offer.link.url, outcome)
        pace = self._care.pace_after(offer.host, outcome, now)
        if settled.will_retry:
            self.frontier.retry(offer, pace, now)
            return settled
        with self._stages(Stage.LEARNING):
            self._aftermath.of_page(offer, outcome, settled, pace, now)
        return settled

    def _queue_sitemap(self, url: str, now: float) -> None:
        if self._follow_links:
            self.offer_link(url, 1.0, now)

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


def _warc_files(topic: Topic, policy: Policy, store: StateStore) -> WarcFiles | None:
    output = topic.output
    if output.warc == "off":
        return None
    return WarcFiles(
        output.folder,
        store.tables,
        output.warc,
        about_crawl(topic, policy.name),
        max_bytes=output.max_warc_bytes,
    )
