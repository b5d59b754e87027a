"""Webs large enough to interrupt a crawl: some three hundred connected pages."""

import random
import time
from collections.abc import Callable
from subprocess import Popen

from focused_lab.recorded_web.recorded_web import RecordedResponse
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from tests.support.forked import HANGS_AFTER_S, ForkedCommand
from tests.support.recorded_web import MemoryWeb, Served, html, page, redirect

HOSTS, PAGES_PER_HOST = 10, 30
SEED = "http://h0.test/0"
INTERRUPTED_DELAY_S = 0.2
"""Delay of crawls that are interrupted after forty answers: five more seconds are left."""
LATENCIES = FaultPlan((parse_fault("*:kind=latency,latency_s=0.01-0.05"),))

SLOW_HOST, SLOW_HOST_DELAY_S, SLOW_HOST_PAGES = "slow.test", 1.0, 5
MIXED_SEEDS = (SEED, "http://h5.test/0", f"http://{SLOW_HOST}/0")
MIXED_LATENCIES = FaultPlan(
    (
        parse_fault("h*.test:kind=latency,latency_s=0.01-0.05"),
        parse_fault(f"{SLOW_HOST}:kind=latency,latency_s=0.2-0.5"),
    )
)


def wide_web(*more: RecordedResponse) -> MemoryWeb:
    """Each page links to the next of its host and to four others, anywhere; none to ``more``."""
    return MemoryWeb(*_wide_pages(), *more)


def mixed_web() -> MemoryWeb:
    """The wide web with redirected, missing and disallowed links, and a slow host.

    That host has a Crawl-delay of :data:`SLOW_HOST_DELAY_S`.
    """
    moved = [
        redirect(f"http://h{host}.test/moved-{number}", f"http://h{number % HOSTS}.test/{number}")
        for host in range(HOSTS)
        for number in range(5, PAGES_PER_HOST, 10)
    ]
    rules = "User-agent: *\nDisallow: /private-\n"
    robots = [
        page(f"http://h{host}.test/robots.txt", rules, content_type="text/plain")
        for host in range(0, HOSTS, 2)
    ]
    crawl_delay = f"User-agent: *\nCrawl-delay: {SLOW_HOST_DELAY_S}\n"
    slow = [
        page(f"http://{SLOW_HOST}/{number}", html(f"slow {number}", *links))
        for number, links in enumerate(_chain(SLOW_HOST_PAGES))
    ]
    slow_robots = page(f"http://{SLOW_HOST}/robots.txt", crawl_delay, content_type="text/plain")
    return MemoryWeb(*_wide_pages(mixed=True), *moved, *robots, *slow, slow_robots)


def mixed_urls() -> set[str]:
    """All URLs that a crawl of the mixed web requests, robots.txt included."""
    hosts = [f"http://h{host}.test" for host in range(HOSTS)]
    past_the_last = {f"{host}/{PAGES_PER_HOST}" for host in hosts}
    odd = [
        f"{hosts[host]}{link}"
        for host in range(HOSTS)
        for number in range(PAGES_PER_HOST)
        for link in _odd_links(number)
        if host % 2 or not link.startswith("/private-")
    ]
    slow = [f"http://{SLOW_HOST}/{number}" for number in range(SLOW_HOST_PAGES)]
    robots = [f"{host}/robots.txt" for host in (*hosts, f"http://{SLOW_HOST}")]
    return {*all_pages(), *past_the_last, *odd, *slow, *robots}


def _wide_pages(*, mixed: bool = False) -> list[RecordedResponse]:
    rng = random.Random(7)
    pages = []
    for host in range(HOSTS):
        for number in range(PAGES_PER_HOST):
            links = [f"/{number + 1}", f"http://h{(host + 1) % HOSTS}.test/0"]
            links += [_anywhere(rng) for _ in range(4)]
            if mixed:
                links += _odd_links(number)
            whales = "whale " * (number % 3 == 0)
            pages.append(
                page(
                    f"http://h{host}.test/{number}",
                    html(f"{host} {number}", *links, text=f"{whales}{host}-{number}"),
                )
            )
    return pages


def _chain(length: int) -> list[list[str]]:
    """Each page's links: the next page, none from the last."""
    return [[f"/{number}"] for number in range(1, length)] + [[]]


def _odd_links(number: int) -> list[str]:
    kinds = {3: "gone", 5: "moved", 7: "private"}
    return [f"/{kinds[number % 10]}-{number}"] if number % 10 in kinds else []


def all_pages() -> set[str]:
    return {f"http://h{host}.test/{n}" for host in range(HOSTS) for n in range(PAGES_PER_HOST)}


def _anywhere(rng: random.Random) -> str:
    return f"http://h{rng.randrange(HOSTS)}.test/{rng.randrange(PAGES_PER_HOST)}"


def answered(site: Served) -> int:
    """How many requests the server has answered so far."""
    return site.log.getvalue().count("\n")


def wait_for_answers(site: Served, count: int, process: Popen[str] | ForkedCommand) -> None:
    """Wait until so many requests are answered in all; the crawl must not end before."""
    wait_until(lambda: answered(site) >= count, process)


def wait_until(holds: Callable[[], bool], process: Popen[str] | ForkedCommand) -> None:
    """Wait until something holds; the crawl must not end before."""
    give_up_at = time.monotonic() + HANGS_AFTER_S
    while True:
        has_ended = process.poll() is not None
        if holds():
            return
        assert not has_ended, f"the crawl ended early: {process.communicate()[0]}"
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def pages_asked(site: Served) -> list[str]:
    return [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if x.path != "/robots.txt"]
