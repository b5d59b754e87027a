"""The stock crawl: Scrapy's CrawlSpider with a LinkExtractor, breadth-first, robots.txt obeyed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from crawling_meter import Meter
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": "FocusedBenchmark/1.0 (+http://127.0.0.1/)",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "EXTENSIONS": {Meter: 0},
    # Breadth-first, as in Scrapy's documentation.
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


class StockSpider(CrawlSpider):
    """Follows every link of its hosts; does nothing else with a page."""

    name = "stock"
    allowed_domains: ClassVar[list[str]] = []
    rules = (Rule(LinkExtractor()),)


def main(seeds: str, hosts: str, pages: str, concurrency: str, result: str, began_at: str) -> None:
    """Crawl; ``seeds`` and ``hosts`` are files with one entry per line."""
    StockSpider.start_urls = Path(seeds).read_text().split()
    StockSpider.allowed_domains = Path(hosts).read_text().split()
    settings = {
        **SETTINGS,
        "CONCURRENT_REQUESTS": int(concurrency),
        "CLOSESPIDER_PAGECOUNT": int(pages),
        "METER_RESULT": result,
        "METER_BEGAN_AT": float(began_at),
    }
    process = CrawlerProcess(settings)
    process.crawl(StockSpider)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
