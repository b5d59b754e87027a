"""How hosts are treated after what they answered: pace, robots.txt rules, budgets, giving up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from focused.crawl.counters import Counters
from focused.crawl.failures import RULES, HostEffect
from focused.crawl.given_up import GivenUpHosts
from focused.crawl.mirrors import Mirrors
from focused.crawl.robots_gate import RobotsGate, host_is_unreachable
from focused.crawl.spending import DirectoryBudget
from focused.crawl.steps import Settled
from focused.frontier.frontier import Frontier
from focused.frontier.host import Host
from focused.frontier.politeness import (
    HostPace,
    after_answer,
    after_interruption,
    after_trouble,
    rest_after,
    set_aside,
)
from focused.frontier.queued import QueuedLink
from focused.frontier.tables import Tables
from focused.frontier.turns import HostLimits
from focused.topic import Scope, Topic
from focused.web.page import Failed, FailureKind, Fetched, Outcome
from focused.web.url import host_of, normalise

_TROUBLES_UNTIL_SET_ASIDE = 8
# With an hour first, and twice as long each time, an outage of seven hours is outlived.
_TIMES_ASIDE = 3
_NO_HOST_AGAIN_S = 60.0
_MAX_SITEMAPS = 20
_COUNTED_ONLY = (
    *(FailureKind.DIRECTORY_BUDGET, FailureKind.MIRROR, FailureKind.ALIAS, FailureKind.TRAP),
)


class HostCare:
    """Decides when and whether a host is asked again."""

    def __init__(
        self,
        topic: Topic,
        counters: Counters,
        tables: Tables,
        frontier: Frontier,
        under_way: Callable[[str], bool],
    ) -> None:
        """``under_way`` tells whether a URL is being asked for."""
        self._politeness = topic.politeness
        self._limits = host_limits(topic.scope)
        self._counters = counters
        self._hosts = hosts = frontier.hosts
        self._with_sitemaps = seed_hosts(topic) if topic.seeds.robots_sitemaps else frozenset()
        self._robots = RobotsGate(hosts, topic.politeness.user_agent, obey=topic.politeness.robots)
        self._given_up = GivenUpHosts(tables)
        self._mirrors_wanted = topic.scope.mirrors
        self.mirrors = Mirrors(tables, frontier.known_among, under_way)
        self._directories = DirectoryBudget(topic.scope.max_pages_per_directory, tables)
        self._missed: set[str] = set()
        self._suspended: dict[str, FailureKind] = {}
        self._newly_suspended: dict[str, FailureKind] = {}

    def must_ask_robots(self, host: Host, url: str, now: float) -> bool:
        """Whether robots.txt has to be fetched before ``url``."""
        return self._robots.must_ask(host, url, now)

    def robots_allow(self, host: Host, url: str) -> bool:
        """Whether the rules known let us fetch ``url``."""
        return self._robots.allows(host, url)

    def refusal(self, host: Host, link: QueuedLink) -> FailureKind | None:
        """Why ``link`` is not to be asked for, nor its robots.txt; None when it may be."""
        given_up = self._given_up.why(host.name)
        if given_up is not None:
            return given_up
        # A driver's own request is for that very URL.
        if self._directories.spent(link.url):
            return FailureKind.DIRECTORY_BUDGET
        asks = self._mirrors_wanted and not link.payload
        return FailureKind.MIRROR if asks and self.mirrors.refuses(link) else None

    def closed(self, url: str) -> str | None:
        """Why a link to ``url`` need not be queued: host or directory is done with."""
        if not (self._given_up or self._limits != HostLimits() or self._directories.limited):
            return None
        host = self._hosts.known(host_of(url))
        if host is None:
            return None
        if self._given_up.why(host.name) is not None:
            return "host given up"
        if self._limits.reached(host):
            return "host or address budget spent"
        return "directory budget spent" if self._directories.spent(url) else None

    def take_newly_suspended(self) -> Mapping[str, FailureKind]:
        """The hosts that were suspended or given up since the last call, and why."""
        taken, self._newly_suspended = self._newly_suspended, {}
        return taken

    def link_came(self, name: str, now: float) -> None:
        """A driver's own request was queued: its host may be suspended already."""
        trouble = self._suspended.get(name)
        if trouble is None:
            return
        if self._hosts.get(name).pace.due_at > now:
            self._newly_suspended[name] = trouble
        else:
            del self._suspended[name]

    def is_open(self, name: str) -> bool:
        """Whether :meth:`closed` says nothing of any link to that host."""
        if self._directories.limited:
            return False
        if not self._given_up and self._limits == HostLimits():
            return True
        host = self._hosts.known(name)
        return host is None or not (
            self._given_up.why(name) is not None or self._limits.reached(host)
        )

    def has_row(self, host: Host, refusal: FailureKind) -> bool:
        """Whether a link refused without a request is told one by one, or counted only."""
        if refusal is FailureKind.ROBOTS:
            return True
        return refusal not in _COUNTED_ONLY and self._given_up.tell(host.name)

    def fetched(self, host: Host, url: str, settled: Settled) -> None:
        """A page of the host came, which may repeat an earlier one."""
        self._hosts.count_fetched(host)
        self._directories.fetched(url)
        self.mirrors.fetched(url, settled.duplicate_of, same_as=settled.same_as)

    def answered(self, url: str, outcome: Outcome) -> None:
        """Take in the address that the answer to a request for ``url`` came from."""
        if outcome.address:
            self.stands_at(self._hosts.get(host_of(url)), outcome.address)

    def stands_at(self, host: Host, address: str) -> None:
        """The host was found at the address; hosts there are asked as one, if they are to be."""
        if self._politeness.per_address:
            self._hosts.stands_at(host, address)

    def pace_after(self, host: Host, outcome: Outcome, now: float) -> HostPace:
        """When the host may be asked again after ``outcome``; set aside when it only fails."""
        if isinstance(outcome, Failed) and RULES[outcome.kind].host_trouble:
            trouble = self._own_trouble(host, outcome)
            return self._after_trouble(host, trouble, now, _TROUBLES_UNTIL_SET_ASIDE)
        self._answers(host)
        return after_answer(host.pace, now, self._delay_s(host), self._rest_s(outcome))

    def resume(self, interrupted: Iterable[tuple[Host, float]]) -> None:
        """Hosts that were being asked, since when, as the last process died: their delay holds."""
        for host, asked_at in interrupted:
            host.pace = after_interruption(host.pace, asked_at, self._delay_s(host))
            self._hosts.refresh(host, asked_at)

    def touch(self, host: Host, now: float, outcome: Outcome | None = None) -> None:
        """A request that is not the host's own link is sent now, or was, and brought ``outcome``.

        The host's delay begins anew.
        """
        rest = 0.0 if outcome is None else self._rest_s(outcome)
        host.pace = after_interruption(host.pace, now, max(self._delay_s(host), rest))

    def note_robots(self, host: Host, url: str, outcome: Outcome, now: float) -> None:
        """Take in what the request for the robots.txt of ``url``'s site brought."""
        self._counters.robots_fetched += 1
        if isinstance(outcome, Failed) and host_is_unreachable(outcome):
            host.pace = self._after_silence(host, url, self._own_trouble(host, outcome), now)
            self._robots.outlast(host, url, host.pace.due_at, now)
            return
        self._answers(host)
        rules = self._robots.learn(host, url, outcome, now)
        pace = replace(host.pace, crawl_delay_s=self._robots.crawl_delay_s(rules))
        pace = after_answer(pace, now, self._delay_s(host), self._rest_s(outcome))
        # That robots.txt comes does not make a host well whose pages do not.
        # Nor does one that was kept elsewhere end the pause that its own host asked for.
        due_at = max(pace.due_at, host.pace.due_at)
        host.pace = replace(pace, due_at=due_at, times_aside=host.pace.times_aside)
        self._robots.outlast(host, url, host.pace.due_at, now)

    def sitemaps(self, host: Host, url: str) -> Sequence[str]:
        """The sitemaps that are to be seeds: named by the robots.txt of ``url``'s site, 20 at most.

        None where the host is no seed's, or the topic does not want them.
        """
        if host.name not in self._with_sitemaps:
            return ()
        return self._robots.sitemaps(host, url)[:_MAX_SITEMAPS]

    def _after_silence(self, host: Host, url: str, failed: Failed, now: float) -> HostPace:
        """The pace after a robots.txt that could not be had: its host is left alone, for now."""
        politeness = self._politeness
        if failed.kind is not FailureKind.NO_HOST:
            self._robots.learn_silence(host, url, now)
            tries_spent = host.pace.failures + 1 >= politeness.max_tries
            if tries_spent and self._robots.outlives_silence(host, url, now):
                rest = rest_after(failed.elapsed_s, politeness.fetch_time_factor)
                delay_s = self._delay_s(host)
                return after_trouble(host.pace, now, delay_s, failed.retry_after_s, rest)
        return self._after_trouble(host, failed, now, politeness.max_tries)

    def _after_trouble(self, host: Host, failed: Failed, now: float, at_most: int) -> HostPace:
        """The pace after one trouble more, of which the host is granted ``at_most`` in a row."""
        politeness = self._politeness
        rest = rest_after(failed.elapsed_s, politeness.fetch_time_factor)
        pace = after_trouble(host.pace, now, self._delay_s(host), failed.retry_after_s, rest)
        effect = RULES[failed.kind].host
        if effect is HostEffect.GIVEN_UP:
            return self._give_up(host, failed.kind, now)
        if effect is HostEffect.ONE_MORE_CHANCE and politeness.set_aside_s:
            # Name servers err: such a host is asked once more, and no hours are waited for it.
            # Where no host is set aside no hours are waited anyway: a trouble like any other.
            if host.name in self._missed:
                return self._give_up(host, failed.kind, now)
            self._missed.add(host.name)
            self._suspend(host, failed.kind)
            again_at = now + min(_NO_HOST_AGAIN_S, politeness.set_aside_s)
            return replace(pace, due_at=max(pace.due_at, again_at))
        if pace.failures < at_most:
            return pace
        if politeness.set_aside_s == 0 or pace.times_aside >= _TIMES_ASIDE:
            return self._give_up(host, failed.kind, now)
        self._suspend(host, failed.kind)
        return set_aside(pace, now, politeness.set_aside_s)

    def _answers(self, host: Host) -> None:
        self._missed.discard(host.name)
        self._suspended.pop(host.name, None)

    def _suspend(self, host: Host, trouble: FailureKind) -> None:
        self._suspended[host.name] = self._newly_suspended[host.name] = trouble

    def _give_up(self, host: Host, trouble: FailureKind, now: float) -> HostPace:
        self._given_up.add(host.name, trouble)
        self._missed.discard(host.name)
        # Its links are settled without asking it, so nothing is to be waited for.
        return HostPace(now, 0, host.pace.crawl_delay_s)

    def _rest_s(self, outcome: Outcome) -> float:
        """How long to spare a host that answered: by the answer's time, or as it asked."""
        asked_s = None if isinstance(outcome, Fetched) else outcome.retry_after_s
        return rest_after(outcome.elapsed_s, self._politeness.fetch_time_factor, asked_s)

    def _delay_s(self, host: Host) -> float:
        return self._politeness.delay_of(host.name)

    def _own_trouble(self, host: Host, failed: Failed) -> Failed:
        """A host that answered before exists, whatever the name service says of it now.

        So does one whose robots.txt is kept on another host, which does not. One that is kept
        where nobody outside can connect to is out of reach (RFC 9309 section 2.3.1.4): there are
        rules, and they are not known.
        """
        elsewhere = host_of(failed.url) != host.name
        if failed.kind is FailureKind.PRIVATE_ADDRESS and elsewhere:
            return replace(failed, kind=FailureKind.CONNECT)
        if failed.kind is not FailureKind.NO_HOST:
            return failed
        if elsewhere or host.fetched or self._robots.has_answered(host):
            return replace(failed, kind=FailureKind.DNS)
        return failed


def host_limits(scope: Scope) -> HostLimits:
    """The limits of the scope that a frontier keeps."""
    return HostLimits(scope.max_pages_per_host, scope.max_pages_per_address)


def seed_hosts(topic: Topic) -> frozenset[str]:
    """The hosts of the topic's seeds."""
    return frozenset(host_of(url) for url in map(normalise, topic.seeds.urls) if url is not None)
