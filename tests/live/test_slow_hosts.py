"""Two hundred hosts that send a byte at a time do not stop the others."""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.access_rules import ROBOTS
from tests.support.crawling import finish, start, write_topic
from tests.support.hostile_hosts import Asked, Behaviour, pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html

SLOW, GOOD, PAGES = 200, 20, 3
TIMEOUT_S, CONCURRENCY = 4.0, 50
MOST_MB, MOST_FILES = 400.0, 500
HUB = "hub.test"


async def drip(asked: Asked) -> None:
    """Send a byte five times a second, for ever; robots.txt is there at once."""
    if asked.path == ROBOTS:
        await asked.answer(404)
        return
    await asked.stream()
    while True:
        await asked.send(b"w")
        await asyncio.sleep(0.2)


def names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}.test" for number in range(count)]


def web(port: int) -> Mapping[str, Behaviour]:
    slow: dict[str, Behaviour] = dict.fromkeys(names("slow", SLOW), drip)
    good = {
        host: pages(
            {
                f"/{n}": (200, html(f"{host} {n}", *(f"/{m}" for m in range(PAGES)),
                                    text=f"whales number {n} of {host}"), {})
                for n in range(PAGES)
            }
        )
        for host in names("good", GOOD)
    }  # fmt: skip
    # The slow ones first: they stand before the good ones in the frontier.
    links = [f"http://{host}:{port}/0" for host in (*names("slow", SLOW), *names("good", GOOD))]
    return {**slow, **good, HUB: pages({"/": (200, html("Hub", *links, text="whales"), {})})}


def _watched(pid: int) -> tuple[float, int]:
    """Megabytes of memory, and open files, of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kb,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    return kb / 1000, len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.long
def test_slow_hosts_keep_nobody_else_waiting(tmp_path):
    addresses = (*names("slow", SLOW), *names("good", GOOD), HUB)
    zone = {host: at(f"127.0.{2 + n // 200}.{1 + n % 200}") for n, host in enumerate(addresses)}
    with serve_hosts(web) as served, serve_names(zone) as name_server:
        topic = write_topic(
            tmp_path,
            served.url(HUB),
            timeout_s=TIMEOUT_S,
            scope="private_addresses = true",
            politeness="max_tries = 1\nsuspend_s = 0\nfetch_time_factor = 0\n"
            f"concurrency = {CONCURRENCY}",
        )
        process = start(topic, "", FOCUSED_DNS_SERVERS=name_server.address)
        assert process.pid is not None
        most_mb, most_files = 0.0, 0
        while process.poll() is None:
            try:
                mb, files = _watched(process.pid)
            except (OSError, ValueError):
                break
            most_mb, most_files = max(most_mb, mb), max(most_files, files)
            time.sleep(0.1)
        done = finish(process, topic)
    assert done.status == 0, done.output
    found = done.pages
    good = found[found["host"].str.startswith("good-")]
    assert list(good["outcome"].unique()) == ["fetched"]
    assert len(good) == GOOD * PAGES
    slow = found[found["host"].str.startswith("slow-")]
    assert list(slow["failure"].unique()) == ["timeout"]
    assert len(slow) == SLOW
    # Each slow host holds one of the requests at a time for as long as it may, and no longer.
    one_after_the_other_s = TIMEOUT_S * SLOW
    took = found["fetched_at"].max() - found["fetched_at"].min()
    assert took.total_seconds() < one_after_the_other_s / 4
    assert most_mb < MOST_MB
    assert most_files < MOST_FILES
