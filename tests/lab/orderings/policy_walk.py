"""A queue that follows a policy as the crawl's does, and small webs to crawl."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import PageContext
from focused.orderings import PolicyInputs, find_policy
from focused.topic.topic_file import load_topic
from focused.web.page import Classification, Link, Page
from focused.web.urls import host_of
from focused_lab.simulation.simulator import RecordedNetwork, constant_latency, simulate
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, html, page, redirect
from tests.support.whale_models import WhaleClassifier, WhaleScorer

RELEVANT = 0.9


def made(name: str) -> Policy:
    return find_policy(name)(PolicyInputs(WhaleClassifier(), WhaleScorer()))


class Walk:
    """Fetches given URLs; ``queue`` holds the waiting links."""

    def __init__(self, policy: Policy, *seeds: str) -> None:
        self.policy = policy
        self.queue: dict[str, QueuedLink] = {}
        self.moved: Mapping[str, float] = {}
        self._done: set[str] = set()
        self._found = 0
        for url in seeds:
            self._push(QueuedLink(link_key(url), url, host_of(url), 0.0, 1.0))

    def priority(self, url: str) -> float:
        return self.queue[url].priority

    @property
    def order(self) -> list[str]:
        """The waiting links, the next to be fetched first."""
        return sorted(self.queue, key=lambda url: -self.queue[url].priority)

    def fetch(
        self, url: str, *targets: str | Link, relevance: float = 0.1, refresh: str | None = None
    ) -> list[float]:
        """Fetch a page with these links; return their scores."""
        links = [each if isinstance(each, Link) else Link(each) for each in targets]
        link = self._take(url)
        visit = PageContext(
            Page(url, links=tuple(links), refresh=refresh),
            Classification(relevance, relevance >= 0.5),
            link.depth,
            link.score,
            link.features,
        )
        answer = self.policy.scorer.score(visit, links)
        scored = {
            each.url: ScoredLink(each, float(score), tuple(map(float, features)), float(score))
            for each, score, features in zip(links, answer.scores, answer.features, strict=True)
        }
        for found in scored.values():
            target = found.link.url
            self._push(
                QueuedLink(
                    link_key(target),
                    target,
                    host_of(target),
                    0.0,
                    found.score,
                    link.depth + 1,
                    url,
                    features=found.features,
                )
            )
        if refresh is not None:
            self._follow(link, refresh)
        self._tell(
            SettledFetch(
                link, "fetched", page=visit.page, classification=visit.classification, scored=scored
            )
        )
        return [each.score for each in scored.values()]

    def redirect(self, url: str, target: str) -> None:
        link = self._take(url)
        self._follow(link, target)
        self._tell(SettledFetch(link, "redirected"))

    def fail(self, url: str) -> None:
        self._tell(SettledFetch(self._take(url), "failed", failure="gone"))

    def _take(self, url: str) -> QueuedLink:
        self._done.add(url)
        return self.queue.pop(url)

    def _follow(self, link: QueuedLink, target: str) -> None:
        self._push(
            replace(
                link,
                key=link_key(target),
                url=target,
                host=host_of(target),
                parent=link.url,
                hops=link.hops + 1,
            )
        )

    def _push(self, link: QueuedLink) -> None:
        if link.url in self._done:
            return
        link = replace(link, priority=self.policy.ordering(link.score, self._found))
        old = self.queue.get(link.url)
        self._found += old is None
        if old is None or link.priority > old.priority:
            self.queue[link.url] = link

    def _tell(self, settled: SettledFetch) -> None:
        if self.policy.reprioritiser is not None:
            self.moved = self.policy.reprioritiser.after(settled)
            for url in self.moved.keys() & self.queue.keys():
                self.queue[url] = replace(self.queue[url], priority=self.moved[url])


def crawled(
    policy: Policy,
    folder: Path,
    graph: Mapping[str, Sequence[str] | str],
    *seeds: str,
    relevant: Collection[str] = (),
) -> list[str]:
    """Crawl a graph by one connection without delays; return the requests in order.

    A node is a URL with its links, or with the one URL that it redirects to. The ``relevant`` are
    on topic, the others are not.
    """
    nodes = [
        redirect(url, links)
        if isinstance(links, str)
        else page(url, html(url, *links, text="whale" if url in relevant else ""))
        for url, links in graph.items()
    ]
    topic = load_topic(write_topic(folder, *seeds, politeness="concurrency = 1\npatience = 0"))
    run = simulate(
        topic,
        WhaleClassifier(),
        RecordedNetwork(MemoryWeb(*nodes)),
        policy,
        latency=constant_latency(0.01),
    )
    return list(run.asked)
