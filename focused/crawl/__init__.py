"""The crawl: combines web, classifier, link scoring and frontier.

A driver (the Scrapy scheduler or the simulator) runs the loop::

    crawl = build_crawl(topic, classifier, policy, store)
    crawl.seed(urls, now)
    while True:
        match crawl.next(now):
            case Fetch() as fetch:  # request fetch.url, then
                crawl.settle(fetch.lease, outcome, now)
            case Wait(until): ...
            case Done(reason): break

Invariants: robots.txt is fetched before a host's first page; each lease is settled or put back;
``settle`` commits what it changed; a link is scored before its page is seen.
"""

from focused.crawl.build import build_crawl
from focused.crawl.loop import Crawl
from focused.crawl.steps import (
    ROBOTS,
    Done,
    Fetch,
    RefusedRequest,
    SettledFetch,
    Step,
    Wait,
)
from focused.frontier.queued_link import PAGE

CONTROL_FOLDER = "control"
"""Folder of a crawl by which other processes watch and steer it: see
:mod:`focused.crawl.steering`."""

__all__ = [
    "CONTROL_FOLDER",
    "PAGE",
    "ROBOTS",
    "Crawl",
    "Done",
    "Fetch",
    "RefusedRequest",
    "SettledFetch",
    "Step",
    "Wait",
    "build_crawl",
]
