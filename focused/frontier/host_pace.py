"""When a host may be requested again: its delay, back-off and suspension.

Pure arithmetic, no clock. The next request waits for the longest of the configured delay, the
host's crawl-delay, Retry-After (RFC 9110 section 10.2.3), a multiple of the last response time
(Mercator waited ten times as long: Heydon and Najork 1999), and an exponential back-off while the
host fails. A host that only fails is suspended for hours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


def pause_after(fetch_s: float, factor: float, retry_after_s: float | None = None) -> float:
    """The pause after a response: ``factor`` times ``fetch_s``, or Retry-After if longer.

    From 0 to :data:`MAX_BACKOFF_S`.
    """
    return min(max(fetch_s * factor, retry_after_s or 0.0, 0.0), MAX_BACKOFF_S)


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


def after_interruption(pace: HostPace, requested_at: float, delay_s: float) -> HostPace:
    """The pace after a process died with a request in flight."""
    return replace(pace, due_at=max(pace.due_at, requested_at + max(delay_s, pace.crawl_delay_s)))
