"""Whether a host is requested again: robots.txt, budgets, suspension; and its pace.

:mod:`focused.frontier.host_pace` computes the pace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from focused.crawl.crawl_stats import Counters
from focused.crawl.hosts.failures import FAILURE_RULES, DeadHosts, HostEffect
from focused.crawl.hosts.robots_cache import RobotsCache, unreachable_reason
from focused.crawl.listeners import SettledEvent
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.host import Host
from focused.frontier.host_pace import (
    HostPace,
    after_failure,
    after_interruption,
    after_success,
    pause_after,
    suspend,
)
from focused.frontier.host_scheduler import HostLimits
from focused.storage.tables import Tables
from focused.topic import Scope, Topic
from focused.web.page import Failed, FailureKind, Fetched, Outcome
from focused.web.robots.robots_file import RobotsFile
from focused.web.urls import host_of, normalize_url

_FAILURES_BEFORE_SUSPENSION = 8
# One hour, then twice as long each time: survives an outage of seven hours.
_MAX_SUSPENSIONS = 3
_NO_HOST_RETRY_S = 60.0
_MAX_SITEMAPS = 20
_WITHOUT_ROW = (FailureKind.MIRROR, FailureKind.ALIAS, FailureKind.TRAP)


class HostPolicy:
    """Decides when and whether a host is requested again."""

    def __init__(
        self,
        topic: Topic,
        counters: Counters,
        tables: Tables,
        frontier: DiskFrontier,
    ) -> None:
        self._politeness = topic.politeness
        self._limits = host_limits(topic.scope)
        self._has_limits = self._limits != HostLimits()
        self._counters = counters
        self._hosts = hosts = frontier.hosts
        self._with_sitemaps = seed_hosts(topic) if topic.seeds.robots_sitemaps else frozenset()
        self.robots_cache = RobotsCache(
            hosts, topic.politeness.user_agent, obey=topic.politeness.robots
        )
        self.dead_hosts = DeadHosts(tables)
        self._unresolved_once: set[str] = set()
        self._parsing_s: dict[str, float] = {}
        self._suspended: dict[str, FailureKind] = {}
        self._newly_suspended: dict[str, FailureKind] = {}

    @property
    def delay_s(self) -> float:
        """The delay between two requests to a host, where robots.txt asks for no longer one."""
        return self._politeness.delay_s

    def change_delay(self, delay_s: float) -> None:
        """Replace the delay, from each host's next response on."""
        self._politeness = replace(self._politeness, delay_s=delay_s)

    def closed(self, name: str) -> str | None:
        """Return why a link to a host need not be queued, or None."""
        if not (self.dead_hosts or self._has_limits):
            return None
        host = self._hosts.known(name)
        if host is None:
            return None
        if self.dead_hosts.why(name) is not None:
            return "dead host"
        return "host or address budget spent" if self._limits.reached(host) else None

    def take_newly_suspended(self) -> Mapping[str, FailureKind]:
        """Return the hosts suspended or declared dead since the last call, and why."""
        taken, self._newly_suspended = self._newly_suspended, {}
        return taken

    def link_came(self, name: str, now: float) -> None:
        """Note that a driver's own request was queued, perhaps for a suspended host."""
        failure = self._suspended.get(name)
        if failure is None:
            return
        if self._hosts.get(name).pace.due_at > now:
            self._newly_suspended[name] = failure
        else:
            del self._suspended[name]

    def has_row(self, host: Host, refusal: FailureKind) -> bool:
        """Whether a link that was not requested gets an archive row, or is only counted."""
        if refusal is FailureKind.ROBOTS:
            return True
        return refusal not in _WITHOUT_ROW and self.dead_hosts.take_row(host.name)

    def on_settled(self, event: SettledEvent) -> None:
        """Count a fetched page for the budgets of its host and address."""
        if event.offer is not None and event.settled.outcome == "fetched":
            self._hosts.count_fetched(event.offer.host)

    def answered(self, url: str, outcome: Outcome) -> None:
        """Assign the host of ``url`` to the address that the response came from."""
        if outcome.address:
            self.assign_address(self._hosts.get(host_of(url)), outcome.address)

    def assign_address(self, host: Host, address: str) -> None:
        """Assign the host to an address; hosts at one address share a connection and a delay."""
        if self._politeness.per_address:
            self._hosts.assign_address(host, address)

    def next_pace(self, host: Host, outcome: Outcome, now: float) -> HostPace:
        """Return the host's pace after ``outcome``; a host that only fails is suspended."""
        if isinstance(outcome, Failed) and FAILURE_RULES[outcome.kind].is_host_failure:
            failure = self._as_failure_of_host(host, outcome)
            return self._pace_after_failure(host, failure, now, _FAILURES_BEFORE_SUSPENSION)
        self._mark_answering(host)
        return after_success(host.pace, now, self._delay_s(host), self._pause_s(outcome, host))

    def resume(self, interrupted: Iterable[tuple[Host, float]]) -> None:
        """Restart the delay of the hosts that were being requested when the last process died."""
        for host, asked_at in interrupted:
            host.pace = after_interruption(host.pace, asked_at, self._delay_s(host))
            self._hosts.refresh(host, asked_at)

    def touch(self, host: Host, now: float, outcome: Outcome | None = None) -> None:
        """Restart the host's delay for a request that is not its own link."""
        pause = 0.0 if outcome is None else self._pause_s(outcome)
        host.pace = after_interruption(host.pace, now, max(self._delay_s(host), pause))

    def charge_parsing(self, name: str, cpu_s: float) -> None:
        """Add CPU time that a response of a host took in a parser process to its next pause."""
        self._parsing_s[name] = self._parsing_s.get(name, 0.0) + cpu_s

    def record_robots_fetch(
        self,
        host: Host,
        url: str,
        outcome: Outcome,
        now: float,
        parsed: RobotsFile | None = None,
    ) -> None:
        """Process the outcome of requesting the robots.txt of ``url``'s site.

        ``parsed`` is the file if it was parsed already.
        """
        self._counters.robots_fetched += 1
        if isinstance(outcome, Failed) and unreachable_reason(outcome):
            host.pace = self._pace_after_unreachable_robots(
                host, url, self._as_failure_of_host(host, outcome), now
            )
            self.robots_cache.extend_until(host, url, host.pace.due_at, now)
            return
        self._mark_answering(host)
        rules = self.robots_cache.learn(host, url, outcome, now, parsed)
        pace = replace(host.pace, crawl_delay_s=self.robots_cache.crawl_delay_s(rules))
        pace = after_success(pace, now, self._delay_s(host), self._pause_s(outcome, host))
        # A fetched robots.txt doesn't end the suspension of a host whose pages fail, nor the pause
        # that the host asked for if robots.txt came from another one.
        due_at = max(pace.due_at, host.pace.due_at)
        host.pace = replace(pace, due_at=due_at, suspensions=host.pace.suspensions)
        self.robots_cache.extend_until(host, url, host.pace.due_at, now)

    def sitemaps(self, host: Host, url: str) -> Sequence[str]:
        """Return up to 20 sitemaps of a seed's host that its robots.txt names, if wanted."""
        if host.name not in self._with_sitemaps:
            return ()
        return self.robots_cache.sitemaps(host, url)[:_MAX_SITEMAPS]

    def _pace_after_unreachable_robots(
        self, host: Host, url: str, failed: Failed, now: float
    ) -> HostPace:
        """The pace after robots.txt could not be fetched: the host backs off."""
        politeness = self._politeness
        if failed.kind is not FailureKind.NO_HOST:
            self.robots_cache.record_unreachable(host, url, now)
            tries_spent = host.pace.failures + 1 >= politeness.max_tries
            if tries_spent and self.robots_cache.may_fetch_without_robots(host, url, now):
                pause = pause_after(failed.elapsed_s, politeness.fetch_time_factor)
                delay_s = self._delay_s(host)
                return after_failure(host.pace, now, delay_s, failed.retry_after_s, pause)
        return self._pace_after_failure(host, failed, now, politeness.max_tries)

    def _pace_after_failure(self, host: Host, failed: Failed, now: float, at_most: int) -> HostPace:
        """The pace after one more failure; ``at_most`` in a row are allowed."""
        politeness = self._politeness
        pause = pause_after(failed.elapsed_s, politeness.fetch_time_factor)
        pace = after_failure(host.pace, now, self._delay_s(host), failed.retry_after_s, pause)
        effect = FAILURE_RULES[failed.kind].host
        if effect is HostEffect.DEAD:
            return self._give_up(host, failed.kind, now)
        if effect is HostEffect.ONE_MORE_CHANCE and politeness.suspend_s:
            # DNS makes mistakes: retry once, soon. Without suspension treat it like any failure.
            if host.name in self._unresolved_once:
                return self._give_up(host, failed.kind, now)
            self._unresolved_once.add(host.name)
            self._suspend(host, failed.kind)
            again_at = now + min(_NO_HOST_RETRY_S, politeness.suspend_s)
            return replace(pace, due_at=max(pace.due_at, again_at))
        if pace.failures < at_most:
            return pace
        if politeness.suspend_s == 0 or pace.suspensions >= _MAX_SUSPENSIONS:
            return self._give_up(host, failed.kind, now)
        self._suspend(host, failed.kind)
        return suspend(pace, now, politeness.suspend_s)

    def _mark_answering(self, host: Host) -> None:
        self._unresolved_once.discard(host.name)
        self._suspended.pop(host.name, None)
        self.dead_hosts.revive(host.name)

    def _suspend(self, host: Host, failure: FailureKind) -> None:
        self._suspended[host.name] = self._newly_suspended[host.name] = failure

    def _give_up(self, host: Host, failure: FailureKind, now: float) -> HostPace:
        self.dead_hosts.add(host.name, failure)
        self._unresolved_once.discard(host.name)
        # Due at once: its links are settled without a request.
        return HostPace(now, 0, host.pace.crawl_delay_s)

    def _pause_s(self, outcome: Outcome, host: Host | None = None) -> float:
        """The pause after a response, by its duration or by Retry-After.

        With ``host`` the time that was charged to it counts like that of the fetch.
        """
        asked_s = None if isinstance(outcome, Fetched) else outcome.retry_after_s
        spent_s = outcome.elapsed_s
        if host is not None:
            spent_s += self._parsing_s.pop(host.name, 0.0)
        return pause_after(spent_s, self._politeness.fetch_time_factor, asked_s)

    def _delay_s(self, host: Host) -> float:
        return self._politeness.delay_of(host.name)

    def _as_failure_of_host(self, host: Host, failed: Failed) -> Failed:
        """Return the failure that ``failed`` means for the host itself.

        A host that answered before exists, whatever DNS says now; so does one whose robots.txt was
        redirected to a host that doesn't. A redirect to a private address makes robots.txt
        unreachable (RFC 9309 section 2.3.1.4): there are rules, and they are unknown.
        """
        elsewhere = host_of(failed.url) != host.name
        if failed.kind is FailureKind.PRIVATE_ADDRESS and elsewhere:
            return replace(failed, kind=FailureKind.CONNECT)
        if failed.kind is not FailureKind.NO_HOST:
            return failed
        if elsewhere or host.fetched or self.robots_cache.has_rules(host):
            return replace(failed, kind=FailureKind.DNS)
        return failed


def host_limits(scope: Scope) -> HostLimits:
    """Return the scope's page limits for the frontier."""
    return HostLimits(scope.max_pages_per_host, scope.max_pages_per_address)


def seed_hosts(topic: Topic) -> frozenset[str]:
    """Return the hosts of the topic's seeds."""
    return frozenset(
        host_of(url) for url in map(normalize_url, topic.seeds.urls) if url is not None
    )
