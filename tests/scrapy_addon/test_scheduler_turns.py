"""The scheduler returns requests for a limited time in each turn of the reactor."""

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from scrapy import Request

from focused.crawl import PAGE, Fetch, Wait
from focused.scrapy_addon import scheduler as scheduling
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.scheduler import FocusedScheduler
from tests.frontier.steps import link

CHOOSING_TAKES_S = 0.004


@pytest.fixture
def next_turn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Begins the next turn of the reactor: runs what was put off until then."""
    calls: list[Callable[[], None]] = []
    monkeypatch.setattr(scheduling, "call_later", lambda delay, call: calls.append(call))

    def begin() -> None:
        due, calls[:] = list(calls), []
        for call in due:
            call()

    return begin


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch, next_turn: Callable[[], None]) -> FocusedScheduler:
    """One that always has a link, and takes its time to choose it."""
    clock, leases = SimpleNamespace(now=100.0), count()

    def choose(now: float) -> Fetch:
        clock.now += CHOOSING_TAKES_S
        chosen = link(f"http://a.test/{next(leases)}")
        return Fetch(0, chosen.url, PAGE, chosen)

    monkeypatch.setattr(scheduling, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    driver = Mock(
        clock=Mock(return_value=0.0, real_s=float),
        status=Mock(error_message="", is_paused=False),
        slot=Mock(run=Mock(next=choose)),
    )
    return FocusedScheduler(Mock(), Mock(driver=driver))


def handed_out(scheduler: FocusedScheduler) -> int:
    """As the engine does: until it is given none."""
    return next(number for number in range(100) if scheduler.next_request() is None)


def test_few_are_handed_out_in_one_turn_and_the_engine_asks_again_in_the_next(scheduler, next_turn):
    wakes = scheduler._engine.wake
    assert [handed_out(scheduler), handed_out(scheduler)] == [3, 0]
    assert not wakes.called
    next_turn()
    assert wakes.called
    assert handed_out(scheduler) == 3


def test_the_engine_is_not_asked_to_look_again_where_none_was_kept_back(scheduler, next_turn):
    scheduler.next_request()
    next_turn()
    assert not scheduler._engine.wake.called


def test_a_request_that_start_yields_after_the_end_is_dropped(scheduler):
    scheduler._slot = CrawlSlot()
    assert not scheduler.enqueue_request(Request("http://a.test/"))


def test_a_spiders_requests_are_committed_though_their_host_is_not_due(scheduler):
    crawl = scheduler._slot.crawl
    crawl.enqueuer.refusal_reason.return_value = None
    crawl.refuse_suspended.return_value = []
    scheduler._slot.run.next = lambda now: Wait(now + 60)
    scheduler.enqueue_request(Request("http://a.test/"))
    scheduler.next_request()
    crawl.commit.assert_called_once()
