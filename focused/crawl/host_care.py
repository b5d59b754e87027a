"""How hosts are treated after what they answered: pace, robots.txt rules, giving up."""

from __future__ import annotations

from focused.crawl.counters import Counters
from focused.crawl.failures import RULES, HostsGivenUp
from focused.crawl.robots_gate import RobotsGate, host_is_unreachable
from focused.frontier.frontier import Hosts
from focused.frontier.host import Host
from focused.frontier.politeness import HostPace, after_answer, after_trouble
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Outcome

_TROUBLES_UNTIL_SET_ASIDE = 8


class HostCare:
    """Decides when and whether a host is asked again; writes nothing but the host's state."""

    def __init__(self, topic: Topic, counters: Counters, hosts: Hosts) -> None:
        self._politeness = topic.politeness
        self._max_pages = topic.scope.max_pages_per_host
        self._counters = counters
        self._robots = RobotsGate(hosts, topic.politeness.user_agent, obey=topic.politeness.robots)
        self._given_up = HostsGivenUp()

    def must_ask_robots(self, host: Host, url: str, now: float) -> bool:
        """Whether robots.txt has to be fetched before ``url``."""
        return self._robots.must_ask(host, url, now)

    def robots_allow(self, host: Host, url: str) -> bool:
        """Whether the rules known let us fetch ``url``."""
        return self._robots.allows(host, url)

    def given_up(self, host: Host, now: float) -> FailureKind | None:
        """Why the host is set aside now, or None."""
        return self._given_up.get(host.name, now)

    def refusal(self, host: Host, url: str) -> FailureKind | None:
        """Why ``url`` may not be asked for though its host may; None when it may."""
        if self._max_pages is not None and host.fetched >= self._max_pages:
            return FailureKind.HOST_BUDGET
        return None if self._robots.allows(host, url) else FailureKind.ROBOTS

    def pace_after(self, host: Host, outcome: Outcome, now: float) -> HostPace:
        """When the host may be asked again after ``outcome``; set aside when it only fails."""
        if not isinstance(outcome, Failed) or not RULES[outcome.kind].host_trouble:
            return after_answer(host.pace, now, self._politeness.delay_s)
        pace = after_trouble(host.pace, now, self._politeness.delay_s, outcome.retry_after_s)
        if pace.failures >= _TROUBLES_UNTIL_SET_ASIDE:
            self._give_up(host, outcome.kind, now)
            return host.pace
        return pace

    def touch(self, host: Host, now: float) -> None:
        """A request that is not the host's own link is sent now: its delay begins anew."""
        host.pace = after_answer(host.pace, now, self._politeness.delay_s)

    def note_robots(self, host: Host, url: str, outcome: Outcome, now: float) -> None:
        """Take in what the request for the robots.txt of ``url``'s site brought."""
        self._counters.robots_fetched += 1
        delay_s = self._politeness.delay_s
        trouble = host_is_unreachable(outcome)
        if trouble is not None and isinstance(outcome, Failed):
            host.pace = after_trouble(host.pace, now, delay_s, outcome.retry_after_s)
            if host.pace.failures >= self._politeness.max_tries:
                self._give_up(host, trouble, now)
            return
        rules = self._robots.learn(host, url, outcome, now)
        pace = HostPace(host.pace.due_at, 0, self._robots.crawl_delay_s(rules))
        host.pace = after_answer(pace, now, delay_s)

    def _give_up(self, host: Host, trouble: FailureKind, now: float) -> None:
        self._given_up.add(host.name, trouble, now)
        # Its links are settled without asking it, so nothing is to be waited for.
        host.pace = HostPace(now, 0, host.pace.crawl_delay_s)
