"""Inspect a frontier: totals, hosts, links; select links by URL, host or pattern.

Hosts are scanned once; links are read only where they are shown.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.host import Host
from focused.frontier.queued_link import QueuedLink, link_key
from focused.web.urls import host_of, normalize_url


@dataclass(frozen=True, slots=True)
class FrontierTotals:
    """Totals of a frontier.

    Of ``hosts``, ``with_links`` have links queued; of these, ``full`` have no budget left, ``due``
    may be requested now, ``backing_off`` have failed. ``next_due_in_s`` is None when no host waits.
    """

    links: int
    hosts: int
    with_links: int
    full: int
    due: int
    backing_off: int
    next_due_in_s: float | None
    in_flight: int


@dataclass(frozen=True, slots=True)
class HostSummary:
    """The state of one host.

    ``best`` is the priority of its best link and ``score`` that link's, None without links.
    ``worth`` is ``best`` plus the exploration bonus, and orders hosts. ``failures`` are those in a
    row. ``full``: no budget left. ``address`` is empty if unknown.
    """

    name: str
    queued: int
    best: float | None
    score: float | None
    worth: float | None
    asked: int
    fetched: int
    failures: int
    suspensions: int
    due_in_s: float
    full: bool
    crawl_delay_s: float
    address: str


def count_totals(frontier: DiskFrontier, now: float) -> FrontierTotals:
    """Count links and hosts in one pass over the hosts."""
    due = resting = with_links = full = 0
    next_due_at = float("inf")
    for host in _with_links(frontier):
        with_links += 1
        if not host.in_turn:
            full += 1
        elif host.pace.due_at <= now:
            due += 1
        else:
            resting += _in_trouble(host)
            next_due_at = min(next_due_at, host.pace.due_at)
    return FrontierTotals(
        links=len(frontier),
        hosts=len(frontier.hosts),
        with_links=with_links,
        full=full,
        due=due,
        backing_off=resting,
        next_due_in_s=next_due_at - now if due + full < with_links else None,
        in_flight=len(frontier.interrupted),
    )


def top_hosts(frontier: DiskFrontier, at_most: int, now: float) -> list[HostSummary]:
    """Return the hosts with the highest priorities."""
    best = heapq.nlargest(at_most, _with_links(frontier), key=frontier.hosts.worth)
    return [summarise_host(frontier, host, now) for host in best]


def hosts_backing_off(frontier: DiskFrontier, at_most: int, now: float) -> list[HostSummary]:
    """Return the hosts that back off or are suspended, next due first."""
    resting = (
        host
        for host in _with_links(frontier)
        if host.in_turn and _in_trouble(host) and host.pace.due_at > now
    )
    soonest = heapq.nsmallest(at_most, resting, key=lambda host: host.pace.due_at)
    return [summarise_host(frontier, host, now) for host in soonest]


def summarise_host(frontier: DiskFrontier, host: Host, now: float) -> HostSummary:
    """Summarise one host."""
    best = next(frontier.waiting(host), None)
    return HostSummary(
        name=host.name,
        queued=frontier.count(host),
        best=host.best,
        score=None if best is None else best.score,
        worth=None if host.best is None else frontier.hosts.worth(host),
        asked=host.asked,
        fetched=host.fetched,
        failures=host.pace.failures,
        suspensions=host.pace.suspensions,
        due_in_s=max(0.0, host.pace.due_at - now),
        full=host.best is not None and not host.in_turn,
        crawl_delay_s=host.pace.crawl_delay_s,
        address=host.address,
    )


def hosts_in_flight(frontier: DiskFrontier, at_most: int, now: float) -> list[tuple[str, float]]:
    """Return hosts with a fetch in flight when the frontier was last written, and for how long.

    The longest come first.
    """
    longest = heapq.nsmallest(at_most, frontier.interrupted, key=itemgetter(1))
    return [(host.name, max(0.0, now - since)) for host, since in longest]


def top_links(frontier: DiskFrontier, host: Host, at_most: int) -> list[QueuedLink]:
    """Return the host's best links."""
    return list(islice(frontier.waiting(host), at_most))


def top_links_overall(frontier: DiskFrontier, at_most: int) -> list[QueuedLink]:
    """Return the best links of all hosts, due or not."""
    # The n best links are on the n hosts with the best links.
    hosts = heapq.nlargest(at_most, _with_links(frontier), key=attrgetter("best"))
    streams = [frontier.waiting(host) for host in hosts]
    return list(islice(heapq.merge(*streams, key=lambda link: -link.priority), at_most))


def link_to_json(link: QueuedLink) -> dict[str, Any]:
    """Return what a person wants to know of a queued link."""
    names = ("score", "priority", "depth", "tries", "anchor", "url", "parent")
    return {name: getattr(link, name) for name in names}


def _with_links(frontier: DiskFrontier) -> Iterator[Host]:
    return (host for host in frontier.hosts if host.best is not None)


def _in_trouble(host: Host) -> bool:
    return host.pace.failures > 0 or host.pace.suspensions > 0


_LINKS_A_BATCH = 1_000


def find_links(
    frontier: DiskFrontier, urls: Iterable[str]
) -> Iterator[tuple[str, QueuedLink | None]]:
    """Yield each URL with its queued link, or None."""
    for text in urls:
        url = normalize_url(text)
        if url is None:
            yield text, None
            continue
        key = link_key(url)
        yield text, frontier.lookup_links([(host_of(url), key)]).waiting.get(key)


def links_matching(
    frontier: DiskFrontier, hosts: Iterable[Host], pattern: re.Pattern[str] | None = None
) -> Iterator[QueuedLink]:
    """Yield the hosts' queued links whose URL matches the pattern, host by host, best first.

    The caller may write and commit between links.
    """
    for host in hosts:
        if host.best is None:
            continue
        waiting = frontier.waiting(host)
        keys = [link.key for link in waiting if pattern is None or pattern.search(link.url)]
        remaining = iter(keys)
        while batch := list(islice(remaining, _LINKS_A_BATCH)):
            links = frontier.lookup_links([(host.name, key) for key in batch]).waiting
            yield from (links[key] for key in batch if key in links)
