"""When a host may be asked again.

Pure arithmetic on what the host did last: no clock, no network. The next
request waits for the longest of the configured delay, the host's own
crawl-delay, what it asked for with Retry-After (RFC 9110 section 10.2.3), and
a doubling back-off while it fails.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_BACKOFF_S = 3600.0
_FIRST_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class HostPace:
    """One host's clock. ``failures`` counts consecutive troubles of the host.

    ``times_aside`` counts how often in a row it was set aside for them.
    """

    due_at: float = 0.0
    failures: int = 0
    crawl_delay_s: float = 0.0
    times_aside: int = 0


def after_answer(pace: HostPace, now: float, delay_s: float) -> HostPace:
    """The host answered in order: ask again after the plain delay."""
    return HostPace(now + max(delay_s, pace.crawl_delay_s), 0, pace.crawl_delay_s)


def after_trouble(
    pace: HostPace, now: float, delay_s: float, retry_after_s: float | None
) -> HostPace:
    """The host throttled, failed or could not be reached: back off, doubling.

    Retry-After is believed up to :data:`MAX_BACKOFF_S`.
    """
    failures = pace.failures + 1
    backoff_s = max(_FIRST_BACKOFF_S, delay_s) * 2.0 ** min(failures - 1, 12)
    wait_s = max(delay_s, pace.crawl_delay_s, backoff_s, retry_after_s or 0.0)
    return HostPace(now + min(wait_s, MAX_BACKOFF_S), failures, pace.crawl_delay_s)
