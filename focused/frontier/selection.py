"""Which queued links an operator means: by URL, by host, by what their URLs look like.

The keys of one host's links are gathered at a time, the links read in batches:
who is given a link may write, and commit, before the next is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from focused.frontier.frontier import Frontier
from focused.frontier.host import Host
from focused.frontier.queued import QueuedLink, link_key
from focused.web.url import host_of, normalise

_LINKS_A_BATCH = 1_000


def links_named(frontier: Frontier, urls: Iterable[str]) -> Iterator[tuple[str, QueuedLink | None]]:
    """Yield each URL with its queued link; None when it does not wait."""
    for text in urls:
        url = normalise(text)
        if url is None:
            yield text, None
            continue
        key = link_key(url)
        yield text, frontier.known_among([(host_of(url), key)]).waiting.get(key)


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
            links = frontier.known_among([(host.name, key) for key in batch]).waiting
            yield from (links[key] for key in batch if key in links)
