"""Measure Scrapy's stock scheduler and its disk queues with the same links.

All settings are Scrapy's own except ``JOBDIR``. Its priorities are integers, and each priority of
each host has its own open file: scores are rounded to ``steps`` levels. Other data of a link goes
into the request's meta.
"""

from __future__ import annotations

import errno
import gc
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from frontier_growth import UNDER_WAY, WARM_UP_PAGES, WINDOW_PAGES
from frontier_links import LinkSource
from frontier_machine import (
    Seconds,
    Spent,
    allocated_bytes,
    anonymous_mb,
    began,
    shared,
    spent,
    took,
)
from frontier_recording import Recording
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.test import get_crawler

from focused.frontier.queued_link import QueuedLink

POPS = 1_000


@dataclass(frozen=True, slots=True)
class StockJob:
    """Grow a job folder to ``links`` queued requests of ``hosts``, priorities in ``steps`` levels.

    ``closes``: end normally, because only then the queues are completely on disk; otherwise be
    killed.
    """

    folder: Path
    recording: Recording
    links: int
    hosts: int
    steps: int
    closes: bool
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StockStage:
    """The figures of Scrapy's scheduler; fields as of :class:`frontier_growth.Stage`.

    ``left`` links were queued at the end; ``disk_bytes`` is known if it closed.
    """

    links: int
    hosts: int
    steps: int
    push: Spent
    pop: Spent
    pushed_links_per_s: float
    anonymous_mb: float
    left: int
    disk_bytes: int | None


@dataclass(frozen=True, slots=True)
class Died:
    """The scheduler failed: its number of links and hosts, and the error."""

    links: int
    hosts: int
    steps: int
    why: str


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


def stock_grow_and_measure(connection: Connection, job: StockJob) -> None:
    """Send a :class:`StockStage` or :class:`Died`; wait to be killed."""
    connection.send(_measured(job))
    connection.recv()


def stock_reopen(connection: Connection, job: StockJob) -> None:
    """Send the number of requests that return in a new process."""
    scheduler, _ = _opened(job.folder)
    connection.send(len(scheduler))
    connection.recv()


def _opened(folder: Path) -> tuple[Scheduler, _Downloader]:
    crawler = get_crawler(Spider, {"JOBDIR": str(folder)})
    engine: Any = _Engine()
    crawler.engine = engine
    crawler.spider = Spider.from_crawler(crawler, name="benchmark")
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    return scheduler, engine.downloader


def _measured(job: StockJob) -> StockStage | Died:
    source = LinkSource(job.recording, job.hosts, job.links // job.hosts, job.seed)
    for _ in range(WARM_UP_PAGES):
        _requests(source, job.steps)
    gc.collect()
    before_mb = anonymous_mb()
    scheduler, downloader = _opened(job.folder)
    try:
        push_s, rate = _grow(scheduler, source, job)
        links = len(scheduler)
        pop_s = _popped(scheduler, downloader)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return Died(len(scheduler), source.hosts_met, job.steps, str(error.strerror))
    own_mb, left = anonymous_mb() - before_mb, len(scheduler)
    if job.closes:
        scheduler.close("finished")
    return StockStage(
        links=links,
        hosts=source.hosts_met,
        steps=job.steps,
        push=spent(push_s),
        pop=spent(pop_s),
        pushed_links_per_s=rate,
        anonymous_mb=own_mb,
        left=left,
        disk_bytes=allocated_bytes(job.folder) if job.closes else None,
    )


def _grow(
    scheduler: Scheduler, source: LinkSource, job: StockJob
) -> tuple[Sequence[Seconds], float]:
    window: deque[Seconds] = deque(maxlen=WINDOW_PAGES)
    spent_s, pushed, queued = 0.0, 0, 0
    while queued < job.links:
        requests = _requests(source, job.steps)
        since = began()
        for request in requests:
            queued += scheduler.enqueue_request(request)
        passed = took(since)
        window.append(shared(passed, len(requests)))
        spent_s += passed[0]
        pushed += len(requests)
    return window, pushed / spent_s


def _requests(source: LinkSource, steps: int) -> Sequence[Request]:
    return [_request(link, steps) for link in source.queued(source.page(), {}, 0.0)]


def _request(link: QueuedLink, steps: int) -> Request:
    meta = {
        "depth": link.depth,
        "score": link.score,
        "parent": link.parent,
        "anchor": link.anchor,
        "features": link.features,
        "tag_path_key": link.tag_path_key,
    }
    return Request(link.url, priority=round(link.score * steps), meta=meta)


def _popped(scheduler: Scheduler, downloader: _Downloader) -> Sequence[Seconds]:
    """The time of each pop, with as many requests in flight as in a crawl."""
    times = []
    under_way: deque[Request] = deque()
    for _ in range(min(POPS, len(scheduler) // 10)):
        since = began()
        request = scheduler.next_request()
        times.append(took(since))
        if request is None:
            raise AssertionError("the scheduler has requests and gives none")
        downloader.slots.setdefault(downloader.get_slot_key(request), _Slot()).active.add(request)
        under_way.append(request)
        if len(under_way) > UNDER_WAY:
            done = under_way.popleft()
            downloader.slots.pop(downloader.get_slot_key(done), None)
    return times
