"""The report of a long crawl: a line per window, and the last pages compared with the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from long_meter import STAGES, Window, mean_us, yardstick_us

_COMPARED_PAGES = 100_000
_SHOWN = {stage: stage[:7] for stage in STAGES}
HEAD = (
    f"    pages us/page |{''.join(f'{name:>8}' for name in _SHOWN.values())} |    gc  yard |"
    " anon MB peak MB state MB WARC MB kB/page |   waiting  hosts on topic pages/s"
)


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
    speed = yardstick_us(last) / yardstick_us(first)
    return {
        "pages_each": sum(each.fetched for each in first),
        "first_us": mean_us(first),
        "last_us": mean_us(last),
        "ratio": mean_us(last) / mean_us(first),
        "by_yardstick": mean_us(last) / mean_us(first) / speed,
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
        "the libraries, the model and the made-up web"
    )
