"""Read where a crawl's last session spent its time, and name its bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OTHER_STAGES = "Scrapy, HTTP, the rest"
_BUSY_SHARE = 0.7
_PARSING_STAGES = ("parsing", "judging", "likeness")


@dataclass(frozen=True, slots=True)
class StageTime:
    """Milliseconds per page of one stage, and its share of the total, in [0, 1]."""

    stage: str
    ms_per_page: float
    share: float


@dataclass(frozen=True, slots=True)
class TimeProfile:
    """The profile of a crawl's last session, slowest stage first.

    ``busy`` is the share of the time that the crawl's process used a core, ``parsed_elsewhere`` the
    share of pages parsed by other ``processes``, both in [0, 1]. ``blocked_s`` is the longest time
    the reactor was blocked, ``blocked_count`` how often it was for more than
    ``blocked_threshold_s``.
    """

    pages: int
    busy: float
    stages: list[StageTime]
    processes: int
    parsed_elsewhere: float
    blocked_s: float
    blocked_count: int
    blocked_threshold_s: float
    bottleneck: str


def time_spent(stats: Mapping[str, Any]) -> TimeProfile | None:
    """Read the profile of ``stats.json``; None without pages or with unknown fields."""
    profile = stats.get("profile")
    try:
        return (
            _time_spent(profile)
            if profile and profile["pages"] and profile["elapsed_s"] > 0
            else None
        )
    except (KeyError, TypeError):
        return None


def _time_spent(profile: Mapping[str, Any]) -> TimeProfile:
    pages, blocked = int(profile["pages"]), profile["reactor_blocked"]
    seconds = {str(stage): float(took) for stage, took in profile["stages"].items()}
    in_this_process = sum(seconds.values()) - profile["parser_process_s"]
    seconds[OTHER_STAGES] = max(0.0, profile["cpu_s"] - in_this_process)
    total = sum(seconds.values()) or 1.0
    stages = [
        StageTime(stage, 1000 * took / pages, took / total)
        for stage, took in sorted(seconds.items(), key=lambda each: -each[1])
    ]
    busy = min(1.0, profile["cpu_s"] / profile["elapsed_s"])
    return TimeProfile(
        pages=pages,
        busy=busy,
        stages=stages,
        processes=int(profile["parser_processes"]),
        parsed_elsewhere=profile["pages_parsed_in_processes"] / pages,
        blocked_s=blocked["longest_s"],
        blocked_count=blocked["times"],
        blocked_threshold_s=blocked["threshold_s"],
        bottleneck=_bottleneck(busy, seconds),
    )


def _bottleneck(busy: float, seconds: Mapping[str, float]) -> str:
    if busy < _BUSY_SHARE:
        return "the network and the hosts' delays"
    reading = sum(seconds.get(stage, 0.0) for stage in _PARSING_STAGES)
    work = {
        "reading pages": reading,
        **{stage: took for stage, took in seconds.items() if stage not in _PARSING_STAGES},
    }
    most = max(work, key=lambda stage: work[stage])
    return f"the CPU: {most} takes most"
