"""Helpers for frontier tests."""

from __future__ import annotations

from focused.frontier.disk_frontier import Offer
from focused.frontier.host import HostPace
from focused.frontier.queued_link import QueuedLink, link_key
from tests.support.frontier_lives import Frontier


def link(url: str, score: float = 0.5, **fields) -> QueuedLink:
    return QueuedLink(link_key(url), url, url.split("/")[2], score, score, **fields)


def take(frontier: Frontier, now: float = 0.0, **options) -> Offer:
    offer = frontier.offer(now, **options)
    assert isinstance(offer, Offer)
    return offer


def finish(frontier: Frontier, offer: Offer, now: float, delay_s: float = 1.0) -> None:
    frontier.settle(offer, HostPace(now + delay_s), now)


def drop_host(frontier: Frontier, name: str, now: float) -> int:
    """Drop all links of a host but for one in flight; return how many."""
    host = frontier.hosts.known(name)
    links = [] if host is None else list(frontier.waiting(host))
    return sum(frontier.drop(link, now) for link in links)


def url_of_next(frontier: Frontier, now: float = 0.0) -> str:
    """Fetch the best link, from a host that needs no rest."""
    offer = take(frontier, now)
    finish(frontier, offer, now, delay_s=0.0)
    return offer.link.url
