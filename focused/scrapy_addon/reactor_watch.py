"""How long the reactor is kept from its other work: the lateness of a clock that ticks in it."""

from __future__ import annotations

import time

from scrapy.utils.asyncio import CallLaterResult, call_later

LONG_S = 0.05
"""Longer is too long: connections time out, turns are missed, Ctrl-C is not heard."""

_EVERY_S = 0.02


class ReactorWatch:
    """Ticks, and notes how late it was. What the system gave to other processes counts."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.long_times = 0
        self._due_at = 0.0
        self._next: CallLaterResult | None = None

    def start(self) -> None:
        """Begin; the reactor must run."""
        self._due_at = time.perf_counter() + _EVERY_S
        self._next = call_later(_EVERY_S, self._tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _tick(self) -> None:
        late_s = time.perf_counter() - self._due_at
        self.longest_s = max(self.longest_s, late_s)
        self.long_times += late_s > LONG_S
        self.start()
