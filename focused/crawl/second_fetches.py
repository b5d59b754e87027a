"""Fetch a few pages a second time, to find sites that answer another page the next time.

Cloaking sites show crawlers other pages than people (Gyöngyi and Garcia-Molina 2005, "Web spam
taxonomy"; Wu and Davison 2005, "Cloaking and redirection: a preliminary study"). One crawler, which
never pretends to be another, can't see what people see, but it sees a page that changes its subject
from one visit to the next. Pages on topic of sites that nobody chose are sampled by the hash of
their URL, and compared with their second fetch by their shingles. A page that hardly shares any and
is off topic now is another page; news, dates and advertisements leave either text or subject.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

import msgspec
import numpy as np

from focused.crawl.crawl_stats import Counters
from focused.crawl.leases import Lease
from focused.crawl.listeners import SettledEvent
from focused.crawl.page_parser import EarlyResult, ParsedPage
from focused.crawl.purposes import HostAccess
from focused.crawl.responses import ResponseProcessor
from focused.crawl.spam_filter import SpamFilter
from focused.frontier.host_scheduler import UNLIMITED_PRIORITY
from focused.frontier.interface import Frontier, Offer
from focused.frontier.queued_link import QueuedLink, link_key
from focused.spam.site_trust import site_key
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.text.content_signatures import (
    Sketch,
    estimate_resemblance,
    make_sketch,
    shingles,
)
from focused.text.hash_sampling import hash_fraction
from focused.web.page import Failed, Fetched, Outcome, Page, Redirected
from focused.web.robots.robots_rules import RobotsFile
from focused.web.urls import host_of

SECOND_FETCH = "second-fetch"
"""The purpose of the links that fetch a page a second time."""
MAX_SECOND_FETCHES_PER_SITE = 5
PAGES_BETWEEN = 100
"""The pages that the crawl settles between both fetches of a page."""
MAX_RESEMBLANCE = 0.2
"""Another page shares less of its shingles: templates of one site often share more."""
MIN_SHINGLES = 30

_SAMPLED = 0.2
"""The share of a site's pages that may be fetched again, unless the site is suspect."""
_MAX_WAITING = 200
_WAITING_TABLE, _COUNTS_TABLE = "second_fetches", "second_fetch_counts"
_NUMBER = struct.Struct(">Q")
_COUNT = struct.Struct(">B")


class FirstFetch(msgspec.Struct, frozen=True, array_like=True):
    """A page that waits for its second fetch, from ``due`` settled links on."""

    url: str
    due: int
    up_to: int
    hashes: bytes

    @property
    def sketch(self) -> Sketch:
        """The sample of the page's shingles."""
        return Sketch(np.frombuffer(self.hashes, np.uint64), self.up_to)


def second_fetch_key(url: str) -> bytes:
    """Return the key of the link that fetches a page a second time."""
    return link_key(f"second fetch {url}")


class SecondFetches:
    """Samples pages, queues their second fetches and compares; persistent, the caller commits.

    A page that waits has a row of at most 1 kB and its URL; at most 200 wait.
    """

    def __init__(
        self,
        share: float,
        tables: Tables,
        frontier: Frontier,
        responses: ResponseProcessor,
        spam_filter: SpamFilter,
        counters: Counters,
    ) -> None:
        """At most ``share`` of the fetched pages are fetched again."""
        self._share = share
        self._tables = tables
        self._frontier = frontier
        self._responses = responses
        self._spam_filter = spam_filter
        self._counters = counters
        self._waiting: deque[tuple[bytes, FirstFetch]] = deque()
        self._queued: dict[bytes, tuple[bytes, FirstFetch]] = {}
        for row_key, raw in tables.scan(_WAITING_TABLE):
            self._waiting.append((row_key, FirstFetch(*unpack(raw))))

    def on_settled(self, event: SettledEvent) -> None:
        """Sample a page that was fetched, and queue the second fetches that are due."""
        settled = event.settled
        found = settled.classification
        is_harvest = (
            settled.outcome == "fetched"
            and settled.duplicate_of is None
            and not settled.is_noindex
            and found is not None
            and found.on_topic
            and settled.rendered is None  # the second fetch is not rendered
        )
        if is_harvest and settled.page is not None:
            self._sample(settled.page)
        self._queue_due(event.now)

    def _sample(self, page: Page) -> None:
        url, counters = page.url, self._counters
        planned = len(self._waiting) + len(self._queued)
        if (
            planned >= _MAX_WAITING
            or counters.second_fetches + planned + 1 > self._share * counters.fetched
            or self._spam_filter.is_trusted(url)
        ):
            return
        if hash_fraction(url) >= _SAMPLED and not self._spam_filter.is_suspect(url):
            return
        count_key = site_key(url)
        raw = self._tables.get(_COUNTS_TABLE, count_key)
        count = 0 if raw is None else _COUNT.unpack(raw)[0]
        sketch = make_sketch(shingles(page.text))
        if count >= MAX_SECOND_FETCHES_PER_SITE or len(sketch.hashes) < MIN_SHINGLES:
            return
        due = counters.settled + PAGES_BETWEEN
        first = FirstFetch(url, due, sketch.up_to, sketch.hashes.tobytes())
        row_key = _NUMBER.pack(counters.settled)
        self._tables.put(_COUNTS_TABLE, count_key, _COUNT.pack(count + 1))
        self._tables.put(_WAITING_TABLE, row_key, pack(list(msgspec.structs.astuple(first))))
        self._waiting.append((row_key, first))

    def _queue_due(self, now: float) -> None:
        """Queue what is due; it goes before other links of its host."""
        while self._waiting and self._waiting[0][1].due <= self._counters.settled:
            row_key, first = self._waiting.popleft()
            key = second_fetch_key(first.url)
            self._queued[key] = row_key, first
            self._frontier.push(
                QueuedLink(
                    key,
                    first.url,
                    host_of(first.url),
                    UNLIMITED_PRIORITY,
                    1.0,
                    purpose=SECOND_FETCH,
                ),
                now,
            )

    def settle(
        self, link: QueuedLink, outcome: Outcome, parsed: ParsedPage | Failed | None
    ) -> None:
        """Compare a second fetch with the first; the page is not archived again."""
        first = self.drop(link)
        self._counters.second_fetches += 1
        if isinstance(outcome, Fetched):
            self._counters.bytes += len(outcome.body)
        is_other = None if first is None else self._is_other(link, first, outcome, parsed)
        if is_other is not None:
            self._counters.other_pages += is_other
            self._spam_filter.learn_second_fetch(link.url, is_other=is_other)

    def drop(self, link: QueuedLink) -> FirstFetch | None:
        """Forget a page that waited for its second fetch; return what was known of it."""
        found = self._queued.pop(link.key, None)
        if found is None:  # it was queued before a restart
            found = next((each for each in self._waiting if each[1].url == link.url), None)
            if found is None:
                return None
            self._waiting.remove(found)
        row_key, first = found
        self._tables.delete(_WAITING_TABLE, row_key)
        return first

    def _is_other(
        self,
        link: QueuedLink,
        first: FirstFetch,
        outcome: Outcome,
        parsed: ParsedPage | Failed | None,
    ) -> bool | None:
        """Return whether another page came; None if that can't be told."""
        if isinstance(outcome, Redirected):
            return True if site_key(link.url) != site_key(outcome.target) else None
        if not isinstance(outcome, Fetched):
            return None
        second = self._responses.parse(link, outcome, parsed)
        if isinstance(second, Failed):
            return None
        return not second.classification.on_topic and is_other_text(
            first.sketch, make_sketch(shingles(second.page.text))
        )


class SecondFetchRequests:
    """Fetches pages a second time; see :class:`focused.crawl.purposes.RequestHandler`."""

    def __init__(
        self,
        second: SecondFetches,
        hosts: HostAccess,
        frontier: Frontier,
        refusal_reason: Callable[[str], str | None],
    ) -> None:
        """``refusal_reason`` returns the trap that a URL leads into by now, or None."""
        self._second = second
        self._hosts = hosts
        self._frontier = frontier
        self._refusal_reason = refusal_reason

    def prepare(self, offer: Offer, now: float) -> Lease | None:
        """Lease the page; None if it is refused by now."""
        url = offer.link.url
        first = self._hosts.robots_first(offer, now)
        if first is not None:
            return first
        is_allowed = self._hosts.policy.robots_allows(offer.host, url)
        if is_allowed and self._refusal_reason(url) is None:
            return Lease(offer, SECOND_FETCH, url)
        self._second.drop(offer.link)
        self._frontier.settle(offer, offer.host.pace, now)
        return None

    def settle(self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult) -> None:
        """Compare the page with its first fetch; it is not archived again."""
        assert not isinstance(parsed, RobotsFile)
        offer = lease.offer
        self._second.settle(offer.link, outcome, parsed)
        pace = self._hosts.pace_after(offer, lease.url, outcome, now)
        self._frontier.settle(offer, pace, now)


def is_other_text(first: Sketch, second: Sketch) -> bool:
    """Whether two texts share so little that they are no versions of one page."""
    share, _ = estimate_resemblance(first, second)
    return share < MAX_RESEMBLANCE
