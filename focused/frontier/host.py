"""When a host may be asked again.

Pure arithmetic on what the host did last: no clock, no network. The next
request waits for the longest of the configured delay, the host's own
crawl-delay, what it asked for with Retry-After (RFC 9110 section 10.2.3),
a multiple of the time that its last answer took (Heydon and Najork 1999:
Mercator waited ten times as long), and a doubling back-off while it fails. A
host that only fails is set aside for hours, longer each time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

MAX_BACKOFF_S = 3600.0
MAX_SUSPENSION_S = 86_400.0
_FIRST_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class HostPace:
    """One host's clock.

    ``failures`` counts consecutive troubles of the host, ``suspensions`` how
    often it was set aside since a page of it came in order.
    """

    due_at: float = 0.0
    failures: int = 0
    crawl_delay_s: float = 0.0
    suspensions: int = 0

    @property
    def is_suspended(self) -> bool:
        """Whether the host was set aside and has not answered since."""
        return self.suspensions > 0 and self.failures > 0


def pause_after(fetch_s: float, factor: float, asked_s: float | None = None) -> float:
    """How long to spare a host whose answer took ``fetch_s``: ``factor`` times that.

    Or as long as it ``asked_s`` for, if that is longer. From 0 to :data:`MAX_BACKOFF_S`.
    """
    return min(max(fetch_s * factor, asked_s or 0.0, 0.0), MAX_BACKOFF_S)


def after_success(pace: HostPace, now: float, delay_s: float, rest_s: float = 0.0) -> HostPace:
    """The host answered in order: ask again after the longest of the delays."""
    return HostPace(now + max(delay_s, pace.crawl_delay_s, rest_s), 0, pace.crawl_delay_s)


def after_failure(
    pace: HostPace,
    now: float,
    delay_s: float,
    retry_after_s: float | None,
    rest_s: float = 0.0,
) -> HostPace:
    """The host throttled, failed or could not be reached: back off, doubling.

    Back-off, rest and Retry-After count up to :data:`MAX_BACKOFF_S`, delays in full.
    """
    failures = pace.failures + 1
    backoff_s = max(_FIRST_BACKOFF_S, delay_s) * 2.0 ** min(failures - 1, 12)
    passing_s = min(max(backoff_s, rest_s, retry_after_s or 0.0), MAX_BACKOFF_S)
    wait_s = max(delay_s, pace.crawl_delay_s, passing_s)
    return replace(pace, due_at=now + wait_s, failures=failures)


def suspend(pace: HostPace, now: float, first_s: float) -> HostPace:
    """The host only fails: leave it for ``first_s``, twice as long each time, a day at most.

    Its troubles stay counted: one more after that sets it aside again. Never
    sooner than its ``pace`` allowed.
    """
    aside_s = min(first_s * 2.0 ** min(pace.suspensions, 32), MAX_SUSPENSION_S)
    return replace(pace, due_at=max(pace.due_at, now + aside_s), suspensions=pace.suspensions + 1)


def after_interruption(pace: HostPace, asked_at: float, delay_s: float) -> HostPace:
    """The host was asked at ``asked_at`` by a process that died: what it answered is not known."""
    return replace(pace, due_at=max(pace.due_at, asked_at + max(delay_s, pace.crawl_delay_s)))


_ROW = struct.Struct(">QQddIdI")
"""Pages asked for, fetched, unproductive; due at, failures in a row, crawl delay in seconds, times waiting_hosts.

The address follows."""


@dataclass(slots=True, eq=False)
class Server:
    """The hosts at one address: one connection, one delay for all.

    ``waiting_hosts`` are hosts that wait for the server alone, a heap by worth:
    (-worth, due at, stamp, host). ``representative_stamp`` is the stamp of the one that was
    called from there and waits among the hosts that are due. ``busy`` counts fetches under way,
    ``fetched`` the pages of all ``hosts`` that stand here.
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
    """One host's state.

    ``best`` is the priority of its best link that is not under way, None when
    there is none; ``bonus`` is what is added to that. Of ``asked`` pages, those
    that failed included, ``fetched`` came; ``unproductive`` of late brought nothing
    (:func:`focused.frontier.priorities.unproductive_after`). ``leased`` is the place of
    the link under way in the host's queue, since ``leased_at``. ``in_turn``
    tells whether it has links that may be asked for, now or later; while it is
    ``reserved`` for a request past the frontier it is offered to nobody.
    """

    name: str
    number: int
    pace: HostPace = HostPace()
    asked: int = 0
    fetched: int = 0
    unproductive: float = 0.0
    best: float | None = None
    bonus: float = 0.0
    leased: bytes | None = None
    leased_at: float = 0.0
    reserved: bool = False
    stamp: int = 0
    in_turn: bool = False
    server: Server | None = None
    prefix: bytes = field(init=False)
    """Its number as the key of its rows."""

    def __post_init__(self) -> None:
        self.prefix = struct.pack(">I", self.number)

    @property
    def address(self) -> str:
        """Where the host stands, as far as is known; else empty."""
        return "" if self.server is None else self.server.address


def host_to_row(host: Host) -> bytes:
    """What is kept of a host, but for its name, number and links."""
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
    """Give a host what was kept of it; return its address."""
    host.asked, host.fetched, host.unproductive, *pace = _ROW.unpack_from(row)
    host.pace = HostPace(*pace)
    return row[_ROW.size :].decode()
