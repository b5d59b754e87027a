"""What the driver needs of one crawl, for its parts that are called without Scrapy."""

from __future__ import annotations

from focused.crawl import Crawl
from focused.durations import Clock
from focused.scrapy_addon.access_checks import HostTurns
from focused.scrapy_addon.crawl_slot import CrawlSlot


def opened(crawl: Crawl) -> CrawlSlot:
    slot = CrawlSlot()
    slot.opened(crawl, crawl)
    return slot


def turns_of(crawl: Crawl, clock: Clock) -> HostTurns:
    return HostTurns(opened(crawl), clock, wake=lambda: None)
