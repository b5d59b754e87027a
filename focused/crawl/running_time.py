"""How long a crawl has run, all its sessions together."""

from __future__ import annotations

from focused.crawl.counters import Counters


class RunningTime:
    """Seconds between a session's first step and now, added to those of earlier sessions."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._since: float | None = None

    def begin(self, now: float) -> bool:
        """The session takes a step; the first counts. Return whether it is that."""
        first = self._since is None
        if first:
            self._since = now
        return first

    def so_far_s(self, now: float) -> float:
        """The seconds until now."""
        return self._counters.active_s + (0.0 if self._since is None else now - self._since)

    def keep(self, now: float) -> None:
        """Write them into the counters."""
        self._counters.active_s = self.so_far_s(now)
        if self._since is not None:
            self._since = now
