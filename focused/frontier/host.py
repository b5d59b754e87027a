"""Hosts of a frontier, and when a host may be requested again.

Pure arithmetic, no clock. The next request waits for the longest of the configured delay, the
host's crawl-delay, Retry-After (RFC 9110 section 10.2.3), a multiple of the last response time
(Mercator waited ten times as long: Heydon and Najork 1999), and an exponential back-off while the
host fails. A host that only fails is suspended for hours.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from focused.durations import DAY_S, HOUR_S

MAX_BACKOFF_S = HOUR_S
MAX_SUSPENSION_S = DAY_S
_FIRST_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class HostPace:
    """When a host is due.

    ``failures`` counts failures in a row, ``suspensions`` those since the last successful page.
    """

    due_at: float = 0.0
    failures: int = 0
    crawl_delay_s: float = 0.0
    suspensions: int = 0

    @property
    def is_suspended(self) -> bool:
        """Whether the host was suspended and has not answered since."""
        return self.suspensions > 0 and self.failures > 0


def pause_after(fetch_s: float, factor: float, asked_s: float | None = None) -> float:
    """The pause after a response: ``factor`` times ``fetch_s``, or Retry-After if longer.

    From 0 to :data:`MAX_BACKOFF_S`.
    """
    return min(max(fetch_s * factor, asked_s or 0.0, 0.0), MAX_BACKOFF_S)


def after_success(pace: HostPace, now: float, delay_s: float, rest_s: float = 0.0) -> HostPace:
    """The pace after a response: the longest of the delays."""
    return HostPace(now + max(delay_s, pace.crawl_delay_s, rest_s), 0, pace.crawl_delay_s)


def after_failure(
    pace: HostPace,
    now: float,
    delay_s: float,
    retry_after_s: float | None,
    rest_s: float = 0.0,
) -> HostPace:
    """The pace after a failure: back off, doubling each time.

    Back-off, pause and Retry-After are limited to :data:`MAX_BACKOFF_S`, delays are not.
    """
    failures = pace.failures + 1
    backoff_s = max(_FIRST_BACKOFF_S, delay_s) * 2.0 ** min(failures - 1, 12)
    passing_s = min(max(backoff_s, rest_s, retry_after_s or 0.0), MAX_BACKOFF_S)
    wait_s = max(delay_s, pace.crawl_delay_s, passing_s)
    return replace(pace, due_at=now + wait_s, failures=failures)


def suspend(pace: HostPace, now: float, first_s: float) -> HostPace:
    """Suspend the host for ``first_s``, twice as long each time, a day at most.

    Failures stay counted, so one more suspends it again. The host is never due sooner than before.
    """
    aside_s = min(first_s * 2.0 ** min(pace.suspensions, 32), MAX_SUSPENSION_S)
    return replace(pace, due_at=max(pace.due_at, now + aside_s), suspensions=pace.suspensions + 1)


def after_interruption(pace: HostPace, asked_at: float, delay_s: float) -> HostPace:
    """The pace after a process died with a request in flight."""
    return replace(pace, due_at=max(pace.due_at, asked_at + max(delay_s, pace.crawl_delay_s)))


_ROW = struct.Struct(">QQddIdI")
"""Pages requested, fetched, unproductive; due at, failures, crawl-delay, suspensions.

The address follows.
"""


@dataclass(slots=True, eq=False)
class Server:
    """The hosts at one address, which share a connection and a delay.

    ``waiting_hosts`` wait for the server alone: a heap of (-priority, due at, stamp, host).
    ``representative_stamp`` is the stamp of the one that was moved from there to the due hosts.
    ``busy`` counts fetches in flight, ``fetched`` the pages of all ``hosts``.
    """

    address: str
    due_at: float = 0.0
    busy: int = 0
    fetched: int = 0
    hosts: dict[Host, None] = field(default_factory=dict)
    waiting_hosts: list[tuple[float, float, int, Host]] = field(default_factory=list)
    representative_stamp: int = 0
    stamp: int = 0


@dataclass(slots=True, eq=False)
class Host:
    """The state of one host.

    ``best`` is the rank of its best link not in flight, or None; ``bonus`` is added to it.
    ``best_is_exempt`` is that link's ``is_exempt``.
    ``asked`` pages were settled, failures included; ``fetched`` came; ``unproductive`` is a running
    count, see :func:`focused.frontier.queued_link.unproductive_after`. ``leased`` is the queue key
    of the link in flight since ``leased_at``. ``in_turn``: it has links and budget left. While
    ``reserved`` for a direct request it is not offered.
    """

    name: str
    number: int
    pace: HostPace = HostPace()
    asked: int = 0
    fetched: int = 0
    unproductive: float = 0.0
    best: float | None = None
    best_is_exempt: bool = False
    bonus: float = 0.0
    leased: bytes | None = None
    leased_at: float = 0.0
    reserved: bool = False
    stamp: int = 0
    in_turn: bool = False
    server: Server | None = None
    prefix: bytes = field(init=False)
    """The host's number, as the key of its rows."""

    def __post_init__(self) -> None:
        self.prefix = struct.pack(">I", self.number)

    @property
    def address(self) -> str:
        """The address, or empty if unknown."""
        return "" if self.server is None else self.server.address


def host_to_row(host: Host) -> bytes:
    """Encode the host's state without name, number and links."""
    pace = host.pace
    row = _ROW.pack(
        host.asked,
        host.fetched,
        host.unproductive,
        pace.due_at,
        pace.failures,
        pace.crawl_delay_s,
        pace.suspensions,
    )
    return row + host.address.encode()


def restore_host(host: Host, row: bytes) -> str:
    """Restore the host's state from its row; return its address."""
    host.asked, host.fetched, host.unproductive, *pace = _ROW.unpack_from(row)
    host.pace = HostPace(*pace)
    return row[_ROW.size :].decode()
