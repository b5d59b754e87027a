"""What the driver needs of one crawl, for its parts that are called without Scrapy."""

from __future__ import annotations

from focused.crawl import Crawl
from focused.crawl.crawl_group import SingleCrawl
from focused.scrapy_addon.access_checks import HostTurns
from focused.scrapy_addon.crawl_clock import Clock
from focused.scrapy_addon.open_crawls import OpenCrawls


def opened(crawl: Crawl) -> OpenCrawls:
    crawls = OpenCrawls()
    crawls.opened(SingleCrawl(crawl))
    return crawls


def turns_of(crawl: Crawl, clock: Clock) -> HostTurns:
    return HostTurns(opened(crawl), clock, wake=lambda: None)
