"""When a crawl is over: its budget is spent, or nothing is left that may be asked for in time."""

from __future__ import annotations

from focused.crawl.crawl_stats import Counters
from focused.crawl.hosts.host_policy import reached_limit
from focused.crawl.hosts.robots_fetcher import RobotsFetcher
from focused.crawl.leases import Leases
from focused.crawl.steps import Done, Wait
from focused.frontier.host import Host
from focused.frontier.interface import Frontier, Hosts
from focused.topic import Budget


class StopConditions:
    """Tells whether the crawl goes on, waits or ends; changes nothing."""

    def __init__(
        self,
        budget: Budget,
        frontier: Frontier,
        counters: Counters,
        leases: Leases,
        robots: RobotsFetcher,
        running: RunTimer,
    ) -> None:
        self._budget = budget
        self._frontier = frontier
        self._counters = counters
        self._leases = leases
        self._robots = robots
        self._running = running

    def limit(self, now: float) -> str | None:
        """Name the limit of the budget that is reached, or None."""
        return reached_limit(
            self._budget,
            pages=self._counters.fetched + self._leases.pages,
            bytes_=self._counters.bytes,
            active_s=self._running.so_far_s(now),
        )

    def end(self, reason: str) -> Wait | Done:
        """The crawl ends for that reason, once what is under way has come."""
        return Wait(None) if self._leases else Done(reason)

    def when_no_link_left(self) -> Wait | Done:
        """The frontier has nothing to offer, now or later."""
        return self.end(_no_link_left_reason(self._frontier))

    def wait(self, until: float | None, now: float) -> Wait | Done:
        """The frontier has nothing to offer before ``until``: wait, or end where that is late."""
        until = earlier_time(until, self._robots.earliest(now))
        idle = not self._leases and not self._robots.has_waiting
        if idle and self._none_in_time(now):
            return Done(_no_host_in_time_reason(self._frontier))
        return Wait(until, count_if_all_back_off(self._frontier.hosts, until, now) if idle else 0)

    def is_finished(self, now: float) -> bool:
        """Whether nothing is left to do: no fetch under way, and no link or no budget left."""
        if self._leases or self._robots.has_waiting:
            return False
        if not self._frontier.hosts.with_links or self.limit(now) is not None:
            return True
        return self._none_in_time(now)

    def _none_in_time(self, now: float) -> bool:
        hours = self._budget.hours
        left_s = float("inf") if hours is None else hours * 3600 - self._running.so_far_s(now)
        return no_host_due_within(self._frontier.hosts, left_s, now)


def _no_host_in_time_reason(frontier: Frontier) -> str:
    hosts = [host for host in frontier.hosts if host.in_turn]
    links = sum(map(frontier.count, hosts))
    left = f"{_format_count(len(hosts), 'host')}, {_format_count(links, 'link')}"
    return f"only hosts are left that are not due before the time budget is spent: {left}"


def _no_link_left_reason(frontier: Frontier) -> str:
    """No link is left, or links of full hosts alone."""
    links = len(frontier)
    if not links:
        return "frontier is empty"
    hosts = sum(1 for _ in frontier.hosts.full())
    left = f"{_format_count(hosts, 'host')}, {_format_count(links, 'link')}"
    return f"only hosts are left whose budget is spent: {left}"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LONG_DELAY_S = 3600.0
"""A crawl-delay above it holds a crawl open for days: such hosts are told by name."""

# All hosts are looked at: that is for the idle, and a shorter wait is told by nobody.
_MIN_REPORTED_WAIT_S = 5.0


def earlier_time(one: float | None, other: float | None) -> float | None:
    """The earlier of two times, either of which may not be known."""
    return min((time for time in (one, other) if time is not None), default=None)


def count_hosts_backing_off(hosts: Hosts) -> int:
    """How many hosts with links are in back-off or set aside. Linear in hosts."""
    return sum(1 for host in hosts if host.in_turn and host.pace.failures)


def long_crawl_delays_s(hosts: Hosts) -> dict[str, float]:
    """The hosts with links whose crawl-delay is above :data:`LONG_DELAY_S`. Linear in hosts."""
    return {host.name: host.pace.crawl_delay_s for host in hosts if _has_long_delay(host)}


def count_if_all_back_off(hosts: Hosts, until: float | None, now: float) -> int:
    """How many hosts with links are in back-off, set aside or have a long crawl-delay.

    When no other host has links and ``until`` is worth telling; else 0. Linear in hosts.
    """
    if until is None or until - now < _MIN_REPORTED_WAIT_S:
        return 0
    resting = sum(
        1 for host in hosts if _has_long_delay(host) or (host.in_turn and host.pace.failures)
    )
    return resting if resting == hosts.with_links else 0


def no_host_due_within(hosts: Hosts, left_s: float, now: float) -> bool:
    """Whether hosts that rest alone (:func:`count_if_all_back_off`) are left, due in ``left_s`` or later."""
    due_at = hosts.next_due_at()
    if due_at is None or due_at - now < left_s or hosts.busy:
        return False
    if not count_if_all_back_off(hosts, due_at, now):
        return False
    return not any(host.in_turn and host.pace.due_at <= now for host in hosts)


def _has_long_delay(host: Host) -> bool:
    return host.in_turn and host.pace.crawl_delay_s > LONG_DELAY_S


class RunTimer:
    """Seconds between a session's first step and now, added to those of earlier sessions."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._since: float | None = None

    def begin(self, now: float) -> bool:
        """The session takes a step; the first counts. Return whether it is that."""
        first = self._since is None
        if first:
            self._since = now
        return first

    def so_far_s(self, now: float) -> float:
        """The seconds until now."""
        return self._counters.active_s + (0.0 if self._since is None else now - self._since)

    def keep(self, now: float) -> None:
        """Write them into the counters."""
        self._counters.active_s = self.so_far_s(now)
        if self._since is not None:
            self._since = now
