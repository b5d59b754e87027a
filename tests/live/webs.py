"""A web large enough to be interrupted: some three hundred pages that all hang together."""

from __future__ import annotations

import random
import time
from subprocess import Popen

from focused.recorded.faults import FaultPlan, parse_fault
from focused.recorded.store import RecordedResponse
from tests.support.recorded_web import MemoryWeb, Served, html, page

HOSTS, PAGES_PER_HOST = 10, 30
SEED = "http://h0.test/0"
SLOWLY = FaultPlan((parse_fault("*:kind=latency,latency_s=0.01-0.05"),))


def wide_web(*more: RecordedResponse) -> MemoryWeb:
    """Each page links to the next of its host and to four others, anywhere; none to ``more``."""
    rng = random.Random(7)
    pages = []
    for host in range(HOSTS):
        for number in range(PAGES_PER_HOST):
            links = [f"/{number + 1}", f"http://h{(host + 1) % HOSTS}.test/0"]
            links += [_anywhere(rng) for _ in range(4)]
            whales = "whale " * (number % 3 == 0)
            pages.append(
                page(
                    f"http://h{host}.test/{number}",
                    html(f"{host} {number}", *links, text=f"{whales}{host}-{number}"),
                )
            )
    return MemoryWeb(*pages, *more)


def all_pages() -> set[str]:
    return {f"http://h{host}.test/{n}" for host in range(HOSTS) for n in range(PAGES_PER_HOST)}


def _anywhere(rng: random.Random) -> str:
    return f"http://h{rng.randrange(HOSTS)}.test/{rng.randrange(PAGES_PER_HOST)}"


def answered(site: Served) -> int:
    """How many requests the server has answered so far."""
    return site.log.getvalue().count("\n")


def wait_for_answers(site: Served, count: int, process: Popen[str]) -> None:
    """Wait until so many requests are answered in all; the crawl must not end before."""
    while answered(site) < count:
        assert process.poll() is None, f"the crawl ended early: {process.communicate()[0]}"
        time.sleep(0.005)


def pages_asked(site: Served) -> list[str]:
    return [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if x.path != "/robots.txt"]
