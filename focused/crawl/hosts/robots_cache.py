"""The robots.txt rules of each site, stored with its host's state.

http and https of a host are two sites with rules of their own (RFC 9309 section 2.3). Rules are
persistent until they expire, after at most 24 h (section 2.4); the rules of recently used hosts are
kept parsed. ``focused/crawl/purposes.py`` obeys them before a request is made, and
:mod:`focused.scrapy_addon.access_checks` before it is sent.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from focused.frontier.host import Host
from focused.frontier.host_table import HostTable
from focused.web.page import Failed, FailureKind, Fetched, Outcome
from focused.web.robots.robots_rules import (
    MAX_AGE_S,
    MIN_AGE_S,
    UNAVAILABLE,
    RobotsFile,
    RobotsRules,
    is_long_robots_file,
    parse_robots_body,
    product_token,
    rules_from_fetch,
    rules_while_unreachable,
)
from focused.web.urls import robots_url

_MAX_CACHED_SITES = 2_000
MAX_CACHED_BYTES = 64_000_000
"""Memory for parsed rules."""
MAX_REDIRECTS = 5


class RobotsCache:
    """Decides per host and URL; ``obey`` False allows everything."""

    def __init__(self, hosts: HostTable, user_agent: str, *, obey: bool) -> None:
        self._hosts = hosts
        self._user_agent = user_agent
        self._obey = obey
        self._parsed: OrderedDict[tuple[str, str], tuple[RobotsRules, int]] = OrderedDict()
        self._parsed_bytes = 0

    def needs_fetch(self, host: Host, url: str, now: float) -> bool:
        """Whether robots.txt has to be fetched before ``url``."""
        if not self._obey:
            return False
        rules = self._rules(host, _scheme(url))
        return rules is None or now >= rules.expires_at or not rules.is_for(self._user_agent)

    def allows(self, host: Host, url: str) -> bool:
        """Whether the site's rules allow ``url``; True without rules."""
        if not self._obey:
            return True
        rules = self._rules(host, _scheme(url))
        return rules is None or rules.allows(url, self._user_agent)

    def learn(
        self, host: Host, url: str, outcome: Outcome, now: float, parsed: RobotsFile | None = None
    ) -> RobotsRules:
        """Store the rules that the fetched robots.txt of ``url``'s site means.

        Of long files only the rules for our user agent; ``parsed`` if they were parsed already.
        """
        if parsed is None and isinstance(outcome, Fetched) and is_long_robots_file(outcome):
            parsed = parse_robots_body(outcome.body, product_token(self._user_agent))
        rules = rules_from_fetch(outcome, now, parsed)
        self._keep(host, url, rules)
        return rules

    def sitemaps(self, host: Host, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the site's rules name."""
        rules = self._rules(host, _scheme(url))
        return () if rules is None else rules.sitemaps(robots_url(url))

    def record_unreachable(self, host: Host, url: str, now: float) -> None:
        """Remember since when the site's robots.txt has been unreachable."""
        known = self._rules(host, _scheme(url))
        if known is None or known.unreachable_since is None:
            silent = rules_while_unreachable(known, now)
            # The copy takes effect when all tries are spent, not before.
            expires_at = now if known is None else known.expires_at
            self._keep(host, url, replace(silent, expires_at=expires_at))

    def may_fetch_without_robots(self, host: Host, url: str, now: float) -> bool:
        """Whether the site may be requested although all tries for its robots.txt failed.

        Either by an expired copy or after 30 days of silence.
        """
        rules = rules_while_unreachable(self._rules(host, _scheme(url)), now)
        self._keep(host, url, rules)
        return rules.came_from_server

    def extend_until(self, host: Host, url: str, due_at: float, now: float) -> None:
        """Extend the rules beyond ``due_at``, by a day at most.

        Otherwise a host whose pause is longer than its rules last is asked for robots.txt forever.
        """
        rules = self._rules(host, _scheme(url))
        needed = min(due_at + MIN_AGE_S, now + MAX_AGE_S)
        if rules is not None and rules.came_from_server and now < rules.expires_at < needed:
            self._keep(host, url, replace(rules, expires_at=needed))

    def has_rules(self, host: Host) -> bool:
        """Whether a robots.txt of the host was ever fetched."""
        kept = self._hosts.robots(host).values()
        return any(RobotsRules.from_state(state).came_from_server for state in kept)

    def crawl_delay_s(self, rules: RobotsRules) -> float:
        """Return the crawl-delay for our user agent, from 0 to 12 h."""
        return rules.crawl_delay_s(self._user_agent) or 0.0

    def _rules(self, host: Host, scheme: str) -> RobotsRules | None:
        found = self._parsed.get((host.name, scheme))
        if found is not None:
            return found[0]
        kept = self._hosts.robots(host).get(scheme)
        if kept is None:
            return None
        rules = RobotsRules.from_state(kept)
        self._remember((host.name, scheme), rules)
        return rules

    def _keep(self, host: Host, url: str, rules: RobotsRules) -> None:
        self._hosts.keep_robots(host, _scheme(url), rules.to_state())
        self._remember((host.name, _scheme(url)), rules)

    def _remember(self, site: tuple[str, str], rules: RobotsRules) -> None:
        size = rules.memory_bytes(self._user_agent)
        before = self._parsed.pop(site, None)
        self._parsed_bytes += size - (before[1] if before else 0)
        self._parsed[site] = rules, size
        while len(self._parsed) > _MAX_CACHED_SITES or self._parsed_bytes > MAX_CACHED_BYTES:
            _, (_, dropped) = self._parsed.popitem(last=False)
            self._parsed_bytes -= dropped


def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()


def unreachable_reason(outcome: Outcome) -> FailureKind | None:
    """Return why robots.txt was unreachable (server error, network), or None.

    RFC 9309 section 2.3.1.4 then disallows the whole site.
    """
    if isinstance(outcome, Failed):
        return None if outcome.kind in UNAVAILABLE else outcome.kind
    return None
