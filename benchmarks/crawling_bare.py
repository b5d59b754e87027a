"""The limit: fetch and parse with the fastest libraries, and nothing else."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import aiohttp
from crawling_meter import Clock
from selectolax.lexbor import LexborHTMLParser


class Bare:
    """Breadth-first over the hosts of the seeds; one connection per host, no robots.txt."""

    def __init__(self, seeds: list[str], hosts: set[str], pages: int, clock: Clock) -> None:
        self._hosts = hosts
        self._seen = set(seeds)
        self._queue = deque(seeds)
        self._left = pages
        self._clock = clock

    async def crawl(self, concurrency: int) -> None:
        """Fetch until enough pages came."""
        connector = aiohttp.TCPConnector(limit=concurrency, limit_per_host=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(self._work(session) for _ in range(concurrency)))

    async def _work(self, session: aiohttp.ClientSession) -> None:
        while self._left > 0:
            if not self._queue:
                await asyncio.sleep(0.001)
                continue
            self._left -= 1
            url = self._queue.popleft()
            async with session.get(url) as answer:
                body = await answer.read()
            self._clock.page()
            tree = LexborHTMLParser(body.decode("utf-8", "replace"))
            for node in tree.css("a[href]"):
                self._meet(urljoin(url, node.attributes["href"] or ""))

    def _meet(self, target: str) -> None:
        target = target.partition("#")[0]
        if target not in self._seen and urlsplit(target).hostname in self._hosts:
            self._seen.add(target)
            self._queue.append(target)


def main(seeds: str, hosts: str, pages: str, concurrency: str, result: str, began_at: str) -> None:
    """Crawl; ``seeds`` and ``hosts`` are files with one entry per line."""
    clock = Clock(Path(result), float(began_at))
    bare = Bare(
        Path(seeds).read_text().split(), set(Path(hosts).read_text().split()), int(pages), clock
    )
    asyncio.run(bare.crawl(int(concurrency)))


if __name__ == "__main__":
    main(*sys.argv[1:])
