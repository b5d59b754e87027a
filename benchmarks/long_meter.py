"""Measure a long crawl by windows of pages: CPU by stage, memory, disk; compare last with first."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
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
_COMPARED_PAGES = 100_000
_SHOWN = {stage: stage[:7] for stage in STAGES}
HEAD = (
    f"    pages us/page |{''.join(f'{name:>8}' for name in _SHOWN.values())} |    gc  yard |"
    " anon MB peak MB state MB WARC MB kB/page |   waiting  hosts on topic pages/s"
)


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
        fetched, settled, classified, on_topic = (
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
            on_topic=on_topic / classified if classified else 0.0,
            written_kb=(_written_bytes() - self._written_before) / fetched / 1e3,
        )

    def _by_stage(self) -> Mapping[str, float]:
        before = self._stages_before
        stages = {name: s - before.get(name, 0.0) for name, s in self.stages.seconds.items()}
        rest = self._spent_s - self._synced_s - sum(stages.values())
        return {**stages, _SYNCING: self._synced_s, _REST: rest}

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


def by_yardstick(windows: Sequence[Window]) -> float:
    """The cost of a page in yardsticks: the median, for other processes disturb some windows."""
    return median(window.cpu_us / window.yardstick_us for window in windows)


def flatness(windows: Sequence[Window], warm_up: int) -> dict[str, Any]:
    """The last pages' cost relative to the first after ``warm_up`` pages, by stage and in total.

    A hundred thousand pages each, or a third of all; ``by_yardstick`` is corrected for the
    machine's speed.
    """
    warm = [each for each in windows if each.pages - each.fetched >= warm_up]
    pages = min(_COMPARED_PAGES, sum(each.fetched for each in warm) // 3)
    first = [each for each in warm if each.pages - warm_up <= pages * 1.01]
    last = [each for each in warm if warm[-1].pages - each.pages < pages * 0.99]
    if not first:
        return {}
    return {
        "pages_each": sum(each.fetched for each in first),
        "first_us": mean_us(first),
        "last_us": mean_us(last),
        "ratio": mean_us(last) / mean_us(first),
        "by_yardstick": by_yardstick(last) / by_yardstick(first),
        "stages": {
            stage: {"first_us": mean_us(first, stage), "last_us": mean_us(last, stage)}
            for stage in STAGES
        },
    }


def line(window: Window) -> str:
    """One window, under :data:`HEAD`."""
    stages = "".join(f"{window.stages_us[stage]:>8,.0f}" for stage in STAGES)
    return (
        f"{window.pages:>9,}{window.cpu_us:>8,.0f} |{stages} |{window.gc_us:>6,.0f}"
        f"{window.yardstick_us:>6,.0f} |{window.anonymous_mb:>8,.0f}{window.peak_mb:>8,.0f}"
        f"{window.state_mb:>9,.0f}{window.harvest_mb:>8,.0f}{window.written_kb:>8,.0f} |"
        f"{window.links_waiting:>10,}{window.hosts:>7,}{window.on_topic:>9.1%}"
        f"{window.fetched / window.wall_s:>8,.0f}"
    )


def sentence(found: dict[str, Any], windows: Sequence[Window], before_mb: float) -> str:
    """Whether costs are constant and memory bounded; ``before_mb`` was used before."""
    if not found:
        return "too few pages to compare first and last"
    grown = max(window.anonymous_mb for window in windows) - before_mb
    return (
        f"the last {found['pages_each']:,} pages cost {found['ratio']:.2f} times the first "
        f"({found['last_us']:,.0f} and {found['first_us']:,.0f} us of CPU a page); "
        f"{found['by_yardstick']:.2f} times by the yardstick; {grown:,.0f} MB of memory beside "
        "the libraries, the model and the generated web"
    )


def _written_bytes() -> int:
    """Bytes that this process has written to files; 0 if the system does not say."""
    try:
        counters = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(counters.partition("\nwchar: ")[2].partition("\n")[0] or 0)
