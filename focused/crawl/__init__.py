"""The crawl: the only place that sees web, learning and frontier together.

A driver (the Scrapy scheduler, a simulator) turns one crank::

    crawl.seed(now)
    while True:
        match crawl.next(now):
            case Fetch() as fetch:  # ask for fetch.url, then
                crawl.settle(fetch.lease, outcome, now)
            case Wait(until):  ...  # nothing may be asked before then
            case Done(reason): break

``settle`` is the journey of one answer: parse, classify, archive, discover. What
always holds: robots.txt comes before a host's first page; every offered
lease is settled or put back; what a settle changed is committed when it
returns; a link's score was predicted before its page was seen.
"""

from focused.crawl.loop import Crawl
from focused.crawl.steps import Done, Fetch, FetchPurpose, RefusedRequest, SettledFetch, Step, Wait

__all__ = [
    "Crawl",
    "Done",
    "Fetch",
    "FetchPurpose",
    "RefusedRequest",
    "SettledFetch",
    "Step",
    "Wait",
]
