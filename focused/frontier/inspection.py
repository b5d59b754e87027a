"""What a frontier holds, told to its operator: totals, hosts, links.

Nothing is changed. Hosts are passed over once; links are read where they are
shown, never all of them.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from focused.frontier.host import Host
from focused.frontier.interface import Frontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.web.urls import host_of, normalise


@dataclass(frozen=True, slots=True)
class FrontierTotals:
    """What waits in all.

    Of ``hosts`` ever met ``with_links`` have links queued. Of these ``full`` have
    spent their budget of pages, ``due`` may be asked now, ``backing_off`` are in
    trouble and rest. ``next_due_in_s`` counts seconds until the first of those
    that rest is due; None when none does. ``in_flight`` fetches had begun.
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
class HostInFlight:
    """A host that was being asked, ``for_s`` seconds by now."""

    name: str
    for_s: float


@dataclass(frozen=True, slots=True)
class HostSummary:
    """One host as it waits.

    ``best`` is the priority of its best link, ``score`` that link's, None
    without links; ``worth`` is ``best`` and what is hoped of the host, and
    orders hosts. ``failures`` are its troubles in a row, for which it was set
    aside ``suspensions``. ``due_in_s`` is 0 when it may be asked now; ``full``:
    its budget of pages is spent. ``address`` is empty when it is not known.
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


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """One queued link."""

    score: float
    priority: float
    depth: int
    tries: int
    anchor: str
    url: str
    parent: str | None


def count_totals(frontier: Frontier, now: float) -> FrontierTotals:
    """Count what waits, in one pass over the hosts; ``now`` in seconds of the crawl's clock."""
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


def top_hosts(frontier: Frontier, at_most: int, now: float) -> list[HostSummary]:
    """The hosts with links that are worth most, best first."""
    best = heapq.nlargest(at_most, _with_links(frontier), key=frontier.hosts.worth)
    return [summarise_host(frontier, host, now) for host in best]


def backing_off(frontier: Frontier, at_most: int, now: float) -> list[HostSummary]:
    """The hosts with links that rest because they are in trouble, next due first."""
    resting = (
        host
        for host in _with_links(frontier)
        if host.in_turn and _in_trouble(host) and host.pace.due_at > now
    )
    soonest = heapq.nsmallest(at_most, resting, key=_due_at)
    return [summarise_host(frontier, host, now) for host in soonest]


def summarise_host(frontier: Frontier, host: Host, now: float) -> HostSummary:
    """One host as it waits."""
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


def in_flight(frontier: Frontier, at_most: int, now: float) -> list[HostInFlight]:
    """The hosts that were being asked when the frontier was written last, longest first."""
    longest = heapq.nsmallest(at_most, frontier.interrupted, key=_since)
    return [HostInFlight(host.name, max(0.0, now - since)) for host, since in longest]


def top_links(frontier: Frontier, host: Host, at_most: int) -> list[LinkSummary]:
    """The host's best links, best first."""
    return [_summarise_link(link) for link in islice(frontier.waiting(host), at_most)]


def top_links_overall(frontier: Frontier, at_most: int) -> list[LinkSummary]:
    """The best links of all hosts by priority, best first, whether their hosts are due or not."""
    # The n best links are on the n hosts whose best links are best.
    hosts = heapq.nlargest(at_most, _with_links(frontier), key=_best)
    streams = [frontier.waiting(host) for host in hosts]
    merged = heapq.merge(*streams, key=_first_by_priority)
    return [_summarise_link(link) for link in islice(merged, at_most)]


def _with_links(frontier: Frontier) -> Iterator[Host]:
    return (host for host in frontier.hosts if host.best is not None)


def _in_trouble(host: Host) -> bool:
    return host.pace.failures > 0 or host.pace.suspensions > 0


def _since(interrupted: tuple[Host, float]) -> float:
    return interrupted[1]


def _due_at(host: Host) -> float:
    return host.pace.due_at


def _best(host: Host) -> float:
    return float("-inf") if host.best is None else host.best


def _first_by_priority(link: QueuedLink) -> float:
    return -link.priority


def _summarise_link(link: QueuedLink) -> LinkSummary:
    return LinkSummary(
        link.score, link.priority, link.depth, link.tries, link.anchor, link.url, link.parent
    )


_LINKS_A_BATCH = 1_000


def find_links(frontier: Frontier, urls: Iterable[str]) -> Iterator[tuple[str, QueuedLink | None]]:
    """Yield each URL with its queued link; None when it does not wait."""
    for text in urls:
        url = normalise(text)
        if url is None:
            yield text, None
            continue
        key = link_key(url)
        yield text, frontier.lookup_links([(host_of(url), key)]).waiting.get(key)


def links_matching(
    frontier: Frontier, hosts: Iterable[Host], pattern: re.Pattern[str] | None = None
) -> Iterator[QueuedLink]:
    """Yield the hosts' queued links whose URL the pattern is found in, host by host, best first."""
    for host in hosts:
        if host.best is None:
            continue
        waiting = frontier.waiting(host)
        keys = [link.key for link in waiting if pattern is None or pattern.search(link.url)]
        remaining = iter(keys)
        while batch := list(islice(remaining, _LINKS_A_BATCH)):
            links = frontier.lookup_links([(host.name, key) for key in batch]).waiting
            yield from (links[key] for key in batch if key in links)
