"""Pages that need JavaScript: count them, have some rendered, and learn from the results.

:mod:`focused.rendering.decision` decides which.

The driver asks :meth:`JavascriptPages.select` between the arrival of a page and its settling, lets
a renderer run the page's scripts, and returns the result by :meth:`JavascriptPages.learn`. What was
learned of a host is a value of the crawl's bookkeeping, written in the transaction of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from focused.crawl.classified_page import PageColumn
from focused.crawl.crawl_stats import Counters
from focused.crawl.features import CrawlCore, FeatureParts
from focused.crawl.listeners import SettledEvent
from focused.crawl.loop import Crawl
from focused.crawl.page_parser import ParsedPage
from focused.frontier.queued_link import QueuedLink
from focused.rendering.decision import (
    HostRendering,
    JavascriptNeed,
    adds_content,
    count_seen,
    is_worth_rendering,
    javascript_need,
    learn_cost,
    learn_gain,
    new_seed,
)
from focused.storage.tables import Tables
from focused.topic import Topic
from focused.web.page import Failed, FailureKind, Fetched, Page

if TYPE_CHECKING:
    from focused.rendering.subrequests import RenderResult

MAX_HOSTS = 10_000
"""Hosts that are remembered; the pages of others are counted, and decided by the priors."""

COUNTS = "javascript"
_TABLE = "javascript_hosts"
_LISTED_HOSTS = 100
_SCORES_META = "javascript_scores"
_MEMORY_LINKS = 1_000
_MIN_REQUEST_S = 0.5
_HOST_OF_OTHERS = "*"


@dataclass(frozen=True, slots=True)
class RenderCandidate:
    """A page to render: its raw version, None if it shows nothing, and how likely it needs it."""

    url: str
    host: str
    need: JavascriptNeed
    raw: Page | None
    request_s: float


class _MeanScore(msgspec.Struct):
    """The mean score of the links fetched; the last :data:`_MEMORY_LINKS` count most."""

    links: int = 0
    mean: float = 0.0

    def add(self, score: float) -> None:
        self.links = min(self.links + 1, _MEMORY_LINKS)
        self.mean += (score - self.mean) / self.links


def select_to_render(
    crawl: Crawl, lease_id: int, fetched: Fetched, parsed: ParsedPage | Failed, now: float
) -> RenderCandidate | None:
    """Return the candidate if a page is worth rendering before it is settled, else None.

    Its host's delay counts from now for the requests of its scripts.
    """
    link, pages = crawl.page_in_flight(lease_id), crawl.feature(JavascriptPages)
    if link is None or pages is None or not pages.renders:
        return None
    candidate = pages.select(link, fetched, parsed)
    if candidate is not None:
        crawl.hosts.touch(fetched.url, fetched, now)
    return candidate


class JavascriptPages:
    """The pages of one crawl that need JavaScript; a listener of settled links.

    Persistent; the caller commits.
    """

    def __init__(
        self,
        topic: Topic,
        tables: Tables,
        counters: Counters,
        count_queued: Callable[[str], int],
    ) -> None:
        """``count_queued`` returns the number of queued links of a host."""
        self._count_queued = count_queued
        self.renders = topic.scope.javascript == "render"
        self._reports = topic.scope.javascript == "report"
        self._politeness = topic.politeness
        self._seed = new_seed(topic.name)
        self._tables = tables
        self._counters = counters
        self.hosts: dict[str, HostRendering] = {
            key.decode(): msgspec.json.decode(raw, type=HostRendering)
            for key, raw in tables.scan(_TABLE)
        }
        """What was learned, by host."""
        self._scores = msgspec.convert(tables.get_meta(_SCORES_META) or {}, _MeanScore)

    def on_settled(self, event: SettledEvent) -> None:
        """Count a page that shows nothing without JavaScript, if the crawl renders none."""
        settled, fetched = event.settled, event.outcome
        if not self._reports or not isinstance(fetched, Fetched):
            return
        page: Page | Failed | None = settled.page
        if page is None and settled.failure == FailureKind.EMPTY:
            page = Failed(fetched.url, FailureKind.EMPTY)
        if page is not None and javascript_need(fetched, page) is JavascriptNeed.LIKELY:
            self._count_needing(settled.link.host)

    def select(
        self, link: QueuedLink, fetched: Fetched, parsed: ParsedPage | Failed
    ) -> RenderCandidate | None:
        """Return the candidate if the page of ``link`` is worth rendering, else None."""
        value = self._value_of(link)
        raw = parsed if isinstance(parsed, Failed) else parsed.page
        need = javascript_need(fetched, raw)
        if need is JavascriptNeed.NONE:
            return None
        if need is JavascriptNeed.LIKELY:
            self._count_needing(link.host)
        host = self._host(link.host)
        count_seen(host, fetched.url, need)
        queued = self._count_queued(link.host)
        if not is_worth_rendering(host, fetched.url, need, value, self._seed, queued=queued):
            self._counters.count_kind(COUNTS, f"not-worth-it/{need}")
            return None
        request_s = max(self._politeness.delay_of(link.host), fetched.elapsed_s, _MIN_REQUEST_S)
        page = None if isinstance(raw, Failed) else raw
        return RenderCandidate(fetched.url, link.host, need, page, request_s)

    def learn(self, candidate: RenderCandidate, result: RenderResult, shown: Page | None) -> bool:
        """Learn what rendering brought; return whether the rendered page is to be used.

        ``shown`` is the rendered page, None if there is none.
        """
        from focused.rendering.subrequests import RenderFailure  # only for pages that are rendered

        host = self._host(candidate.host)
        count = partial(self._counters.count_kind, COUNTS)
        if result.failure is not None:
            host.failures[result.failure] = host.failures.get(result.failure, 0) + 1
            count(f"failed/{result.failure}")
        for reason, times in result.refused.items():
            host.refused[reason] = host.refused.get(reason, 0) + times
            count(f"refused/{reason}", times)
        if result.failure is RenderFailure.NO_BROWSER:
            self._save(candidate.host, host)
            return False
        gained = shown is not None and adds_content(candidate.raw, shown)
        learn_gain(host, candidate.url, candidate.need, gained=gained)
        learn_cost(host, result.seconds, candidate.request_s)
        host.rendered += 1
        host.gained += gained
        host.requests += result.requests
        host.seconds += result.seconds
        count("rendered")
        count("gained", int(gained))
        count("cut", int(result.is_cut))
        count("requests", result.requests)
        count("milliseconds", round(1_000 * result.seconds))
        self._counters.bytes += result.request_bytes
        self._save(candidate.host, host)
        return gained

    def needing_by_host(self, limit: int) -> Mapping[str, int]:
        """Return how many pages show nothing without JavaScript, by host, most first."""
        counts = ((name, host.needing) for name, host in self.hosts.items() if host.needing)
        return dict(sorted(counts, key=lambda each: (-each[1], each[0]))[:limit])

    def _value_of(self, link: QueuedLink) -> float:
        """Return the score of a link relative to the mean score of the links fetched."""
        if not link.features:  # the score of a seed was not predicted
            return 1.0
        self._scores.add(link.score)
        return link.score / self._scores.mean if self._scores.mean > 0 else 1.0

    def _count_needing(self, name: str) -> None:
        host = self._host(name)
        host.needing += 1
        self._counters.count_kind(COUNTS, "needing")
        self._save(name, host)

    def _host(self, name: str) -> HostRendering:
        if name not in self.hosts and len(self.hosts) >= MAX_HOSTS:
            name = _HOST_OF_OTHERS
        return self.hosts.setdefault(name, HostRendering())

    def _save(self, name: str, host: HostRendering) -> None:
        if self.hosts.get(name) is not host:
            name = _HOST_OF_OTHERS
        self._tables.put(_TABLE, name.encode(), msgspec.json.encode(host))
        self._tables.put_meta(_SCORES_META, self._scores)


def connect(core: CrawlCore) -> FeatureParts:
    """Build the bookkeeping; the driver's renderer asks it which pages to render."""
    core.columns.append(
        PageColumn("rendered", "flag", lambda page: page.response.rendered is not None)
    )
    frontier = core.state.frontier
    pages = JavascriptPages(
        core.topic,
        core.state.store.tables,
        core.state.counters,
        lambda name: frontier.count(frontier.hosts.get(name)),
    )
    return FeatureParts(
        listeners=[pages],
        statistics={"javascript_hosts": lambda: pages.needing_by_host(_LISTED_HOSTS)},
        offered=[pages],
    )
