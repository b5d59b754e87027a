"""Pages of links for a frontier, as many as needed, sampled from a real crawl.

A :class:`Recorder` watches a crawl of a recorded web and keeps what it pushes into its frontier. A
:class:`LinkSource` makes pages of that: each takes 50 consecutive links from a random position, so
that scores, features, anchors and tag paths belong together as a real page's do, and the same share
of links goes to the page's own host or is queued already.

Each host is modelled after a recorded one, sampled by its links, and takes its paths in order of
discovery; when they are used up, again below a numbered folder. A page's own host is any known one,
because a polite crawl asks all equally often; the hosts that it links to follow Zipf's law, the
earliest being the largest. Hosts appear in proportion to links: a frontier of a hundredth of the
links has a hundredth of the hosts, and its pages meet the same share of queued links.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.frontier.queued_link import Exploration, QueuedLink, link_key
from focused.orderings import PolicyInputs, find_policy
from focused.topic import Budget
from focused.topic.topic_file import load_topic
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import hashed_latency, simulate
from focused_lab.trials import prepare_topic

PAGE_LINKS = 50
_MAX_ANCHOR_CHARS = 200  # as focused.crawl.enqueue limits them
_ZIPF_EXPONENT = 0.87  # of the pages that link to a host, in a crawl of 2,000 pages of docweb-small


class PushedLink(NamedTuple):
    """A link that a crawl pushed.

    ``page`` numbers the pages, ``host`` the hosts that a page links to, 0 being its own. Of a link
    that was queued already, ``position`` is that among the links found on its host, in [0, 1), and
    ``has_new_anchor`` tells that the page's anchor replaced the queued one.
    """

    page: int
    host: int
    was_queued: bool
    position: float
    has_new_anchor: bool
    priority: float
    score: float
    depth: int
    anchor: str
    features: tuple[float, ...]
    tag_path_key: int


@dataclass(frozen=True)
class Recording:
    """What a crawl pushed, in that order; its hosts with their paths in order of discovery.

    ``worth_waiting_for`` and ``exploration`` are those of the crawl's policy.
    """

    links: Sequence[PushedLink]
    paths: Mapping[str, Sequence[str]]
    worth_waiting_for: float
    exploration: Exploration


class Recorder:
    """Keeps what a crawl pushes; pass it to the simulator."""

    def __init__(self) -> None:
        self._links: list[PushedLink] = []
        self._found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._pages = 0

    def __call__(self, settled: SettledFetch) -> None:
        """Record the links of one settled fetch."""
        if settled.page is None:
            return
        hosts = {host_of(settled.page.url): 0}
        for url, scored in settled.scored.items():
            found = self._found[host_of(url)]
            was_queued = url in found
            self._links.append(
                PushedLink(
                    page=self._pages,
                    host=hosts.setdefault(host_of(url), len(hosts)),
                    was_queued=was_queued,
                    position=found[url] / len(found) if was_queued else 0.0,
                    has_new_anchor=was_queued and scored.before is None,
                    priority=scored.rank_score,
                    score=scored.score,
                    depth=settled.link.depth + 1,
                    anchor=scored.link.anchor[:_MAX_ANCHOR_CHARS],
                    features=scored.features,
                    tag_path_key=scored.tag_path_key,
                )
            )
            found.setdefault(url, len(found))
        self._pages += bool(settled.scored)

    def recording(self, policy: Policy) -> Recording:
        """Return what a crawl by ``policy`` has pushed."""
        paths = {host: list(map(_path, urls)) for host, urls in self._found.items()}
        return Recording(self._links, paths, policy.worth_waiting_for, policy.exploration)


def _path(url: str) -> str:
    parts = urlsplit(url)
    return url[len(parts.scheme) + 3 + len(parts.netloc) :]


def record_crawl(web: Path, topic_file: Path, pages: int) -> Recording:
    """Crawl ``pages`` pages of a recorded web by the ``focused`` policy."""
    topic = replace(load_topic(topic_file), budget=Budget())
    prepared = prepare_topic(topic, web)
    policy = find_policy("focused")(PolicyInputs(prepared.classifier, prepared.apprentice))
    recorder = Recorder()
    with ParsedWeb(RecordedWeb.open(web)) as network:
        simulate(
            topic,
            prepared.classifier,
            network,
            policy,
            latency=hashed_latency(0.2, 0),
            training_urls=prepared.sample_urls,
            pages=pages,
            watch=recorder,
        )
    return recorder.recording(policy)


class SampledLink(NamedTuple):
    """A link of a sampled page, and the recorded link that provides the rest."""

    key: bytes
    url: str
    host: str
    recorded: PushedLink


class SampledPage(NamedTuple):
    """A page's URL and its distinct links."""

    url: str
    links: Sequence[SampledLink]

    def host_keys(self) -> Sequence[tuple[str, bytes]]:
        """The links as a frontier looks them up: host and key."""
        return [(link.host, link.key) for link in self.links]


class LinkSource:
    """Samples pages, deterministically; a pickled source goes on where it was.

    A link is identified by its host's number and its own number on the host, so that only the
    number of links of each host is stored.
    """

    def __init__(
        self, recording: Recording, hosts: int, links_per_host: int, seed: int = 0
    ) -> None:
        """At most ``hosts`` hosts, a new one per ``links_per_host`` links."""
        self.recording = recording
        self.known_hosts = 1
        self._links_per_host = links_per_host
        self._found = 0
        self._links_of_host = array("I", bytes(4 * hosts))
        self._domains = [host.partition(".")[2] or "org" for host in recording.paths]
        self._paths = list(recording.paths.values())
        sizes = np.array(list(map(len, self._paths)), dtype=np.float64)
        models = np.random.default_rng(seed).choice(len(sizes), hosts, p=sizes / sizes.sum())
        self._model_of_host = array("I", models.tolist())
        ranks = range(1, hosts + 1)
        self._popularity = array("d", accumulate(rank**-_ZIPF_EXPONENT for rank in ranks))
        self._random = random.Random(seed)

    def page(self) -> SampledPage:
        """Sample the next page."""
        own = self._random.randrange(self.known_hosts)
        hosts: dict[tuple[int, int], int] = {}
        taken: defaultdict[int, set[int]] = defaultdict(set)
        links: list[SampledLink] = []
        recorded = self.recording.links
        row = self._random.randrange(len(recorded))
        while len(links) < PAGE_LINKS:
            link = recorded[row]
            place = link.page, link.host
            if place not in hosts:
                hosts[place] = own if link.host == 0 else self._other_host()
            host = hosts[place]
            number = self._number(host, link, taken[host])
            if number is not None:
                taken[host].add(number)
                url, name = self._url(host, number)
                links.append(SampledLink(link_key(url), url, name, link))
            row = (row + 1) % len(recorded)
        page_url, _ = self._url(own, self._random.randrange(max(1, self._links_of_host[own])))
        return SampledPage(page_url, links)

    def _other_host(self) -> int:
        """The number of a host that a page links to: the next new one, or a known one."""
        known = self.known_hosts
        if known < len(self._links_of_host) and self._found >= known * self._links_per_host:
            self.known_hosts += 1
            return known
        largest = self._random.random() * self._popularity[known - 1]
        return bisect(self._popularity, largest, hi=known - 1)

    def _number(self, host: int, link: PushedLink, taken: Set[int]) -> int | None:
        """The number, on its host, of a link that the page does not have yet, or None."""
        known = self._links_of_host[host]
        if not known or not link.was_queued:
            self._links_of_host[host] += 1
            self._found += 1
            return known
        if len(taken) == known:
            return None
        number = int(known * link.position)
        while number in taken:
            number = (number + 1) % known
        return number

    def _url(self, host: int, number: int) -> tuple[str, str]:
        """The URL of a host's link, and the host's name."""
        model = self._model_of_host[host]
        name = f"{host:x}.{self._domains[model]}"
        lap, index = divmod(number, len(self._paths[model]))
        path = self._paths[model][index]
        return f"https://{name}/{lap}{path}" if lap else f"https://{name}{path}", name


def queued_links(
    page: SampledPage, waiting: Mapping[bytes, QueuedLink], now: float
) -> list[QueuedLink]:
    """Return a page's links as the crawl pushes them; ``waiting`` are those that are queued."""
    return [_queued_link(page, link, waiting.get(link.key), now) for link in page.links]


def _queued_link(
    page: SampledPage, link: SampledLink, before: QueuedLink | None, now: float
) -> QueuedLink:
    recorded = link.recorded
    if recorded.has_new_anchor:
        before = None
    return QueuedLink(
        key=link.key,
        url=link.url,
        host=link.host,
        priority=recorded.priority,
        score=recorded.score,
        depth=recorded.depth,
        parent=before.parent if before else page.url,
        anchor=before.anchor if before else recorded.anchor,
        features=recorded.features,
        found_at=now,
        tag_path_key=before.tag_path_key if before else recorded.tag_path_key,
    )
