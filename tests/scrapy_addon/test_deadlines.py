"""What does not come in time is told once, by one timer."""

from __future__ import annotations

import asyncio
import time

from focused.scrapy_addon.deadlines import Deadlines


async def told_of(
    deadlines_s: dict[str, float], come: tuple[str, ...] = (), busy_s: float = 0.0
) -> list[str]:
    deadlines, told = Deadlines(), []
    now = asyncio.get_running_loop().time()
    for name, seconds in deadlines_s.items():
        deadlines.add(name, now + seconds, lambda name=name: told.append(name))
    for name in come:
        deadlines.came(name)
    time.sleep(busy_s)
    await asyncio.sleep(0.1)
    return told


def test_what_is_late_is_told_the_earliest_first_whatever_was_added_when() -> None:
    late = {"b": 0.04, "a": 0.01, "never": 60.0}
    assert asyncio.run(told_of(late)) == ["a", "b"]


def test_of_those_that_are_late_when_the_loop_looks_at_last_the_earliest_is_told_first() -> None:
    assert asyncio.run(told_of({"b": 0.02, "a": 0.01}, busy_s=0.05)) == ["a", "b"]


def test_what_came_in_time_is_not_told_of() -> None:
    assert asyncio.run(told_of({"a": 0.01, "b": 0.02}, come=("a",))) == ["b"]
