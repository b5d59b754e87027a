"""The crawl's statistics: for ``stats.json``, and for ``crawler.stats`` under ``focused/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from scrapy.statscollectors import StatsCollector

from focused.crawl import Crawl
from focused.crawl.stop_conditions import count_hosts_backing_off, long_crawl_delays_s
from focused.web.page import UNRECORDED_HOST

PREFIX = "focused/"

_MIRRORS_LISTED = 100
_LONG_DELAYS_LISTED = 100


def counters_of(crawl: Crawl, *, replayed: bool) -> dict[str, Any]:
    """Return the totals of all sessions."""
    counters = crawl.counters.to_state()
    counters.pop("recent")
    failures = dict(crawl.counters.failures)
    outside = {"unrecorded_hosts": failures.pop(UNRECORDED_HOST, 0)} if replayed else {}
    return {**counters, "failures": failures, **outside, "elapsed_s": counters["active_s"]}


def hosts_of(crawl: Crawl) -> dict[str, Any]:
    """Return what is left, and what goes through all hosts: too slow for each second."""
    long_delays = long_crawl_delays_s(crawl.frontier.hosts).items()
    return {
        "frontier": len(crawl.frontier),
        "traps": crawl.traps.tally.as_json(),
        "hosts_in_back_off": count_hosts_backing_off(crawl.frontier.hosts),
        "long_crawl_delays": dict(islice(long_delays, _LONG_DELAYS_LISTED)),
        "mirrors": dict(islice(crawl.mirrors.items(), _MIRRORS_LISTED)),
    }


def publish(stats: StatsCollector, values: Mapping[str, Any]) -> None:
    """Set ``focused/...`` in Scrapy's statistics; of a list of traps or hosts, the totals."""
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
