"""Measure our frontier: grow it to a size, pop from it, and leave work in flight to be killed."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from frontier_machine import (
    Seconds,
    Spent,
    allocated_bytes,
    anonymous_mb,
    began,
    shared,
    spent,
    took,
)
from frontier_stages import Job, Order, Reopened, Stage

from focused.frontier.disk_frontier import NotYet, Offer
from focused.frontier.host import after_success

DELAY_S = 1.0
PATIENCE_S = 2.0
UNDER_WAY = 16
TURN_S = 1 / 300  # of the crawl's clock: 300 pages per second
ANSWER_S = UNDER_WAY * TURN_S
WINDOW_PAGES = 1_000
POPS = 10_000
PATIENT_POPS = 2_000
TURNS = 1_000
PAGES_TIMED_BY_LINK = 200
ORDER_SAMPLES = 50
WARM_UP_PAGES = 10


def grow_and_measure(connection: Connection, job: Job) -> None:
    """Send a :class:`Stage`; then leave work in flight, report the number of committed links,
    wait.
    """
    run = _Run(job)
    connection.send(run.stage())
    committed = run.leave_under_way()
    connection.send(committed)
    connection.recv()


def reopen(connection: Connection, job: Job) -> None:
    """Send a :class:`Reopened`; wait."""
    gc.collect()
    before_mb = anonymous_mb()
    since = began()
    _, frontier = job.open()
    offer = frontier.offer(job.now)
    passed_s, _ = took(since)
    if not isinstance(offer, Offer):
        raise AssertionError(f"nothing is offered after reopening: {offer}")
    connection.send(Reopened(passed_s, len(frontier), anonymous_mb() - before_mb))
    connection.recv()


class _Run:
    """One process's work on a frontier."""

    def __init__(self, job: Job) -> None:
        self._source = job.source()
        self._exploration = job.exploration()
        # Memory that Python needs to sample links is not the frontier's.
        for _ in range(WARM_UP_PAGES):
            self._source.queued(self._source.page(), {}, 0.0)
        gc.collect()
        self._before_mb = anonymous_mb()
        self._most_mb = 0.0
        self._job = job
        self._now = job.now
        self._store, self._frontier = job.open()
        self._leased: deque[Offer] = deque()
        self._push_s: deque[Seconds] = deque(maxlen=WINDOW_PAGES)
        self._look_up_s: deque[Seconds] = deque(maxlen=WINDOW_PAGES)
        self._spent_s = 0.0
        self._pushed = self._new = 0
        self._sync_s: list[float] = []
        self._synced_at = time.monotonic()

    def stage(self) -> Stage:
        """Grow, then measure."""
        while len(self._frontier) < self._job.links:
            self._push_page()
        grown = self._as_grown()
        operations = self._operations(len(self._frontier))
        self._sync()
        mine_mb = anonymous_mb()
        sync_ms = [second * 1000 for second in self._sync_s]
        return Stage(
            **grown,
            **operations,
            sync_ms_median=statistics.median(sync_ms),
            sync_ms_most=max(sync_ms),
            anonymous_mb=mine_mb - self._before_mb,
            anonymous_most_mb=max(self._most_mb, mine_mb) - self._before_mb,
            anonymous_in_all_mb=mine_mb,
            drawn=self._source.drawn(),
            now=self._now,
        )

    def _as_grown(self) -> Mapping[str, Any]:
        """The figures of the growth itself."""
        self._sync()
        return {
            "links": len(self._frontier),
            "hosts": len(self._frontier.hosts),
            "share_waited": 1 - self._new / self._pushed,
            "push": spent(self._push_s),
            "look_up": spent(self._look_up_s),
            "pushed_links_per_s": self._pushed / self._spent_s,
            "disk_bytes": allocated_bytes(self._job.folder),
        }

    def _operations(self, links: int) -> Mapping[str, Any]:
        """Measure single operations, which hardly change a large frontier."""
        pops = min(POPS, links // 10)
        pop = spent([self._pop(0.0) for _ in range(pops)])
        order = self._order()
        patient = spent([self._pop(PATIENCE_S) for _ in range(min(PATIENT_POPS, pops))])
        turn = spent([self._turn() for _ in range(min(TURNS, links // 100))])
        new, again = self._push_by_link(min(PAGES_TIMED_BY_LINK, links // 500))
        return {
            "pop": pop,
            "order": order,
            "pop_patient": patient,
            "turn": turn,
            "push_new": new,
            "push_again": again,
        }

    def leave_under_way(self) -> int:
        """Commit; then offer links and push a page without a commit."""
        while self._leased:
            self._settle(self._leased.popleft())
        self._frontier.save()
        self._store.commit()
        committed = len(self._frontier)
        for _ in range(UNDER_WAY):
            self._offer(0.0)
        page = self._source.page()
        for link in self._source.queued(page, {}, self._now):
            self._frontier.push(link, self._now, joined=True)
        return committed

    def _push_page(self) -> None:
        page = self._source.page()
        names = page.names()
        since = began()
        known = self._frontier.lookup_links(names)
        looked_up = took(since)
        links = [
            link
            for link in self._source.queued(page, known.waiting, self._now)
            if link.key not in known.settled
        ]
        if not links:  # all their turns are over
            return
        before = len(self._frontier)
        since = began()
        for link in links:
            self._frontier.push(link, self._now, joined=True)
        self._frontier.save()
        self._store.commit()
        pushed = took(since)
        self._push_s.append(shared(pushed, len(links)))
        self._look_up_s.append(shared(looked_up, len(names)))
        self._spent_s += pushed[0]
        self._pushed += len(links)
        self._new += len(self._frontier) - before
        self._sync_when_due()

    def _push_by_link(self, pages: int) -> tuple[Spent, Spent]:
        """Times of pushes of new links, and of links that wait already."""
        times: dict[bool, list[Seconds]] = {True: [], False: []}
        for _ in range(pages):
            page = self._source.page()
            known = self._frontier.lookup_links(page.names())
            for link in self._source.queued(page, known.waiting, self._now):
                since = began()
                new = self._frontier.push(link, self._now, joined=True)
                times[new].append(took(since))
            self._frontier.save()
            self._store.commit()
        return spent(times[True]), spent(times[False])

    def _pop(self, patience_s: float) -> Seconds:
        """Offer a link, settle the oldest offer, commit; return the time."""
        since = began()
        self._offer(patience_s)
        if len(self._leased) > UNDER_WAY:
            self._settle(self._leased.popleft())
        self._frontier.save()
        self._store.commit()
        passed = took(since)
        self._now += TURN_S
        self._sync_when_due()
        return passed

    def _turn(self) -> Seconds:
        """A crawl's work for a page, without fetching, parsing and scoring."""
        page = self._source.page()
        names = page.names()
        since = began()
        self._offer(0.0)
        known = self._frontier.lookup_links(names)
        looked_up = took(since)
        links = self._source.queued(page, known.waiting, self._now)
        since = began()
        for link in links:
            if link.key not in known.settled:
                self._frontier.push(link, self._now, joined=True)
        if len(self._leased) > UNDER_WAY:
            self._settle(self._leased.popleft())
        self._frontier.save()
        self._store.commit()
        pushed = took(since)
        self._now += TURN_S
        self._sync_when_due()
        return looked_up[0] + pushed[0], looked_up[1] + pushed[1]

    def _offer(self, patience_s: float) -> Offer:
        while True:
            offer = self._frontier.offer(self._now, patience_s)
            if isinstance(offer, Offer):
                self._leased.append(offer)
                return offer
            if offer is None:
                raise AssertionError("the frontier is empty")
            self._wait(offer)

    def _wait(self, offer: NotYet) -> None:
        """Advance the clock until something is due, or the oldest fetch is answered."""
        until = math.inf if offer.until is None else offer.until
        answered_at = self._leased[0].host.leased_at + ANSWER_S if self._leased else math.inf
        if min(until, answered_at) == math.inf:
            raise AssertionError("the frontier waits for what is not under way")
        self._now = max(self._now, min(until, answered_at))
        if answered_at <= self._now:
            self._settle(self._leased.popleft())

    def _settle(self, offer: Offer) -> None:
        offer.host.asked += 1
        self._frontier.hosts.count_fetched(offer.host)
        self._frontier.settle(offer, after_success(offer.host.pace, self._now, DELAY_S), self._now)

    def _order(self) -> Order:
        """Search for a better link than the offered one, on all hosts and on the same host."""
        among_hosts = in_host = 0.0
        hosts = self._frontier.hosts
        for _ in range(ORDER_SAMPLES):
            offer = self._offer(0.0)
            host = offer.host
            worth = offer.link.priority + self._exploration.bonus(host.asked, host.unproductive)
            best = max(
                (hosts.worth(h) for h in hosts if not h.leased and h.pace.due_at <= self._now),
                default=worth,
            )
            among_hosts = max(among_hosts, best - worth)
            for link in islice(self._frontier.waiting(host), 1):
                in_host = max(in_host, link.priority - offer.link.priority)
            self._settle(self._leased.popleft())
            self._now += TURN_S
        return Order(ORDER_SAMPLES, among_hosts, in_host)

    def _sync_when_due(self) -> None:
        if time.monotonic() - self._synced_at >= 1.0:  # as the crawl's driver does
            self._sync()

    def _sync(self) -> None:
        self._most_mb = max(self._most_mb, anonymous_mb())
        since = began()
        self._store.sync()
        self._sync_s.append(took(since)[0])
        self._synced_at = time.monotonic()
