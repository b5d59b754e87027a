"""The crank of a crawl: seed, next, settle. See the package docstring."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from focused.archive import Archive, export
from focused.crawl.counters import Counters
from focused.crawl.discovery import Discovery
from focused.crawl.failures import RULES, HostsGivenUp
from focused.crawl.robots_gate import MAX_REDIRECTS, RobotsGate, host_is_unreachable
from focused.crawl.settling import Parse, Settling
from focused.crawl.steps import Done, Fetch, Purpose, ScoredLink, Settled, Step, Wait
from focused.frontier.frontier import Frontier, NotYet, Offer
from focused.frontier.hosts import Host
from focused.frontier.ordering import Ordering, ordering_named
from focused.frontier.politeness import HostPace, after_answer, after_trouble
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore
from focused.learning.protocols import LinkScorer, TopicJudge
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Outcome, Redirected
from focused.web.parse import parse_page
from focused.web.url import host_of, normalise, robots_url

# Links settled without a fetch (robots, full hosts) in one call of next(): a bound on its time.
_EXCLUSIONS_PER_CALL = 200
_TROUBLES_UNTIL_SET_ASIDE = 8


@dataclass(frozen=True, slots=True)
class _Lease:
    offer: Offer
    purpose: Purpose
    url: str
    hops: int = 0


class Crawl:
    """One crawl of one topic over one folder; one owner, no threads, no clock."""

    def __init__(
        self,
        topic: Topic,
        judge: TopicJudge,
        scorer: LinkScorer,
        store: StateStore,
        *,
        policy: str = "focused",
        training_urls: frozenset[str] = frozenset(),
        follow_links: bool = True,
        ordering: Ordering | None = None,
        parse: Parse = parse_page,
    ) -> None:
        """``follow_links`` False: a driver pushes the links it wants with :meth:`offer_link`.

        ``ordering`` is a policy of the caller's own, which then needs no known
        name; ``parse`` stands in for the parser where pages are parsed already.
        """
        self.topic = topic
        self.counters = Counters.from_state(store.get_meta("counters"))
        self.frontier = Frontier(store)
        self.archive = Archive(store, topic.output.folder, warc=topic.output.warc)
        self._store = store
        self._discovery = Discovery(
            topic.scope, scorer, ordering or ordering_named(policy), self.frontier, self.counters
        )
        self._settling = Settling(
            topic,
            judge,
            scorer.feature_names,
            store,
            self.archive,
            self.counters,
            self._discovery,
            policy=policy,
            training_urls=training_urls,
            follow_links=follow_links,
            parse=parse,
        )
        self._robots = RobotsGate(topic.politeness.user_agent, obey=topic.politeness.robots)
        # Breadth-first has no better links to wait for.
        self._patience_s = 0.0 if policy == "bfs" else topic.politeness.patience_s
        self._given_up = HostsGivenUp()
        self._leases: dict[int, _Lease] = {}
        self._robots_hops: list[tuple[float, _Lease]] = []
        self._next_lease = 0
        self._session_began: float | None = None

    @property
    def under_way(self) -> int:
        """How many leases are not settled."""
        return len(self._leases)

    def seed(self, urls: Iterable[str], now: float) -> int:
        """Queue the seeds, best of all; return how many were new."""
        new = sum(self.offer_link(url, 1.0, now) for url in map(normalise, urls) if url is not None)
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
        depth = 0 if parent is None else parent.link.depth + 1
        if self._discovery.refuses(url, depth) is not None:
            return False
        return self._discovery.push(
            QueuedLink(
                key=key or link_key(url),
                url=url,
                host=host_of(url),
                priority=0.0,
                score=score if found is None else found.score,
                depth=depth,
                parent=None if parent is None else parent.link.url,
                anchor="" if found is None else found.link.anchor,
                evidence=() if found is None else found.evidence,
                found_at=now,
                payload=payload,
            ),
            now,
        )

    def next(self, now: float) -> Step:
        """Say what to do now: fetch, wait, or stop."""
        if self._session_began is None:
            self._session_began = now
        spent = self._budget_spent(now)
        if spent is not None:
            return Wait(None) if self._leases else Done(spent)
        hop = self._due_robots_hop(now)
        if hop is not None:
            return hop
        for _ in range(_EXCLUSIONS_PER_CALL):
            offer = self.frontier.offer(now, self._patience_s)
            if offer is None:
                return Wait(None) if self._leases else Done("frontier is empty")
            if isinstance(offer, NotYet):
                return Wait(self._earliest(offer.until))
            refusal = self._given_up.get(offer.host.name, now)
            if refusal is None and self._robots.must_ask(offer.host, offer.link.url, now):
                return self._lease(_Lease(offer, Purpose.ROBOTS, robots_url(offer.link.url)))
            refusal = refusal or self._refusal(offer)
            # A driver's own request is refused by the driver, which tells whoever waits for it.
            told_by_driver = refusal is FailureKind.ROBOTS and offer.link.payload is not None
            if refusal is None or told_by_driver:
                return self._lease(_Lease(offer, Purpose.PAGE, offer.link.url))
            self._settling.exclude(offer.link, refusal, now)
            self.frontier.settle(offer, offer.host.pace, now)
        self._commit(now)
        return Wait(now)

    def settle(self, lease_id: int, outcome: Outcome, now: float) -> Settled | None:
        """Take in what a fetch brought; None when it was a robots.txt."""
        lease = self._leases.pop(lease_id)
        if lease.purpose is Purpose.ROBOTS:
            self._settle_robots(lease, outcome, now)
            self._commit(now)
            return None
        settled = self._settle_page(lease.offer, outcome, now)
        self._commit(now)
        return settled

    def put_back(self, lease_id: int, now: float) -> None:
        """The lease was not asked for: its link stays queued as it was."""
        lease = self._leases.pop(lease_id)
        self.frontier.put_back(lease.offer, lease.offer.host.pace, now)

    def may_fetch(self, url: str, now: float) -> bool | None:
        """Whether robots.txt allows a URL that is not of the frontier; None: not asked yet."""
        host = self.frontier.hosts.get(host_of(url))
        if self._robots.must_ask(host, url, now):
            return None
        return self._robots.allows(host, url)

    def learn_robots(self, url: str, outcome: Outcome, now: float) -> None:
        """Take in a robots.txt that a driver fetched for a URL not of the frontier."""
        host = self.frontier.hosts.get(host_of(url))
        self._note_robots(host, url, outcome, now)
        self._commit(now)

    def due_at(self, url: str) -> float:
        """When the URL's host may be asked again, in seconds of ``now``'s clock."""
        return self.frontier.hosts.get(host_of(url)).pace.due_at

    def touch_host(self, url: str, now: float) -> None:
        """A request that is not of the frontier is sent now: its host's delay begins anew."""
        host = self.frontier.hosts.get(host_of(url))
        host.pace = after_answer(host.pace, now, self.topic.politeness.delay_s)
        self.frontier.hosts.refresh(host, now)

    def close(self, now: float) -> None:
        """Put back what is under way, keep all, write the Parquet files."""
        for lease_id in list(self._leases):
            self.put_back(lease_id, now)
        self._commit(now)
        if self.topic.output.parquet:
            export(self._store, self.topic.output.folder)
        self.archive.close()
        self._store.close()

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to do: no fetch under way, and no link or no budget left."""
        if self._leases or self._robots_hops:
            return False
        return not self.frontier.hosts.with_links or self._budget_spent(now) is not None

    def is_open(self, lease_id: int) -> bool:
        """Whether the lease waits to be settled."""
        return lease_id in self._leases

    def sync(self) -> None:
        """Force what is committed to the disk; the driver calls it about once a second."""
        self._store.sync()

    def _lease(self, lease: _Lease) -> Fetch:
        self._next_lease += 1
        self._leases[self._next_lease] = lease
        return Fetch(self._next_lease, lease.url, lease.purpose, lease.offer.link)

    def _refusal(self, offer: Offer) -> FailureKind | None:
        limit = self.topic.scope.max_pages_per_host
        if limit is not None and offer.host.fetched >= limit:
            return FailureKind.HOST_BUDGET
        if not self._robots.allows(offer.host, offer.link.url):
            return FailureKind.ROBOTS
        return None

    def _settle_page(self, offer: Offer, outcome: Outcome, now: float) -> Settled:
        settled = self._settling.settle(offer.link, outcome, now)
        pace = self._pace_after(offer.host, outcome, now)
        if isinstance(outcome, Failed) and pace.failures >= _TROUBLES_UNTIL_SET_ASIDE:
            self._give_up_host(offer.host, outcome.kind, now)
            pace = offer.host.pace
        if settled.will_retry:
            self.frontier.retry(offer, pace, now)
            return settled
        offer.host.fetched += settled.outcome == "fetched"
        self.frontier.settle(offer, pace, now)
        return settled

    def _pace_after(self, host: Host, outcome: Outcome, now: float) -> HostPace:
        delay_s = self.topic.politeness.delay_s
        if isinstance(outcome, Failed) and RULES[outcome.kind].host_trouble:
            return after_trouble(host.pace, now, delay_s, outcome.retry_after_s)
        return after_answer(host.pace, now, delay_s)

    def _settle_robots(self, lease: _Lease, outcome: Outcome, now: float) -> None:
        host = lease.offer.host
        if isinstance(outcome, Redirected) and lease.hops < MAX_REDIRECTS:
            due_at = now + self.topic.politeness.delay_s
            hop = _Lease(lease.offer, Purpose.ROBOTS, outcome.target, lease.hops + 1)
            self._robots_hops.append((due_at, hop))
            return
        self._note_robots(host, lease.offer.link.url, outcome, now)
        self.frontier.put_back(lease.offer, host.pace, now)

    def _note_robots(self, host: Host, url: str, outcome: Outcome, now: float) -> None:
        self.counters.robots_fetched += 1
        trouble = host_is_unreachable(outcome)
        if trouble is not None and isinstance(outcome, Failed):
            host.pace = after_trouble(
                host.pace, now, self.topic.politeness.delay_s, outcome.retry_after_s
            )
            if host.pace.failures >= self.topic.politeness.max_tries:
                self._give_up_host(host, trouble, now)
            return
        rules = self._robots.learn(host, url, outcome, now)
        crawl_delay_s = self._robots.crawl_delay_s(rules)
        host.pace = after_answer(
            HostPace(host.pace.due_at, 0, crawl_delay_s), now, self.topic.politeness.delay_s
        )

    def _give_up_host(self, host: Host, trouble: FailureKind, now: float) -> None:
        self._given_up.add(host.name, trouble, now)
        # Its links are settled without asking it, so nothing is to be waited for.
        host.pace = HostPace(now, 0, host.pace.crawl_delay_s)

    def _due_robots_hop(self, now: float) -> Fetch | None:
        for index, (due_at, lease) in enumerate(self._robots_hops):
            if due_at <= now:
                del self._robots_hops[index]
                return self._lease(lease)
        return None

    def _earliest(self, until: float | None) -> float | None:
        times = [due_at for due_at, _ in self._robots_hops]
        return min([*times, until] if until is not None else times, default=None)

    def _budget_spent(self, now: float) -> str | None:
        budget, counters = self.topic.budget, self.counters
        pages = counters.fetched + sum(
            lease.purpose is Purpose.PAGE for lease in self._leases.values()
        )
        if budget.pages is not None and pages >= budget.pages:
            return "page budget spent"
        if budget.bytes is not None and counters.bytes >= budget.bytes:
            return "byte budget spent"
        if budget.hours is not None and self.active_s(now) >= budget.hours * 3600:
            return "time budget spent"
        return None

    def active_s(self, now: float) -> float:
        """Seconds that the crawl has run, all sessions together."""
        began = now if self._session_began is None else self._session_began
        return self.counters.active_s + (now - began)

    def _commit(self, now: float) -> None:
        self.counters.active_s = self.active_s(now)
        if self._session_began is not None:
            self._session_began = now
        self._store.put_meta("counters", self.counters.to_state())
        self.frontier.save()
        self._store.commit()
