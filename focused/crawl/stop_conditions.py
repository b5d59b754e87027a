"""Decide when a crawl ends, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from focused.crawl.crawl_state import CrawlState
from focused.crawl.robots_fetcher import RobotsFetcher
from focused.crawl.steps import Done, Wait
from focused.crawl.traps.trap_filter import TrapStats
from focused.durations import HOUR_S
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.host import Host
from focused.frontier.host_table import HostTable
from focused.topic import Budget, Topic


class CrawlPacer:
    """Decides when a crawl may download, beyond the delays of its hosts.

    This one lets it download as fast as its hosts allow, and end.
    """

    is_continuous = False
    """Whether the crawl goes on when its harvest is over."""

    @property
    def released(self) -> int:
        """The number of links that the pacer queued, in the frontier or in flight."""
        return 0

    def prepare(self, now: float, is_harvest_over: Callable[[float], bool]) -> float:
        """Queue links that are due; return when the next download may begin, at least ``now``."""
        return now

    def next_release_at(self, now: float) -> float | None:
        """Return when the next link may be queued, None for never."""
        return None

    def count_download(self, now: float) -> None:
        """Count a request of the crawl's links."""

    def count_bytes(self, count: int, now: float) -> None:
        """Count the bytes of a response."""


class StopConditions:
    """Decides whether the crawl goes on, waits or ends; has no side effects."""

    def __init__(
        self,
        topic: Topic,
        state: CrawlState,
        robots: RobotsFetcher,
        traps: TrapStats,
        pacer: CrawlPacer,
    ) -> None:
        """With a continuous ``pacer`` the topic's budget is that of the harvest."""
        self.budget = topic.budget
        """The topic's, or one that replaced it until the process ends; None means no limit."""
        self._revisit_hours = topic.revisit.hours
        self._pacer = pacer
        self._frontier = state.frontier
        self._counters = state.counters
        self._leases = state.leases
        self._running = state.timer
        self._robots = robots
        self._traps = traps

    def limit(self, now: float) -> str | None:
        """Return which budget is spent, or None."""
        if self._pacer.is_continuous:
            hours = self._revisit_hours
            is_over = hours is not None and self._running.so_far_s(now) >= hours * HOUR_S
            return "time budget spent" if is_over else None
        return self._harvest_limit(now)

    def is_harvest_over(self, now: float) -> bool:
        """Whether the first harvest of a continuous crawl is over: no budget or no link is left."""
        if self._harvest_limit(now) is not None:
            return True
        return not self._leases and len(self._frontier) <= self._pacer.released

    def _harvest_limit(self, now: float) -> str | None:
        return reached_limit(
            self.budget,
            self._counters.recent,
            pages=self._counters.fetched + self._leases.pages,
            bytes_=self._counters.bytes,
            active_s=self._running.so_far_s(now),
        )

    def end(self, reason: str) -> Wait | Done:
        """End the crawl, once the fetches in flight have ended."""
        return Wait(None) if self._leases else Done(reason)

    def when_no_link_left(self, now: float) -> Wait | Done:
        """The step to take when the frontier is empty."""
        due_at = self._pacer.next_release_at(now)
        if due_at is not None:
            return Wait(due_at)
        return self.end(_no_link_left_reason(self._frontier, self._traps))

    def wait(self, until: float | None, now: float) -> Wait | Done:
        """The step to take when no link is available before ``until``."""
        until = earlier_time(until, self._robots.earliest(now))
        if self._pacer.is_continuous:
            return Wait(earlier_time(until, self._pacer.next_release_at(now)))
        idle = not self._leases and not self._robots.has_waiting
        if idle and self._none_in_time(now):
            return Done(_no_host_in_time_reason(self._frontier))
        return Wait(until, count_if_all_back_off(self._frontier.hosts, until, now) if idle else 0)

    def is_finished(self, now: float) -> bool:
        """Whether no fetch is in flight and no link or no budget is left."""
        if self._leases or self._robots.has_waiting:
            return False
        if self.limit(now) is not None:
            return True
        if self._pacer.next_release_at(now) is not None:
            return False
        if not self._frontier.hosts.with_links:
            return True
        return self._none_in_time(now)

    def _none_in_time(self, now: float) -> bool:
        hours = self.budget.hours
        left_s = float("inf") if hours is None else hours * HOUR_S - self._running.so_far_s(now)
        return no_host_due_within(self._frontier.hosts, left_s, now)


def reached_limit(
    budget: Budget, recent: Sequence[bool], *, pages: int, bytes_: int, active_s: float
) -> str | None:
    """Return which limit is reached, or None.

    ``recent`` tells of the last pages whether they are on topic; ``pages`` includes those in
    flight.
    """
    if budget.pages is not None and pages >= budget.pages:
        return "page budget spent"
    if budget.bytes is not None and bytes_ >= budget.bytes:
        return "byte budget spent"
    if budget.hours is not None and active_s >= budget.hours * HOUR_S:
        return "time budget spent"
    return _too_low_harvest(budget, recent)


def _too_low_harvest(budget: Budget, recent: Sequence[bool]) -> str | None:
    """Return that the harvest fell below ``min_harvest``, or None; ``recent``: the last pages."""
    pages = budget.min_harvest_pages
    if budget.min_harvest is None or len(recent) < pages:
        return None
    on_topic = sum(recent[-pages:])
    if on_topic >= budget.min_harvest * pages:
        return None
    return f"{on_topic:,} of the last {pages:,} pages on topic, below budget.min_harvest"


def _no_host_in_time_reason(frontier: DiskFrontier) -> str:
    hosts = [host for host in frontier.hosts if host.in_turn]
    links = sum(map(frontier.count, hosts))
    left = f"{_format_count(len(hosts), 'host')}, {_format_count(links, 'link')}"
    return f"only hosts are left that are not due before the time budget is spent: {left}"


def _no_link_left_reason(frontier: DiskFrontier, traps: TrapStats) -> str:
    """Why nothing is left: no links, or only links of hosts with a spent budget."""
    links = len(frontier)
    if not links:
        trap = traps.most_refused()
        if trap is None:
            return "frontier is empty"
        refused = _format_count(trap.links, "link")
        return f"frontier is empty; {refused} to {trap.site} refused ({trap.kind})"
    hosts = sum(1 for _ in frontier.hosts.full())
    left = f"{_format_count(hosts, 'host')}, {_format_count(links, 'link')}"
    return f"only hosts are left whose budget is spent: {left}"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LONG_DELAY_S = HOUR_S
"""Hosts with a longer crawl-delay can keep a crawl open for days, so the crawl names them."""

# Scanning all hosts is for idle crawls; shorter waits are not reported.
_MIN_REPORTED_WAIT_S = 5.0


def earlier_time(one: float | None, other: float | None) -> float | None:
    """Return the earlier of two times, either of which may be None."""
    return min((time for time in (one, other) if time is not None), default=None)


def count_hosts_backing_off(hosts: HostTable) -> int:
    """Count the hosts with links that back off or are suspended. Linear in hosts."""
    return sum(1 for host in hosts if host.in_turn and host.pace.failures)


def long_crawl_delays_s(hosts: HostTable) -> dict[str, float]:
    """Return the crawl-delays above :data:`LONG_DELAY_S` of hosts with links, by host."""
    return {host.name: host.pace.crawl_delay_s for host in hosts if _has_long_delay(host)}


def count_if_all_back_off(hosts: HostTable, until: float | None, now: float) -> int:
    """Count the hosts that back off or have a long crawl-delay, if no other host has links.

    0 otherwise, and when ``until`` is only seconds away. Linear in hosts.
    """
    if until is None or until - now < _MIN_REPORTED_WAIT_S:
        return 0
    resting = sum(
        1 for host in hosts if _has_long_delay(host) or (host.in_turn and host.pace.failures)
    )
    return resting if resting == hosts.with_links else 0


def no_host_due_within(hosts: HostTable, left_s: float, now: float) -> bool:
    """Whether all hosts with links back off for ``left_s`` or longer."""
    due_at = hosts.next_due_at()
    if due_at is None or due_at - now < left_s or hosts.busy:
        return False
    if not count_if_all_back_off(hosts, due_at, now):
        return False
    return not any(host.in_turn and host.pace.due_at <= now for host in hosts)


def _has_long_delay(host: Host) -> bool:
    return host.in_turn and host.pace.crawl_delay_s > LONG_DELAY_S
