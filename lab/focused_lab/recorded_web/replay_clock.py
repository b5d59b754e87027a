"""The clock of a replay whose pages change; it may run faster than real time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from focused.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ReplayClock:
    """``start + (real time - real_start) * speed``, in seconds since the epoch.

    Processes of one machine with equal values read the same time. ``real_time`` returns seconds
    since the epoch.
    """

    start: float
    real_start: float
    speed: float = 1.0
    real_time: Callable[[], float] = field(default=time.time, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a value that is not finite, or a speed not above 0."""
        if not all(map(math.isfinite, (self.start, self.real_start, self.speed))):
            raise ConfigurationError(f"clock {str(self)!r}: all values must be finite")
        if self.speed <= 0:
            raise ConfigurationError(f"clock {str(self)!r}: the speed must be above 0")

    def __call__(self) -> float:
        """Return the time."""
        return self.start + (self.real_time() - self.real_start) * self.speed

    def real_s(self, duration_s: float) -> float:
        """Return how many real seconds pass during ``duration_s`` of this clock."""
        return duration_s / self.speed

    def advance_to(self, last: float) -> None:
        """Check that the clock has reached ``last``, the end of the previous session.

        Raises ConfigurationError if not: the crawl cannot set the server's clock forward.
        """
        if self() < last:
            raise ConfigurationError(
                f"the clock of the replayed web is {last - self():.0f} s behind the crawl's last "
                "activity: serve the web with a later --day, or start the crawl anew"
            )

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        return f"{self.start!r},{self.real_start!r},{self.speed!r}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``START,REAL_START,SPEED``. Raises ConfigurationError."""
        try:
            start, real_start, speed = map(float, text.split(","))
        except ValueError:
            raise ConfigurationError(
                f"clock {text!r}: expected START,REAL_START,SPEED in seconds since the epoch, as "
                "'focused web serve --changes' prints it"
            ) from None
        return cls(start, real_start, speed)
