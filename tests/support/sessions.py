"""A session of one crawl, for middlewares that are called without Scrapy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from focused.crawl import Crawl
from focused.crawl.crawl_group import SingleCrawl


def session_of_crawl(crawl: Crawl, now: Callable[[], float]) -> Any:
    group = SingleCrawl(crawl)
    return SimpleNamespace(
        group=group,
        crawl_of=group.of_url,
        is_leased=crawl.is_open,
        now=now,
        is_open=True,
        wake=lambda: None,
    )
