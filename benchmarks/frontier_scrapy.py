"""Measure Scrapy's stock scheduler and its disk queues with the links of :mod:`frontier_links`.

All settings are Scrapy's own except ``JOBDIR``. Its priorities are integers, and each priority of
each host has its own open file: scores are rounded to ``_LEVELS`` levels. Other data of a link goes
into the request's meta.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from frontier_links import LinkSource, queued_links
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.test import get_crawler

from focused.frontier.queued_link import QueuedLink

_LEVELS = 10
_POPS = 1_000
_IN_FLIGHT = 16


class _Slot:
    """The part of a downloader's slot that the priority queue uses."""

    def __init__(self) -> None:
        self.active: set[Request] = set()


class _Downloader:
    """The part of a downloader that the priority queue uses: active requests by host."""

    def __init__(self) -> None:
        self.slots: dict[str, _Slot] = {}

    def get_slot_key(self, request: Request) -> str:
        """The host, as in Scrapy's own downloader."""
        return urlparse_cached(request).hostname or ""


class _Engine:
    """Holds the downloader for the priority queue."""

    def __init__(self) -> None:
        self.downloader = _Downloader()


def measure_scrapy(connection: Connection, folder: Path, source: LinkSource, links: int) -> None:
    """Send seconds of pushes, a link, and of pops, and the links that are left; wait for a kill."""
    scheduler, downloader = _open_scheduler(folder)
    push_s = []
    queued = 0
    while queued < links:
        page = source.page()
        requests = [_request(link) for link in queued_links(page, {}, 0.0)]
        began_s = time.perf_counter()
        queued += sum(map(scheduler.enqueue_request, requests))
        push_s.append((time.perf_counter() - began_s) / len(requests))
    connection.send((push_s, _pop(scheduler, downloader), len(scheduler)))
    connection.recv()


def reopen_scrapy(connection: Connection, folder: Path) -> None:
    """Send the number of requests that a new process finds."""
    scheduler, _ = _open_scheduler(folder)
    connection.send(len(scheduler))
    connection.recv()


def _open_scheduler(folder: Path) -> tuple[Scheduler, _Downloader]:
    crawler = get_crawler(Spider, {"JOBDIR": str(folder)})
    engine: Any = _Engine()
    crawler.engine = engine
    crawler.spider = Spider.from_crawler(crawler, name="benchmark")
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    return scheduler, engine.downloader


def _request(link: QueuedLink) -> Request:
    meta = {
        "depth": link.depth,
        "score": link.score,
        "parent": link.parent,
        "anchor": link.anchor,
        "features": link.features,
        "tag_path_key": link.tag_path_key,
    }
    return Request(link.url, priority=round(link.score * _LEVELS), meta=meta)


def _pop(scheduler: Scheduler, downloader: _Downloader) -> Sequence[float]:
    """The time of each pop, with as many requests in flight as in a crawl."""
    times = []
    in_flight: deque[Request] = deque()
    for _ in range(min(_POPS, len(scheduler) // 10)):
        began_s = time.perf_counter()
        request = scheduler.next_request()
        times.append(time.perf_counter() - began_s)
        if request is None:
            raise AssertionError("the scheduler has requests and gives none")
        downloader.slots.setdefault(downloader.get_slot_key(request), _Slot()).active.add(request)
        in_flight.append(request)
        if len(in_flight) > _IN_FLIGHT:
            downloader.slots.pop(downloader.get_slot_key(in_flight.popleft()), None)
    return times
