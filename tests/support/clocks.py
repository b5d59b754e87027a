"""A clock of a crawl that a test reads from a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ReadClock:
    """Reads the time from ``now``; its seconds are ``speed`` times as short as real ones."""

    now: Callable[[], float]
    speed: float = 1.0

    def __call__(self) -> float:
        return self.now()

    def real_s(self, duration_s: float) -> float:
        return duration_s / self.speed

    def advance_to(self, last: float) -> None:
        assert self.now() >= last
