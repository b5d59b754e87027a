"""What a crawl waits for, and what it leaves when it ends."""

from __future__ import annotations

from focused.frontier.frontier import Frontier, Hosts
from focused.frontier.host import Host

LONG_DELAY_S = 3600.0
"""A crawl-delay above it holds a crawl open for days: such hosts are told by name."""

# All hosts are looked at: that is for the idle, and a shorter wait is told by nobody.
_WORTH_TELLING_S = 5.0


def earlier(one: float | None, other: float | None) -> float | None:
    """The earlier of two times, either of which may not be known."""
    return min((time for time in (one, other) if time is not None), default=None)


def hosts_resting(hosts: Hosts) -> int:
    """How many hosts with links are in back-off or set aside. Linear in hosts."""
    return sum(1 for host in hosts if host.in_turn and host.pace.failures)


def has_long_delay(host: Host) -> bool:
    """Whether the host has links, and asks for a crawl-delay above :data:`LONG_DELAY_S`."""
    return host.in_turn and host.pace.crawl_delay_s > LONG_DELAY_S


def only_resting(hosts: Hosts, until: float | None, now: float) -> int:
    """How many hosts with links are in back-off, set aside or have a long crawl-delay.

    When no other host has links and ``until`` is worth telling; else 0. Linear in hosts.
    """
    if until is None or until - now < _WORTH_TELLING_S:
        return 0
    resting = sum(
        1 for host in hosts if has_long_delay(host) or (host.in_turn and host.pace.failures)
    )
    return resting if resting == hosts.with_links else 0


def none_in_time(hosts: Hosts, left_s: float, now: float) -> bool:
    """Whether hosts that rest alone (:func:`only_resting`) are left, due in ``left_s`` or later."""
    due_at = hosts.next_due_at()
    if due_at is None or due_at - now < left_s or hosts.busy:
        return False
    if not only_resting(hosts, due_at, now):
        return False
    return not any(host.in_turn and host.pace.due_at <= now for host in hosts)


def why_none_in_time(frontier: Frontier) -> str:
    """The reason for the end when :func:`none_in_time`."""
    hosts = [host for host in frontier.hosts if host.in_turn]
    links = sum(map(frontier.count, hosts))
    left = f"{_count(len(hosts), 'host')}, {_count(links, 'link')}"
    return f"only hosts are left that are not due before the time budget is spent: {left}"


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
