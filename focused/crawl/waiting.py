"""What a crawl waits for, and what it leaves when it ends."""

from __future__ import annotations

from focused.frontier.frontier import Frontier, Hosts

# All hosts are looked at: that is for the idle, and a shorter wait is told by nobody.
_WORTH_TELLING_S = 5.0


def earlier(one: float | None, other: float | None) -> float | None:
    """The earlier of two times, either of which may not be known."""
    return min((time for time in (one, other) if time is not None), default=None)


def hosts_resting(hosts: Hosts) -> int:
    """How many hosts with links are in back-off or set aside. Linear in hosts."""
    return sum(1 for host in hosts if host.in_turn and host.pace.failures)


def only_resting(hosts: Hosts, until: float | None, now: float) -> int:
    """The same when no other host has links and ``until`` is worth telling; else 0."""
    if until is None or until - now < _WORTH_TELLING_S:
        return 0
    resting = hosts_resting(hosts)
    return resting if resting == hosts.with_links else 0


def why_it_ends(frontier: Frontier) -> str:
    """Why nothing more is to be asked for: no link is left, or links of full hosts alone."""
    links = len(frontier)
    if not links:
        return "frontier is empty"
    hosts = sum(1 for _ in frontier.hosts.full())
    left = f"{_count(hosts, 'host')}, {_count(links, 'link')}"
    return f"only hosts are left whose budget is spent: {left}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
