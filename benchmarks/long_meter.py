"""Measure a long crawl by windows of pages: CPU by stage, memory, disk."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from machine import allocated_bytes, anonymous_mb

from focused.crawl import Crawl
from focused.crawl.crawl_stats import Stage, StageTimes
from focused.web.html.parse import parse_page
from focused.web.page import Fetched
from focused_lab.run_measures import peak_mb

_T = TypeVar("_T")
_SYNCING, _REST = "syncing", "rest"
STAGES = (*map(str, Stage), _SYNCING, _REST)
"""The crawl's stages, without those of the generated web and the driver."""
_PAGES_PER_LOOK = 25


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the crawl: ``pages`` had come by its end, ``fetched`` of them in it.

    ``stages_us`` is CPU per fetched page, by stage, in microseconds; ``gc_us`` is the part spent on
    garbage collection. ``yardstick_us`` is the mean time to parse a fixed page during the window:
    the machine's speed. Sizes are megabytes (10**6 bytes): ``anonymous_mb`` is the maximum,
    ``peak_mb`` includes mapped files, which the system can reclaim, since the crawl began.
    ``on_topic`` is a share; ``written_kb`` is kilobytes written per fetched page.
    """

    pages: int
    fetched: int
    settled: int
    stages_us: Mapping[str, float]
    gc_us: float
    yardstick_us: float
    wall_s: float
    anonymous_mb: float
    peak_mb: float
    state_mb: float
    harvest_mb: float
    links_waiting: int
    hosts: int
    on_topic: float
    written_kb: float

    @property
    def cpu_us(self) -> float:
        """All stages together."""
        return sum(self.stages_us.values())


@dataclass
class Meter:
    """Adds up the cost of a crawl's stages, and closes a window every ``every`` pages."""

    crawl: Crawl
    stages: StageTimes
    folder: Path
    every: int
    yardstick: Fetched
    windows: list[Window] = field(default_factory=list)
    _spent_s: float = 0.0
    _synced_s: float = 0.0
    _stages_before: Mapping[str, float] = field(default_factory=dict)
    _gc_s: float = 0.0
    _gc_began: float = 0.0
    _most_mb: float = 0.0
    _written_before: int = field(default_factory=lambda: _written_bytes())
    _yardstick_s: list[float] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)
    _before: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __enter__(self) -> Meter:
        gc.callbacks.append(self._collecting)
        return self

    def __exit__(self, *error: object) -> None:
        gc.callbacks.remove(self._collecting)

    def spent(self, call: Callable[[], _T]) -> _T:
        """Make a call of the crawl, timed by stage."""
        began = time.process_time()
        result = call()
        self._spent_s += time.process_time() - began
        return result

    def synced(self, call: Callable[[], object]) -> None:
        """Let the crawl sync its state to disk."""
        before_s = self._spent_s
        self.spent(call)
        self._synced_s += self._spent_s - before_s

    def look(self) -> Window | None:
        """Call it after each step. Close the window when it is full, and return it."""
        fetched = self.crawl.counters.fetched - self._before[0]
        if fetched > len(self._yardstick_s) * _PAGES_PER_LOOK:
            began = time.process_time()
            parse_page(self.yardstick)
            self._yardstick_s.append(time.process_time() - began)
            self._most_mb = max(self._most_mb, anonymous_mb())
        if fetched < self.every:
            return None
        window = self._window()
        self.windows.append(window)
        self._spent_s = self._synced_s = 0.0
        self._stages_before = dict(self.stages.seconds)
        self._gc_s = 0.0
        self._yardstick_s.clear()
        self._written_before = _written_bytes()
        self._most_mb = 0.0
        self._began = time.perf_counter()
        return window

    def _window(self) -> Window:
        counters = self.crawl.counters
        now = counters.fetched, counters.settled, counters.classified, counters.on_topic
        fetched, settled, judged, on_topic = (
            after - before for after, before in zip(now, self._before, strict=True)
        )
        self._before = now
        state = self.folder / "state"
        return Window(
            pages=counters.fetched,
            fetched=fetched,
            settled=settled,
            stages_us={name: spent / fetched * 1e6 for name, spent in self._by_stage().items()},
            gc_us=self._gc_s / fetched * 1e6,
            yardstick_us=sum(self._yardstick_s) / len(self._yardstick_s) * 1e6,
            wall_s=time.perf_counter() - self._began,
            anonymous_mb=self._most_mb,
            peak_mb=peak_mb() or 0.0,
            state_mb=allocated_bytes(state) / 1e6,
            harvest_mb=(allocated_bytes(self.folder) - allocated_bytes(state)) / 1e6,
            links_waiting=len(self.crawl.frontier),
            hosts=sum(1 for _ in self.crawl.frontier.hosts),
            on_topic=on_topic / judged if judged else 0.0,
            written_kb=(_written_bytes() - self._written_before) / fetched / 1e3,
        )

    def _by_stage(self) -> Mapping[str, float]:
        before = self._stages_before
        told = {name: s - before.get(name, 0.0) for name, s in self.stages.seconds.items()}
        rest = self._spent_s - self._synced_s - sum(told.values())
        return {**told, _SYNCING: self._synced_s, _REST: rest}

    def _collecting(self, phase: str, _: Mapping[str, Any]) -> None:
        if phase == "start":
            self._gc_began = time.process_time()
        else:
            self._gc_s += time.process_time() - self._gc_began


def mean_us(windows: Sequence[Window], stage: str | None = None) -> float:
    """CPU per page over several windows in microseconds, of one stage or of all."""
    pages = sum(window.fetched for window in windows)
    costs = (each.cpu_us if stage is None else each.stages_us[stage] for each in windows)
    total = sum(cost * each.fetched for cost, each in zip(costs, windows, strict=True))
    return total / pages if pages else 0.0


def yardstick_us(windows: Sequence[Window]) -> float:
    """The mean of the windows' yardsticks."""
    return sum(window.yardstick_us for window in windows) / len(windows) if windows else 0.0


def _written_bytes() -> int:
    """Bytes that this process has written to files; 0 if the system does not say."""
    try:
        told = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(told.partition("\nwchar: ")[2].partition("\n")[0] or 0)
