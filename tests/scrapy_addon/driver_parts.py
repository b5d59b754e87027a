"""What the driver needs of one crawl, for its parts that are called without Scrapy."""

from collections.abc import Callable
from dataclasses import dataclass

from focused.crawl import Crawl
from focused.durations import Clock
from focused.scrapy_addon.access_checks import HostTurns
from focused.scrapy_addon.crawl_slot import CrawlSlot


@dataclass(frozen=True)
class ReadClock:
    """Reads the time from ``now``; its seconds are ``speed`` times as short as real ones."""

    now: Callable[[], float]
    speed: float = 1.0

    def __call__(self) -> float:
        return self.now()

    def real_s(self, duration_s: float) -> float:
        return duration_s / self.speed

    def advance_to(self, last: float) -> None:
        assert self.now() >= last


def opened(crawl: Crawl) -> CrawlSlot:
    slot = CrawlSlot()
    slot.opened(crawl, crawl)
    return slot


def turns_of(crawl: Crawl, clock: Clock) -> HostTurns:
    return HostTurns(opened(crawl), clock, wake=lambda: None)
