"""Requests that bypass the frontier wait until their host is due, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from focused.crawl import Fetch, Wait
from focused.frontier.host_pace import HostPace, suspend
from focused.scrapy_addon.outcomes import FetchPostponed
from focused.scrapy_addon.request_state import META_KEY, RequestState
from tests.scrapy_addon.driver_parts import ReadClock, opened, turns_of
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served
from tests.support.simulated import START, Simulation, moved, raw, site, topic

URL, SEED = "http://a.test/own", "http://a.test/"
NOW: Callable[[], float] = lambda: START  # noqa: E731 -- a clock that stands


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    simulation = Simulation(topic(tmp_path, SEED), {})
    yield simulation
    simulation.close()


class Sender:
    """Sends requests in turn; each is on its way until it is answered."""

    def __init__(self, simulation: Simulation, now: Callable[[], float] = NOW) -> None:
        self._turns = turns_of(simulation.crawl, ReadClock(now))

    async def begin(self, request: Request) -> UnderWay:
        """Return when the request left."""
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        async def send(*_: object) -> Response:
            sent.set_result(None)
            return await answer

        task = asyncio.ensure_future(self._turns.send_in_turn(request, request.url, send))
        try:
            await asyncio.wait({task, sent}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not sent.done():
            await task
        return UnderWay(task, answer)

    async def leaves_soon(self, request: Request) -> bool:
        """Try for a moment, while the clock stands, whether the request leaves."""
        beginning = asyncio.ensure_future(self.begin(request))
        has_left, _ = await asyncio.wait({beginning}, timeout=0.12)
        beginning.cancel()
        await asyncio.wait({beginning})
        return bool(has_left)


@dataclass
class UnderWay:
    """A request that was sent."""

    _task: asyncio.Future[Response]
    _answer: asyncio.Future[Response]

    async def ends(self, response: Response | Exception) -> None:
        if isinstance(response, Exception):
            self._answer.set_exception(response)
        else:
            self._answer.set_result(response)
        await asyncio.wait({self._task})
        self._task.exception()

    def cancel(self) -> None:
        self._task.cancel()


def send_at(simulation: Simulation, now: float) -> None:
    asyncio.run(Sender(simulation, lambda: now).begin(Request(URL)))


def handed_out(fetch: Fetch) -> Request:
    """The fetch as the scheduler hands it out."""
    return Request(
        fetch.url, meta={META_KEY: RequestState(lease=fetch.lease, leased_url=fetch.url)}
    )


def test_a_request_to_a_host_that_is_due_leaves_at_once_and_starts_its_delay(simulation):
    async def send() -> None:
        await Sender(simulation).begin(Request(URL))
        assert simulation.crawl.hosts.due_at(URL) == START + 1.0

    asyncio.run(send())


def test_a_request_to_a_host_that_is_set_aside_is_not_sent(simulation):
    host = simulation.crawl.frontier.hosts.get("a.test")
    host.pace = suspend(HostPace(failures=8), START, 3_600.0)
    with pytest.raises(IgnoreRequest, match="is suspended for 3600 s"):
        send_at(simulation, START)
    send_at(simulation, START + 3_600.0)


def test_nor_is_one_that_would_be_held_for_long(simulation):
    simulation.crawl.frontier.hosts.get("a.test").pace = HostPace(START + 301.0)
    with pytest.raises(IgnoreRequest, match="must not be requested for 301 s"):
        send_at(simulation, START)


def test_while_one_is_under_way_the_host_is_offered_to_nobody_however_long_it_takes(simulation):
    async def send() -> None:
        under_way = await Sender(simulation).begin(Request(URL))
        assert simulation.crawl.next(START + 600.0) == Wait(None)
        await under_way.ends(Response(URL))

    asyncio.run(send())
    assert simulation.crawl.next(START) == Wait(START + 1.0)


def test_it_waits_while_a_link_of_its_host_is_being_fetched(simulation):
    async def send() -> None:
        lease = simulation.crawl.next(START)
        assert isinstance(lease, Fetch)
        assert not await Sender(simulation).leaves_soon(Request(URL))
        simulation.crawl.put_back(lease.lease, START)
        await Sender(simulation).begin(Request(URL))

    asyncio.run(send())


def test_two_to_one_host_leave_one_after_the_other(simulation):
    async def send() -> None:
        clock = [START]
        sender = Sender(simulation, lambda: clock[0])
        first = await sender.begin(Request(URL))
        clock[0] += 5.0
        assert not await sender.leaves_soon(Request(URL))
        await first.ends(Response(URL))
        clock[0] += 50.0  # ten times the five seconds that it took
        await sender.begin(Request(URL))

    asyncio.run(send())


def test_hosts_at_one_address_are_one_to_them(simulation):
    hosts = simulation.crawl.frontier.hosts
    for name in ("a.test", "b.test"):
        hosts.assign_address(hosts.get(name), "192.0.2.1")

    async def send() -> None:
        lease = simulation.crawl.next(START)
        neighbour = Request("http://b.test/picture")
        assert not await Sender(simulation).leaves_soon(neighbour)
        simulation.crawl.put_back(lease.lease, START)
        await Sender(simulation).begin(neighbour)
        assert simulation.crawl.next(START + 600.0) == Wait(None)

    asyncio.run(send())


def send_and_end(
    simulation: Simulation, response: Response | Exception, request: Request | None = None
) -> None:
    async def send() -> None:
        under_way = await Sender(simulation).begin(request or Request(URL))
        await under_way.ends(response)

    asyncio.run(send())


def test_what_it_gives_counts_for_the_host(simulation):
    send_and_end(simulation, Response(URL, status=429, headers={"Retry-After": "90"}))
    assert simulation.crawl.hosts.due_at(URL) == START + 90.0


def test_a_robots_txt_that_moved_may_ask_its_host_to_be_left_alone(simulation):
    request = Request(f"{SEED}robots.txt", meta={META_KEY: RequestState(rules_of="a.test")})
    headers = {"Retry-After": "90", "Location": "http://b.test/robots.txt"}
    send_and_end(simulation, Response(request.url, 301, headers), request)
    assert simulation.crawl.hosts.due_at(URL) == START + 90.0


def test_one_that_was_dropped_on_its_way_out_leaves_the_host_free(simulation):
    send_and_end(simulation, IgnoreRequest("no more pictures"))
    assert isinstance(simulation.crawl.next(START + 1.0), Fetch)


def test_so_does_one_that_was_cancelled(simulation):
    async def send() -> None:
        under_way = await Sender(simulation).begin(Request(URL))
        under_way.cancel()

    asyncio.run(send())
    assert isinstance(simulation.crawl.next(START + 1.0), Fetch)


def test_one_that_was_given_the_meta_of_a_fetch_has_no_lease(simulation):
    fetch = handed_out(simulation.crawl.next(START))
    crawls = opened(simulation.crawl)
    assert crawls.has_leased(fetch)
    assert not crawls.has_leased(Request(URL, meta=fetch.meta))


def test_a_link_whose_host_turns_out_to_stand_where_another_is_asked_goes_back(simulation):
    crawl = simulation.crawl
    crawl.enqueue_url("http://b.test/", 1.0, START)
    turns = turns_of(crawl, ReadClock(NOW))
    first, second = crawl.next(START), crawl.next(START)
    leased = [handed_out(first), handed_out(second)]
    asyncio.run(turns.claim_address(leased[0], first.url, "192.0.2.1", None))
    with pytest.raises(FetchPostponed):
        asyncio.run(turns.claim_address(leased[1], second.url, "192.0.2.1", None))
    crawl.put_back(second.lease, START)
    assert crawl.next(START + 5.0) == Wait(None)
    crawl.put_back(first.lease, START)
    assert isinstance(crawl.next(START), Fetch)


def test_a_link_that_scrapy_writes_in_another_way_leaves_all_the_same(tmp_path):
    odd = "http://a.test/a|b[1]^"
    asked_for = page("http://a.test/a%7Cb%5B1%5D%5E", html("Odd"))
    with served(MemoryWeb(page(SEED, html("Start", odd)), asked_for)) as replay:
        done = crawl(write_topic(tmp_path, SEED), replay.address)
    assert len(done.fetched()) == 2


def test_one_that_waits_for_a_busy_host_does_not_wait_for_ever(simulation):
    assert isinstance(simulation.crawl.next(START), Fetch)
    clock = iter(range(int(START), int(START) + 10_000, 100))
    with pytest.raises(IgnoreRequest, match="must not be requested"):
        asyncio.run(Sender(simulation, lambda: next(clock)).begin(Request(URL)))


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
