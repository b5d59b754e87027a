"""CPU time that a page costs in a parser process: our own worker against three libraries.

    python benchmarks/parser_processes.py [--pages 1500] [--rounds 5]

Each round parses the same pages of 10 kB once by every way, in another order, in one process, with
32 pages waiting at a time. Printed are medians over the rounds, in microseconds of CPU time a page:
of the crawl's process, and of both processes. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from focused.crawl.page_parser import PageParser, ParsingHandler, decode_reply, encode_request
from focused.scrapy_addon.parser_pool import ParserPool
from focused.topic import Scope
from focused.web.html.parse import parse_page
from focused.web.page import Fetched

_WORDS = "the blue whale is a marine mammal and a baleen whale reaching a length of thirty metres "
_PAGE = b"<title>Whales</title>" + b"".join(
    b"<p>%s<a href='/page/%d'>more about whale number %d</a></p>" % (_WORDS.encode(), n, n)
    for n in range(70)
)
_WAITING = 32

Read = Callable[[Fetched], Awaitable[object]]
_reader = PageParser(Scope(), object(), "", parse_page).without_classifier()  # type: ignore[arg-type]  # replaced


def parse(message: bytes) -> bytes:
    """What the libraries run in their process: the same work and the same messages as ours."""
    return ParsingHandler(_reader)(message)


def _ticks(pid: str) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _cpu_s() -> tuple[float, float]:
    """CPU seconds of this process, and of its children."""
    children = {
        pid
        for path in Path("/proc/self/task").glob("*/children")
        for pid in path.read_text().split()
    }
    return time.process_time(), sum(map(_ticks, children)) / os.sysconf("SC_CLK_TCK")


async def _measure(read: Read, pages: int) -> tuple[float, float]:
    """Microseconds of CPU time a page: of this process, and of all."""
    waiting = asyncio.Semaphore(_WAITING)

    async def one(number: int) -> None:
        async with waiting:
            fetched = Fetched(f"http://a.test/{number}", 200, {"content-type": "text/html"}, _PAGE)
            assert await read(fetched) is not None

    await asyncio.gather(*map(one, range(100)))  # the process has started, its caches are warm
    before = _cpu_s()
    await asyncio.gather(*map(one, range(pages)))
    own, children = (then - now for then, now in zip(_cpu_s(), before, strict=True))
    return 1e6 * own / pages, 1e6 * (own + children) / pages


async def _by_ours(pages: int) -> tuple[float, float]:
    workers = ParserPool(1, lambda: _reader)
    try:
        return await _measure(partial(workers.parse, is_long=False), pages)
    finally:
        workers.close()


async def _by_executor(make: Callable[[], Executor], pages: int) -> tuple[float, float]:
    with make() as executor:

        async def read(fetched: Fetched) -> object:
            return decode_reply(
                await asyncio.wrap_future(executor.submit(parse, encode_request(fetched)))
            )

        return await _measure(read, pages)


async def _by_pebble(pages: int) -> tuple[float, float]:
    from pebble import ProcessPool

    with ProcessPool(max_workers=1, context=get_context("spawn")) as pool:

        async def read(fetched: Fetched) -> object:
            future = pool.schedule(parse, args=[encode_request(fetched)], timeout=60)
            return decode_reply(await asyncio.wrap_future(future))

        return await _measure(read, pages)


async def _by_loky(pages: int) -> tuple[float, float]:
    from loky import ProcessPoolExecutor as Loky

    return await _by_executor(partial(Loky, max_workers=1), pages)


async def _by_concurrent_futures(pages: int) -> tuple[float, float]:
    make = partial(ProcessPoolExecutor, max_workers=1, mp_context=get_context("spawn"))
    return await _by_executor(make, pages)


_WAYS = {
    "ours": _by_ours,
    "concurrent.futures": _by_concurrent_futures,
    "pebble": _by_pebble,
    "loky": _by_loky,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    ways = {
        name: way
        for name, way in _WAYS.items()
        if name not in ("pebble", "loky") or find_spec(name) is not None
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    names = list(ways)
    for _ in range(asked.rounds):
        for name in names:
            found[name].append(asyncio.run(ways[name](asked.pages)))
        names.append(names.pop(0))
    print(f"{len(_PAGE):,} bytes a page; microseconds of CPU time a page, medians")
    print(
        f"{'':20}{'crawl':>8}{'both':>8}   crawl, less ours in the same round (lowest to highest)"
    )
    for name, rows in found.items():
        own, both = (statistics.median(column) for column in zip(*rows, strict=True))
        more = sorted(row[0] - ours[0] for row, ours in zip(rows, found["ours"], strict=True))
        spread = f"{statistics.median(more):+.0f} ({more[0]:+.0f} to {more[-1]:+.0f})"
        print(f"{name:20}{own:8.0f}{both:8.0f}   {spread}")


if __name__ == "__main__":
    main()
