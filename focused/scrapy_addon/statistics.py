"""Statistics of the crawl for ``stats.json`` and, under ``focused/``, for ``crawler.stats``.

:class:`CrawlStatistics` also measures time and resources of one session.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sized
from itertools import islice
from typing import Any

from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import CallLaterResult, call_later

from focused.crawl import Crawl
from focused.crawl.crawl_stats import Counters, StageTimes
from focused.crawl.stop_conditions import count_hosts_backing_off, long_crawl_delays_s
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.page_processing import PageParsers
from focused.web.page import UNRECORDED_HOST

PREFIX = "focused/"

STATISTICS: Mapping[str, str] = {
    "settled": "Links that left the frontier: fetched, redirected, failed or refused.",
    "fetched": "Pages fetched.",
    "classified": "Fetched pages that can be harvest: no training samples.",
    "on_topic": "Pages among them that the classifier found on topic; duplicates count once.",
    "training": "Training samples that the crawl fetched.",
    "duplicates": "Pages that repeat an earlier page.",
    "near_duplicates": "Near-duplicates among them.",
    "redirected": "Redirects.",
    "robots_fetched": "Requests for robots.txt.",
    "robots_excluded": "Links that robots.txt forbids.",
    "retries": "Requests repeated after a failure.",
    "nofollow": "Links not followed: link or page says nofollow.",
    "noindex": "Fetched pages that say noindex: no harvest.",
    "links_over_limit": "Links beyond `scope.max_links_per_page`.",
    "bytes": "Bytes of bodies, decoded.",
    "active_s": "Seconds that the crawl ran, over all sessions.",
    "elapsed_s": "The same.",
    "failures/KIND": "URLs that gave no page, by kind: "
    "docs/reference/crawl-folder.md#kinds-of-failure.",
    "out_of_scope/REASON": "Links that the scope refused, by reason.",
    "unrecorded_hosts": "Links to hosts that the recorded web does not have.",
    "frontier": "Queued links.",
    "hosts": "Hosts of all links found.",
    "recent_harvest_rate": "Share of pages on topic among the last 100 classified pages.",
    "traps/KIND/pages": "Pages fetched in crawl traps, by kind, at the crawl's end. `stats.json` "
    "lists hosts and examples.",
    "traps/KIND/links": "Links into crawl traps that were refused; likewise.",
    "hosts_in_back_off": "Hosts with queued links that failed last, at the crawl's end.",
    "long_crawl_delays": "Hosts with queued links and a crawl-delay above an hour, at the crawl's "
    "end. `stats.json` lists at most 100, with seconds.",
    "mirrors": "Pairs of mirrors, at the crawl's end. `stats.json` lists at most 100.",
    "ended_at": "The crawl's end, in seconds since the epoch.",
    "end_reason": "Why the crawl ended.",
    "profile/elapsed_s": "Seconds of this session.",
    "profile/cpu_s": "CPU seconds of the crawl's process in this session.",
    "profile/stages/STAGE": "Seconds of this session spent in a stage: "
    "docs/explanation/performance.md#where-the-time-goes.",
    "profile/pages": "Pages of this session.",
    "profile/parser_processes": "Parser processes, the most at once.",
    "profile/pages_parsed_in_processes": "Pages parsed in them.",
    "profile/parser_process_s": "Seconds that they spent.",
    "profile/reactor_blocked/longest_s": "Longest time that the reactor was blocked.",
    "profile/reactor_blocked/times": "How often it was blocked for longer than `threshold_s`.",
    "profile/reactor_blocked/threshold_s": "That threshold.",
    "resolver/EVENT": "Name lookups by event; not in `stats.json`.",
}
"""Meaning of each statistic of the core, in Markdown; words in capitals stand for any name."""


_MIRRORS_LISTED = 100
_LONG_DELAYS_LISTED = 100


def hosts_of(crawl: Crawl) -> dict[str, Any]:
    """Return the values that require a pass over all hosts; too slow for every second."""
    hosts = crawl.frontier.hosts
    long_delays = long_crawl_delays_s(hosts).items()
    return {
        "frontier": len(crawl.frontier),
        "hosts": len(hosts),
        "traps": list(crawl.traps.stats.as_json()),
        "hosts_in_back_off": count_hosts_backing_off(hosts),
        "long_crawl_delays": dict(islice(long_delays, _LONG_DELAYS_LISTED)),
        "mirrors": dict(islice(crawl.mirrors.items(), _MIRRORS_LISTED)),
    }


def publish(stats: StatsCollector, values: Mapping[str, Any]) -> None:
    """Set ``focused/...`` in Scrapy's statistics; lists of traps and hosts as totals."""
    values = dict(values)
    for line in values.pop("traps", ()):
        for count in ("pages", "links"):
            by_kind = values.setdefault(f"traps/{line['kind']}", {})
            by_kind[count] = by_kind.get(count, 0) + line[count]
    for name in ("long_crawl_delays", "mirrors"):
        if name in values:
            values[name] = len(values[name])
    for name, value in _flat(values):
        stats.set_value(PREFIX + name, value)


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}/")
        else:
            yield f"{path}{name}", value


class CrawlStatistics:
    """The figures of the crawl, and of this session; copied to Scrapy's statistics."""

    def __init__(
        self, crawler: Crawler, slot: CrawlSlot, parsers: PageParsers, *, replayed: bool
    ) -> None:
        self.stages = StageTimes(time.perf_counter)
        """Where the time of this session goes."""
        self._crawler = crawler
        self._slot = slot
        self._parsers = parsers
        self._replayed = replayed
        self._lag = ReactorLagMonitor()
        self._pages_before = 0
        self._began = (time.perf_counter(), time.process_time())

    def start(self, pages: int) -> None:
        """Start measuring; ``pages`` came in earlier sessions."""
        self._pages_before = pages
        self._began = (time.perf_counter(), time.process_time())
        self._lag.start()

    def stop(self) -> None:
        """Stop the reactor monitor."""
        self._lag.stop()

    def publish(self) -> None:
        """Copy the counters of the open crawl."""
        crawl = self._slot.crawl
        queued = {"frontier": len(crawl.frontier), "hosts": len(crawl.frontier.hosts)}
        publish(self._stats, {**self.totals(crawl.counters), **queued})

    def totals(self, counters: Counters) -> dict[str, Any]:
        """Return the totals of all sessions, with the profile of this one."""
        values = counters.to_state()
        values.pop("recent")
        failures = dict(counters.failures)
        outside = {"unrecorded_hosts": failures.pop(UNRECORDED_HOST, 0)} if self._replayed else {}
        return {
            **values,
            "recent_harvest_rate": counters.recent_harvest_rate,
            "failures": failures,
            **outside,
            "elapsed_s": values["active_s"],
            "profile": self._profile(counters.fetched),
        }

    def publish_last(self, values: Mapping[str, Any], tables: Mapping[str, Sized]) -> None:
        """Copy the final statistics, and the number of entries of features' tables."""
        publish(self._stats, {**values, **{name: len(each) for name, each in tables.items()}})

    def read(self) -> dict[str, Any]:
        """Return the crawl's values in Scrapy's statistics, by their names in ``stats.json``."""
        return {
            name.removeprefix(PREFIX): value
            for name, value in self._stats.get_stats().items()
            if name.startswith(PREFIX)
        }

    def count(self, name: str, events: int = 1) -> None:
        """Add events to a value."""
        self._stats.inc_value(PREFIX + name, events)

    @property
    def _stats(self) -> StatsCollector:
        assert self._crawler.stats is not None, "set before the engine starts"
        return self._crawler.stats

    def _profile(self, pages: int) -> dict[str, Any]:
        """Return all figures of this session; ``pages`` came in all sessions.

        ``stages`` are seconds of wall-clock time; ``parser_process_s`` of them passed in other
        processes.
        """
        return {
            "elapsed_s": time.perf_counter() - self._began[0],
            "cpu_s": time.process_time() - self._began[1],
            "stages": dict(self.stages.seconds),
            "pages": pages - self._pages_before,
            **self._parsers.profile(),
            "reactor_blocked": {
                "longest_s": self._lag.longest_s,
                "times": self._lag.long_times,
                "threshold_s": BLOCKED_S,
            },
        }


BLOCKED_S = 0.05
"""Longer delays block the reactor: connections time out, Ctrl-C is not handled."""

_TICK_INTERVAL_S = 0.02


class ReactorLagMonitor:
    """Measures how late a periodic call in the reactor is, the load of other processes included."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.long_times = 0
        self._due_at = 0.0
        self._next: CallLaterResult | None = None

    def start(self) -> None:
        """Start; the reactor must run."""
        self._due_at = time.perf_counter() + _TICK_INTERVAL_S
        self._next = call_later(_TICK_INTERVAL_S, self._tick)

    def stop(self) -> None:
        """Stop."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _tick(self) -> None:
        late_s = time.perf_counter() - self._due_at
        self.longest_s = max(self.longest_s, late_s)
        self.long_times += late_s > BLOCKED_S
        self.start()
