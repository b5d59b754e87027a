"""Requests that bypass the frontier wait until their host is due, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from focused.crawl import Fetch, Wait
from focused.frontier.host import HostPace, suspend
from focused.scrapy_addon.middlewares.access_middlewares import (
    PolitenessMiddleware,
    claim_address,
)
from focused.scrapy_addon.outcomes import FetchPostponed
from focused.scrapy_addon.request_state import META_KEY, RequestState, state_of
from tests.support.clocks import ReadClock
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served
from tests.support.sessions import session_of_crawl
from tests.support.simulated import START, Simulation, moved, raw, site, topic
from tests.support.warm import crawl_warm

URL, SEED = "http://a.test/own", "http://a.test/"
NOW: Callable[[], float] = lambda: START  # noqa: E731 -- a clock that stands


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    simulation = Simulation(topic(tmp_path, SEED), {})
    yield simulation
    simulation.close()


def middleware(simulation: Simulation, now: Callable[[], float] = NOW) -> PolitenessMiddleware:
    return PolitenessMiddleware(session_of_crawl(simulation.crawl, ReadClock(now)))


def sent_at(simulation: Simulation, now: float) -> float:
    request = Request(URL)
    asyncio.run(middleware(simulation, lambda: now).process_request(request))
    return state_of(request).sent_at


def handed_out(fetch: Fetch) -> Request:
    """The fetch as the scheduler hands it out."""
    return Request(
        fetch.url, meta={META_KEY: RequestState(lease=fetch.lease, leased_url=fetch.url)}
    )


def leaves_soon(held: PolitenessMiddleware, request: Request) -> bool:
    """Whether the request is let through within a moment, while the clock stands."""

    async def wait() -> bool:
        try:
            await asyncio.wait_for(held.process_request(request), 0.12)
        except TimeoutError:
            return False
        return True

    return asyncio.run(wait())


def test_a_request_to_a_host_that_is_due_leaves_at_once_and_starts_its_delay(simulation):
    assert sent_at(simulation, START) == START
    assert simulation.crawl.due_at(URL) == START + 1.0


def test_a_request_to_a_host_that_is_set_aside_is_not_sent(simulation):
    host = simulation.crawl.frontier.hosts.get("a.test")
    host.pace = suspend(HostPace(failures=8), START, 3_600.0)
    with pytest.raises(IgnoreRequest, match="is suspended for 3600 s"):
        sent_at(simulation, START)
    assert sent_at(simulation, START + 3_600.0) == START + 3_600.0


def test_nor_is_one_that_would_be_held_for_long(simulation):
    simulation.crawl.frontier.hosts.get("a.test").pace = HostPace(START + 301.0)
    with pytest.raises(IgnoreRequest, match="must not be requested for 301 s"):
        sent_at(simulation, START)


def test_while_one_is_under_way_the_host_is_offered_to_nobody_however_long_it_takes(simulation):
    held, request = middleware(simulation), Request(URL)
    asyncio.run(held.process_request(request))
    assert simulation.crawl.next(START + 600.0) == Wait(None)
    asyncio.run(held.process_response(request, Response(URL)))
    assert simulation.crawl.next(START) == Wait(START + 1.0)


def test_it_waits_while_a_link_of_its_host_is_being_fetched(simulation):
    lease = simulation.crawl.next(START)
    assert isinstance(lease, Fetch)
    assert not leaves_soon(middleware(simulation), Request(URL))
    simulation.crawl.put_back(lease.lease, START)
    assert leaves_soon(middleware(simulation), Request(URL))


def test_two_to_one_host_leave_one_after_the_other(simulation):
    clock = [START]
    held = middleware(simulation, lambda: clock[0])
    first, second = Request(URL), Request(URL)
    assert leaves_soon(held, first)
    clock[0] += 5.0
    assert not leaves_soon(held, second)
    asyncio.run(held.process_response(first, Response(URL)))
    clock[0] += 50.0  # ten times the five seconds that it took
    assert leaves_soon(held, second)


def test_hosts_at_one_address_are_one_to_them(simulation):
    hosts = simulation.crawl.frontier.hosts
    for name in ("a.test", "b.test"):
        hosts.assign_address(hosts.get(name), "192.0.2.1")
    lease = simulation.crawl.next(START)
    held, neighbour = middleware(simulation), Request("http://b.test/picture")
    assert not leaves_soon(held, neighbour)
    simulation.crawl.put_back(lease.lease, START)
    assert leaves_soon(held, neighbour)
    assert simulation.crawl.next(START + 600.0) == Wait(None)


def test_what_it_gives_counts_for_the_host(simulation):
    held, request = middleware(simulation), Request(URL)
    asyncio.run(held.process_request(request))
    asked_to_wait = Response(URL, status=429, headers={"Retry-After": "90"})
    asyncio.run(held.process_response(request, asked_to_wait))
    assert simulation.crawl.due_at(URL) == START + 90.0


def test_a_robots_txt_that_moved_may_ask_its_host_to_be_left_alone(simulation):
    state = RequestState(rules_of="a.test")
    held = middleware(simulation)
    request = Request(f"{SEED}robots.txt", meta={META_KEY: state})
    asyncio.run(held.process_request(request))
    headers = {"Retry-After": "90", "Location": "http://b.test/robots.txt"}
    asyncio.run(held.process_response(request, Response(request.url, 301, headers)))
    assert simulation.crawl.due_at(URL) == START + 90.0


def test_one_that_was_dropped_on_its_way_out_leaves_the_host_free(simulation):
    held, request = middleware(simulation), Request(URL)
    asyncio.run(held.process_request(request))
    asyncio.run(held.process_exception(request, IgnoreRequest("no more pictures")))
    assert isinstance(simulation.crawl.next(START + 1.0), Fetch)


def test_so_does_one_that_another_middleware_put_another_in_the_place_of(simulation):
    held, request = middleware(simulation), Request(URL)
    asyncio.run(held.process_request(request))
    del request
    assert isinstance(simulation.crawl.next(START + 1.0), Fetch)


def test_one_that_was_given_the_meta_of_a_fetch_bypasses_the_frontier_as_any(simulation):
    lease = simulation.crawl.next(START)
    held = middleware(simulation)
    fetch = handed_out(lease)
    assert leaves_soon(held, fetch)
    assert not leaves_soon(held, Request(URL, meta=fetch.meta))


def test_a_link_whose_host_turns_out_to_stand_where_another_is_asked_goes_back(simulation):
    crawl = simulation.crawl
    crawl.enqueue_url("http://b.test/", 1.0, START)
    session = session_of_crawl(crawl, ReadClock(NOW))
    first, second = crawl.next(START), crawl.next(START)
    leased = [handed_out(first), handed_out(second)]
    asyncio.run(claim_address(session, leased[0], "192.0.2.1"))
    with pytest.raises(FetchPostponed):
        asyncio.run(claim_address(session, leased[1], "192.0.2.1"))
    crawl.put_back(second.lease, START)
    assert crawl.next(START + 5.0) == Wait(None)
    crawl.put_back(first.lease, START)
    assert isinstance(crawl.next(START), Fetch)


def test_a_link_that_scrapy_writes_in_another_way_leaves_all_the_same(tmp_path):
    odd = "http://a.test/a|b[1]^"
    asked_for = page("http://a.test/a%7Cb%5B1%5D%5E", html("Odd"))
    with served(MemoryWeb(page(SEED, html("Start", odd)), asked_for)) as replay:
        done = crawl_warm(write_topic(tmp_path, SEED), replay.address)
    assert len(done.fetched()) == 2


def test_one_that_waits_for_a_busy_host_does_not_wait_for_ever(simulation):
    assert isinstance(simulation.crawl.next(START), Fetch)
    clock = iter(range(int(START), int(START) + 10_000, 100))
    with pytest.raises(IgnoreRequest, match="must not be requested"):
        asyncio.run(middleware(simulation, lambda: next(clock)).process_request(Request(URL)))


def test_hosts_whose_robots_txt_point_at_each_other_do_not_wait_for_each_other(tmp_path):
    a, b = "http://a.test/robots.txt", "http://b.test/robots.txt"
    rules = raw("http://b.test/rules", "User-agent: *\nDisallow: /x\n", "text/plain")
    web = site(moved(a, b), moved(b, "http://a.test/rules")) | {"http://a.test/rules": rules}
    crossed = Simulation(topic(tmp_path, SEED, "http://b.test/"), web)
    asked = []
    leases = [crossed.crawl.next(START), crossed.crawl.next(START)]
    now = START
    for _ in range(200):
        for lease in leases:
            crossed.crawl.settle(lease.lease, web.get(lease.url, rules), now)
        asked += [lease.url for lease in leases]
        now += 1.0
        leases = [step for step in (crossed.crawl.next(now),) if isinstance(step, Fetch)]
    crossed.close()
    assert {"http://a.test/", "http://b.test/"} <= set(asked)
