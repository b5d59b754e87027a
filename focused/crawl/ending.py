"""When a crawl is over: its budget is spent, or nothing is left that may be asked for in time."""

from __future__ import annotations

from focused.crawl.counters import Counters
from focused.crawl.leases import Leases
from focused.crawl.robots_errands import RobotsErrands
from focused.crawl.running_time import RunningTime
from focused.crawl.spending import spent
from focused.crawl.steps import Done, Wait
from focused.crawl.waiting import earlier, none_in_time, only_resting
from focused.frontier.frontier import Frontier
from focused.topic import Budget


class Ending:
    """Tells whether the crawl goes on, waits or ends; changes nothing."""

    def __init__(
        self,
        budget: Budget,
        frontier: Frontier,
        counters: Counters,
        leases: Leases,
        robots: RobotsErrands,
        running: RunningTime,
    ) -> None:
        self._budget = budget
        self._frontier = frontier
        self._counters = counters
        self._leases = leases
        self._robots = robots
        self._running = running

    def limit(self, now: float) -> str | None:
        """Name the limit of the budget that is reached, or None."""
        return spent(
            self._budget,
            pages=self._counters.fetched + self._leases.pages,
            bytes_=self._counters.bytes,
            active_s=self._running.so_far_s(now),
        )

    def end(self, reason: str) -> Wait | Done:
        """The crawl ends for that reason, once what is under way has come."""
        return Wait(None) if self._leases else Done(reason)

    def no_link_left(self) -> Wait | Done:
        """The frontier has nothing to offer, now or later."""
        return self.end(_why_no_link_left(self._frontier))

    def wait(self, until: float | None, now: float) -> Wait | Done:
        """The frontier has nothing to offer before ``until``: wait, or end where that is late."""
        until = earlier(until, self._robots.earliest(now))
        idle = not self._leases and not self._robots.are_waiting
        if idle and self._none_in_time(now):
            return Done(_why_none_in_time(self._frontier))
        return Wait(until, only_resting(self._frontier.hosts, until, now) if idle else 0)

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to do: no fetch under way, and no link or no budget left."""
        if self._leases or self._robots.are_waiting:
            return False
        if not self._frontier.hosts.with_links or self.limit(now) is not None:
            return True
        return self._none_in_time(now)

    def _none_in_time(self, now: float) -> bool:
        hours = self._budget.hours
        left_s = float("inf") if hours is None else hours * 3600 - self._running.so_far_s(now)
        return none_in_time(self._frontier.hosts, left_s, now)


def _why_none_in_time(frontier: Frontier) -> str:
    hosts = [host for host in frontier.hosts if host.in_turn]
    links = sum(map(frontier.count, hosts))
    left = f"{_count(len(hosts), 'host')}, {_count(links, 'link')}"
    return f"only hosts are left that are not due before the time budget is spent: {left}"


def _why_no_link_left(frontier: Frontier) -> str:
    """No link is left, or links of full hosts alone."""
    links = len(frontier)
    if not links:
        return "frontier is empty"
    hosts = sum(1 for _ in frontier.hosts.full())
    left = f"{_count(hosts, 'host')}, {_count(links, 'link')}"
    return f"only hosts are left whose budget is spent: {left}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
