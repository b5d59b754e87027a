"""On a clock that runs faster than real time, waits are short and response times are real."""

import asyncio
import time

import pytest
from scrapy import Request
from scrapy.http import Response

from focused.scrapy_addon.outcomes import outcome_from_scrapy_response
from focused.scrapy_addon.request_state import META_KEY, RequestState
from focused_lab.recorded_web.replay_clock import ReplayClock
from tests.scrapy_addon.driver_parts import ReadClock, turns_of
from tests.support.simulated import Simulation, topic

SEED = "http://a.test/"
SPEED = 1e6


def test_a_response_time_is_in_real_seconds():
    request = Request(SEED, meta={META_KEY: RequestState(sent_at=1e9)})
    clock = ReadClock(lambda: 1e9 + 50_000.0, SPEED)
    outcome = outcome_from_scrapy_response(request, Response(SEED), clock(), clock.real_s)
    assert outcome.elapsed_s == pytest.approx(0.05)


def test_a_request_waits_for_the_seconds_of_the_crawl_s_clock(tmp_path):
    """A host that is due in an hour is due in 3.6 ms."""
    simulation = Simulation(topic(tmp_path, SEED, delay_s=3_600.0), {})
    clock = ReplayClock(1e9, time.time(), SPEED)
    turns = turns_of(simulation.crawl, clock)

    async def fail(request: Request, _: object) -> Response:
        raise TimeoutError

    async def send_both() -> None:
        for path in ("one", "two"):
            request = Request(SEED + path)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(turns.send_in_turn(request, request.url, fail), 60)

    asyncio.run(send_both())
    simulation.close()
