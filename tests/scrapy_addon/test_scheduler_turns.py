"""The scheduler returns requests for a limited time in each turn of the reactor."""

from __future__ import annotations

import asyncio
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from focused.crawl import Fetch, FetchPurpose
from focused.scrapy_addon import scheduler as scheduling
from focused.scrapy_addon.scheduler import FocusedScheduler
from tests.contracts.steps import link

CHOOSING_TAKES_S = 0.004


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> FocusedScheduler:
    """One that always has a link, and takes its time to choose it."""
    clock, leases = SimpleNamespace(now=100.0), count()

    def choose(now: float) -> Fetch:
        clock.now += CHOOSING_TAKES_S
        chosen = link(f"http://a.test/{next(leases)}")
        return Fetch(0, chosen.url, FetchPurpose.PAGE, chosen)

    monkeypatch.setattr(scheduling.time, "perf_counter", lambda: clock.now)
    # Scrapy's own would take a reactor that an earlier test has installed and nobody runs.
    monkeypatch.setattr(
        scheduling,
        "call_later",
        lambda delay, call: asyncio.get_running_loop().call_later(delay, call),
    )
    session = Mock(error_message="", now=lambda: 0.0, crawl=Mock(next=choose))
    return FocusedScheduler(Mock(), session)


def handed_out(scheduler: FocusedScheduler) -> int:
    """As the engine does: until it is given none."""
    return next(number for number in range(100) if scheduler.next_request() is None)


def test_few_are_handed_out_in_one_turn_and_the_engine_asks_again_in_the_next(
    scheduler: FocusedScheduler,
) -> None:
    wakes = scheduler._crawler.engine._slot.nextcall.schedule

    async def turns() -> list[int]:
        first = handed_out(scheduler)
        assert handed_out(scheduler) == 0
        assert not wakes.called
        while not wakes.called:
            await asyncio.sleep(0)
        return [first, handed_out(scheduler)]

    assert asyncio.run(turns()) == [3, 3]


def test_the_engine_is_not_asked_to_look_again_where_none_was_kept_back(
    scheduler: FocusedScheduler,
) -> None:
    async def turns() -> None:
        scheduler.next_request()
        await asyncio.sleep(0.01)

    asyncio.run(turns())
    assert not scheduler._crawler.engine._slot.nextcall.schedule.called
