"""Pages of links for a frontier, as many as needed, sampled from a real crawl.

A page takes 50 consecutive rows of the recording from a random position: its links' scores,
features, anchors and tag paths belong together as a real page's do, and the same share of them goes
to the page's own host or waits already. Each host is modelled after a recorded one, sampled by its
links, and takes its paths in order of discovery; when they are used up, again below a numbered
folder. A page's own host is any known one, because a polite crawl asks all equally often; the hosts
that it links to follow Zipf's law, as steep as recorded, the earliest being the largest. A link
that waits already is sampled from its host's by the recorded position in the order of discovery.

Hosts appear in proportion to links. A frontier of a hundredth of the links has a hundredth of the
hosts, and its pages meet the same share of waiting links.

A link is identified by its host's number and its own number on the host; only the number of links
of each host is stored.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from frontier_recording import Recording, steepness

from focused.frontier.queued_link import QueuedLink, link_key

PAGE_LINKS = 50


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link of a page, and the recorded row that provides the rest."""

    key: bytes
    url: str
    host: str
    row: int


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """A page's URL and its distinct links."""

    url: str
    links: Sequence[DrawnLink]

    def names(self) -> Sequence[tuple[str, bytes]]:
        """The links in order, as a frontier looks them up: host and key."""
        return [(link.host, link.key) for link in self.links]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The state of a source, for another one to continue from."""

    pages: int
    links: int
    hosts: int
    links_by_host: bytes


class LinkSource:
    """Samples pages; deterministic by recording, hosts and seed."""

    def __init__(
        self,
        recording: Recording,
        hosts: int,
        links_a_host: int,
        seed: int = 0,
        drawn: Drawn | None = None,
    ) -> None:
        """At most ``hosts`` hosts, a new one per ``links_a_host`` links."""
        self._recording = recording
        self._links_a_host = links_a_host
        # Packed, and unpacked anew for each link, so that the frontier shares no string or float
        # with the source, and its memory is not underestimated.
        self._anchors = [anchor.encode("utf-8", "replace") for anchor in recording.anchor]
        self._tails = [
            [tail.encode("utf-8", "replace") for tail in site.tails] for site in recording.sites
        ]
        self._evidence = recording.evidence_rows()
        self._domains = [site.name.partition(".")[2] or "org" for site in recording.sites]
        by_links = np.array([len(tails) for tails in self._tails], dtype=np.float64)
        models = np.random.default_rng(seed).choice(
            len(by_links), hosts, p=by_links / by_links.sum()
        )
        self._model = array("I", models.tolist())
        zipf = steepness(recording.pages_linking)
        self._popularity = array("d", accumulate(rank**-zipf for rank in range(1, hosts + 1)))
        start = Drawn(0, 0, 1, bytes(4 * hosts)) if drawn is None else drawn
        self._pages, self._found, self.hosts_met = start.pages, start.links, start.hosts
        self._counts = array("I", start.links_by_host)
        self._lots = random.Random(f"{seed} {start.pages}")

    def drawn(self) -> Drawn:
        """The state of this source."""
        return Drawn(self._pages, self._found, self.hosts_met, self._counts.tobytes())

    def page(self) -> DrawnPage:
        """Sample the next page."""
        own = self._lots.randrange(self.hosts_met)
        hosts: dict[tuple[int, int], int] = {}
        links: list[DrawnLink] = []
        taken: defaultdict[int, set[int]] = defaultdict(set)
        pages, ordinals = self._recording.page, self._recording.ordinal
        row = self._lots.randrange(len(pages))
        while len(links) < PAGE_LINKS:
            place = pages[row], ordinals[row]
            if place not in hosts:
                hosts[place] = own if place[1] == 0 else self._another()
            host = hosts[place]
            number = self._number(host, row, taken[host])
            if number is not None:
                taken[host].add(number)
                url, name = self._address(host, number)
                links.append(DrawnLink(link_key(url), url, name, row))
            row = (row + 1) % len(pages)
        self._pages += 1
        page_url, _ = self._address(own, self._lots.randrange(max(1, self._counts[own])))
        return DrawnPage(page_url, links)

    def queued(
        self, page: DrawnPage, waiting: Mapping[bytes, QueuedLink], now: float
    ) -> list[QueuedLink]:
        """A page's links as the crawl pushes them; ``waiting`` are those that wait already."""
        queued = []
        for link in page.links:
            before = waiting.get(link.key)
            if before is not None and self._recording.leads[link.row]:
                before = None
            queued.append(self._queued(link, page.url, before, now))
        return queued

    def _queued(
        self, link: DrawnLink, parent: str, before: QueuedLink | None, now: float
    ) -> QueuedLink:
        row, recording = link.row, self._recording
        return QueuedLink(
            key=link.key,
            url=link.url,
            host=link.host,
            priority=recording.rank_score[row],
            score=recording.score[row],
            depth=recording.depth[row],
            parent=before.parent if before else parent,
            anchor=before.anchor if before else self._anchors[row].decode(),
            features=tuple(self._evidence[row].tolist()),
            found_at=now,
            tag_path_key=before.tag_path_key if before else recording.tag_path_key[row],
        )

    def _another(self) -> int:
        """The number of a host that a page links to: the next new one, or a known one."""
        new = self.hosts_met
        if new < len(self._counts) and self._found >= new * self._links_a_host:
            self.hosts_met += 1
            return new
        largest = self._lots.random() * self._popularity[new - 1]
        return bisect(self._popularity, largest, hi=new - 1)

    def _number(self, host: int, row: int, taken: Set[int]) -> int | None:
        """The number, on its host, of a link that the page does not have yet, or None."""
        known = self._counts[host]
        if not known or not self._recording.waited[row]:
            self._counts[host] += 1
            self._found += 1
            return known
        if len(taken) == known:
            return None
        number = int(known * self._recording.place[row])
        while number in taken:
            number = (number + 1) % known
        return number

    def _address(self, host: int, number: int) -> tuple[str, str]:
        """The URL of a host's link, and the host's name."""
        model = self._model[host]
        name = f"{host:x}.{self._domains[model]}"
        tails = self._tails[model]
        lap, index = divmod(number, len(tails))
        tail = tails[index].decode()
        return f"https://{name}/{lap}{tail}" if lap else f"https://{name}{tail}", name
