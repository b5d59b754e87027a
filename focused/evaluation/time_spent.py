"""What a crawl's last session spent its time on, and so what would make it faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REST = "Scrapy, HTTP, the rest"
_BUSY_FROM = 0.7
_READING = ("parsing", "judging", "likeness")


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage: milliseconds a page, and its share of all stages' time, in [0, 1]."""

    stage: str
    ms_a_page: float
    share: float


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """The last session of a crawl, most costly stage first.

    ``busy`` in [0, 1] is the share of the time that the crawl's own process had a core;
    ``read_there`` in [0, 1] that of the pages that other ``processes`` read. ``blocked_s`` is the
    longest that the reactor could do nothing else, ``blocked_times`` how often that was above
    ``blocked_from_s``. ``bottleneck`` says in words what the crawl waits for.
    """

    pages: int
    busy: float
    stages: list[StageTime]
    processes: int
    read_there: float
    blocked_s: float
    blocked_times: int
    blocked_from_s: float
    bottleneck: str


def time_spent(stats: Mapping[str, Any]) -> TimeSpent | None:
    """Read a crawl's ``stats.json``; None where it tells of no page, or was written by another."""
    told = stats.get("profile")
    try:
        return _time_spent(told) if told and told["pages"] and told["elapsed_s"] > 0 else None
    except (KeyError, TypeError):
        return None


def _time_spent(told: Mapping[str, Any]) -> TimeSpent:
    pages, blocked = int(told["pages"]), told["reactor_blocked"]
    seconds = {str(stage): float(took) for stage, took in told["stages"].items()}
    here = sum(seconds.values()) - told["seconds_there"]
    seconds[REST] = max(0.0, told["cpu_s"] - here)
    total = sum(seconds.values()) or 1.0
    stages = [
        StageTime(stage, 1000 * took / pages, took / total)
        for stage, took in sorted(seconds.items(), key=lambda each: -each[1])
    ]
    busy = min(1.0, told["cpu_s"] / told["elapsed_s"])
    return TimeSpent(
        pages=pages,
        busy=busy,
        stages=stages,
        processes=int(told["reading_processes"]),
        read_there=told["pages_read_there"] / pages,
        blocked_s=blocked["longest_s"],
        blocked_times=blocked["times"],
        blocked_from_s=blocked["counts_from_s"],
        bottleneck=_bottleneck(busy, seconds),
    )


def _bottleneck(busy: float, seconds: Mapping[str, float]) -> str:
    if busy < _BUSY_FROM:
        return "the network, and the delays that hosts are owed"
    reading = sum(seconds.get(stage, 0.0) for stage in _READING)
    work = {
        "reading pages": reading,
        **{stage: took for stage, took in seconds.items() if stage not in _READING},
    }
    most = max(work, key=lambda stage: work[stage])
    return f"this machine: {most} takes most"
