"""What a server's own access log tells of a crawler's manners."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

ROBOTS = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Access:
    """One request: from its first line to the last byte of its answer, in seconds of one clock.

    ``status`` is 0 when the connection was cut; ``retry_after_s`` is what the answer asked for.
    """

    start: float
    end: float
    host: str
    address: str
    path: str
    status: int = 200
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What was to be kept. ``delays``, ``crawl_delays`` and ``closed`` (path prefixes) by host.

    ``slack_s``: what the clocks of two processes may differ by.
    """

    delay_s: float
    delays: Mapping[str, float] = field(default_factory=dict)
    crawl_delays: Mapping[str, float] = field(default_factory=dict)
    closed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fetch_time_factor: float = 0.0
    slack_s: float = 0.02

    def delay_of(self, host: str) -> float:
        return self.delays.get(host, self.delay_s)

    def pause_after(self, access: Access, *, rules_known: bool) -> float:
        """How long the host is to be left alone after the access."""
        return max(
            self.delay_of(access.host),
            self.crawl_delays.get(access.host, 0.0) if rules_known else 0.0,
            access.retry_after_s,
            self.fetch_time_factor * (access.end - access.start),
        )


def violations(accesses: Sequence[Access], rules: Rules) -> list[str]:
    """Every breach of robots.txt, delay or single connection, in words; empty when all was kept."""
    hosts: dict[str, list[Access]] = {}
    addresses: dict[str, list[Access]] = {}
    for access in sorted(accesses, key=lambda each: each.start):
        hosts.setdefault(access.host, []).append(access)
        addresses.setdefault(access.address, []).append(access)
    found: list[str] = []
    for host, asked in hosts.items():
        found += _against_robots(host, asked, rules)
        found += _too_soon_at_host(asked, rules)
    for address, asked in addresses.items():
        found += _too_soon_at_address(address, asked, rules)
    return found


def _against_robots(host: str, asked: Sequence[Access], rules: Rules) -> Iterator[str]:
    if asked[0].path != ROBOTS:
        yield f"{host}: {asked[0].path} was asked for before {ROBOTS}"
    closed = tuple(rules.closed.get(host, ()))
    for access in asked:
        if closed and access.path.startswith(closed):
            yield f"{host}: {access.path} is disallowed"


def _too_soon_at_host(asked: Sequence[Access], rules: Rules) -> Iterator[str]:
    rules_known = False
    for before, after in pairwise(asked):
        rules_known = rules_known or before.path == ROBOTS
        pause_s = rules.pause_after(before, rules_known=rules_known)
        yield from _too_soon(before.host, before, after, pause_s - rules.slack_s)


def _too_soon_at_address(address: str, asked: Sequence[Access], rules: Rules) -> Iterator[str]:
    for before, after in pairwise(asked):
        if before.host != after.host:
            pause_s = rules.delay_of(before.host) - rules.slack_s
            yield from _too_soon(address, before, after, pause_s)


def _too_soon(whom: str, before: Access, after: Access, pause_s: float) -> Iterator[str]:
    gap_s = after.start - before.end
    pair = f"{after.host}{after.path} after {before.host}{before.path}"
    if gap_s < 0:
        yield f"{whom}: {pair}: two connections at once, for {-gap_s:.3f} s"
    elif gap_s < pause_s:
        yield f"{whom}: {pair}: {gap_s:.3f} s later, not {pause_s:.3f}"
