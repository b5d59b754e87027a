"""What a crawl waits for: hosts that rest."""

from __future__ import annotations

from focused.frontier.frontier import Hosts
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


def long_delays_s(hosts: Hosts) -> dict[str, float]:
    """The hosts with links whose crawl-delay is above :data:`LONG_DELAY_S`. Linear in hosts."""
    return {host.name: host.pace.crawl_delay_s for host in hosts if _has_long_delay(host)}


def only_resting(hosts: Hosts, until: float | None, now: float) -> int:
    """How many hosts with links are in back-off, set aside or have a long crawl-delay.

    When no other host has links and ``until`` is worth telling; else 0. Linear in hosts.
    """
    if until is None or until - now < _WORTH_TELLING_S:
        return 0
    resting = sum(
        1 for host in hosts if _has_long_delay(host) or (host.in_turn and host.pace.failures)
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


def _has_long_delay(host: Host) -> bool:
    return host.in_turn and host.pace.crawl_delay_s > LONG_DELAY_S
