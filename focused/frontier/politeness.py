"""When a host may be asked again.

Pure arithmetic on what the host did last: no clock, no network. The next
request waits for the longest of the configured delay, the host's own
crawl-delay, what it asked for with Retry-After (RFC 9110 section 10.2.3),
a multiple of the time that its last answer took (Heydon and Najork 1999:
Mercator waited ten times as long), and a doubling back-off while it fails. A
host that only fails is set aside for hours, longer each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX_BACKOFF_S = 3600.0
MAX_ASIDE_S = 86_400.0
_FIRST_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class HostPace:
    """One host's clock.

    ``failures`` counts consecutive troubles of the host, ``times_aside`` how
    often it was set aside since a page of it came in order.
    """

    due_at: float = 0.0
    failures: int = 0
    crawl_delay_s: float = 0.0
    times_aside: int = 0

    @property
    def is_aside(self) -> bool:
        """Whether the host was set aside and has not answered since."""
        return self.times_aside > 0 and self.failures > 0


def rest_after(fetch_s: float, factor: float, asked_s: float | None = None) -> float:
    """How long to spare a host whose answer took ``fetch_s``: ``factor`` times that.

    Or as long as it ``asked_s`` for, if that is longer. From 0 to :data:`MAX_BACKOFF_S`.
    """
    return min(max(fetch_s * factor, asked_s or 0.0, 0.0), MAX_BACKOFF_S)


def after_answer(pace: HostPace, now: float, delay_s: float, rest_s: float = 0.0) -> HostPace:
    """The host answered in order: ask again after the longest of the delays."""
    return HostPace(now + max(delay_s, pace.crawl_delay_s, rest_s), 0, pace.crawl_delay_s)


def after_trouble(
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


def set_aside(pace: HostPace, now: float, first_s: float) -> HostPace:
    """The host only fails: leave it for ``first_s``, twice as long each time, a day at most.

    Its troubles stay counted: one more after that sets it aside again. Never
    sooner than its ``pace`` allowed.
    """
    aside_s = min(first_s * 2.0 ** min(pace.times_aside, 32), MAX_ASIDE_S)
    return replace(pace, due_at=max(pace.due_at, now + aside_s), times_aside=pace.times_aside + 1)


def after_interruption(pace: HostPace, asked_at: float, delay_s: float) -> HostPace:
    """The host was asked at ``asked_at`` by a process that died: what it answered is not known."""
    return replace(pace, due_at=max(pace.due_at, asked_at + max(delay_s, pace.crawl_delay_s)))
