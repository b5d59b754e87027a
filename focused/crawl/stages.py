"""Where a crawl's time goes: seconds by stage, by a clock that the driver brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import TracebackType

Clock = Callable[[], float]


def stands_still() -> float:
    """A clock for who does not measure: a crawl then costs the same and tells nothing."""
    return 0.0


class Stage(StrEnum):
    """What is done for a page, in this order. The value is what reports print."""

    CHOOSING = "choosing"
    PARSING = "parsing"
    JUDGING = "judging"
    LIKENESS = "likeness"
    SCORING = "scoring"
    ARCHIVING = "archiving"
    QUEUEING = "queueing"
    LEARNING = "learning"
    COMMITTING = "committing"


class Lap:
    """A context manager that adds what its block took; a stage is in no other, nor in itself."""

    __slots__ = ("_began", "_clock", "seconds")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = 0.0
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = self._clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds += self._clock() - self._began


class Stages:
    """The seconds of one session of a crawl, by stage."""

    def __init__(self, clock: Clock = stands_still) -> None:
        self.clock = clock
        self._laps = {stage: Lap(clock) for stage in Stage}

    def __call__(self, stage: Stage) -> Lap:
        """Time a block: ``with stages(Stage.SCORING):``."""
        return self._laps[stage]

    def add(self, stage: Stage, seconds: float) -> None:
        """Add what was measured elsewhere, in a worker's process for instance."""
        self._laps[stage].seconds += seconds

    @property
    def seconds(self) -> Mapping[str, float]:
        """The seconds so far of all stages."""
        return {str(stage): lap.seconds for stage, lap in self._laps.items()}
