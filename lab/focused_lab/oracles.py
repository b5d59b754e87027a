"""Oracles: policies with knowledge that no crawl has, as bounds for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer
from focused.web.page import Fetched, Link, Page
from focused_lab.ground_truth import GroundTruth
from focused_lab.simulation.simulator import Network


def classifier_oracle(
    ground_truth: GroundTruth, classifier: TopicClassifier, network: Network
) -> Policy:
    """Fetch first what the classifier will find most relevant; sees no label.

    The gap between this policy and the path oracle is the classifier's error, which no link scorer
    can make up for. It is no upper bound: it looks one click ahead, and in-links can tell what a
    page's own text does not.
    """

    def relevances(page_context: PageContext, links: Sequence[Link]) -> list[float]:
        return [
            _classified_relevance(ground_truth.resolve_url(link.url), classifier, network)
            for link in links
        ]

    return Policy("classifier-oracle", FunctionScorer(relevances))


def _classified_relevance(url: str | None, classifier: TopicClassifier, network: Network) -> float:
    answer = None if url is None else network.answer(url, 0.0, 0.0)
    page = network.parse(answer) if isinstance(answer, Fetched) else None
    return classifier.classify(page).guiding_relevance if isinstance(page, Page) else 0.0


UNREACHABLE = -1_000.0
"""Priority of pages that lead to nothing new: farther than any web is wide."""

_PATIENCE_PAGES = 10
_MAX_BONUS = 0.9  # in clicks: pages behind a link never outweigh a shorter path


def path_oracle(ground_truth: GroundTruth) -> Policy:
    """Fetch on-topic links first, then those fewest clicks from a new on-topic page.

    New pages are those that no fetched page links to; distances are computed again when the
    on-topic links run out. Of links one click away the one to most new pages comes first; other
    ties go to the earliest found. A page counts at the URL where it was first met; its other URLs
    come last.

    It fetches no page off the shortest paths, which makes it the practical bound, but not a proven
    one: it is greedy, does not know duplicates, and a cap on pages per host or on depth can close a
    path. The optimum is a Steiner tree problem, which is infeasible for a web.
    """
    ways = _PathDistances(ground_truth)
    return Policy("path-oracle", FunctionScorer(ways.scores), nearest_first, reprioritiser=ways)


def nearest_first(score: float, found_seq: int) -> float:
    """Order by clicks, the negated priority, in whole numbers so that waiting always pays."""
    return 1.0 - 1.0 / score if score > 0.0 else UNREACHABLE


class _PathDistances:
    """The state of the path oracle's crawl.

    Arrays have shape (n,), a row per page of the graph. ``_waiting`` are the on-topic pages in the
    frontier.
    """

    def __init__(self, ground_truth: GroundTruth) -> None:
        self._ground_truth = ground_truth
        self._graph = ground_truth.graph
        self._allowed = ground_truth.allowed_pages
        self._new = ground_truth.relevant_pages & self._allowed
        self._priorities = self._measured()
        self._queued: dict[int, str] = {}
        self._met_at: dict[int, str] = {}
        self._waiting: set[int] = set()
        self._found_some = False
        self._off_topic_since = 0

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> list[float]:
        """1 for on-topic pages, 1 / (1 + clicks) for others, 0 for dead ends."""
        return [self._score(link.url) for link in links]

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Recompute the distances when the on-topic links have run out; return changed
        priorities.
        """
        place = self._place(settled.link.url)
        if place is None:
            self._off_topic_since += 1
        elif settled.outcome == "redirected":
            self._follow(place)
        else:
            self._met_at.setdefault(place, settled.link.url)
            self._queued.pop(place, None)
            self._find(place)
            self._off_topic_since += place not in self._waiting
            self._waiting.discard(place)
        return self._moved() if self._must_measure() else {}

    def _score(self, url: str) -> float:
        place = self._place(url)
        if place is None or not self._allowed[place]:
            return 0.0
        if place not in self._met_at:
            self._met_at[place] = self._queued[place] = url
            if self._find(place):
                self._waiting.add(place)
        if self._met_at[place] != url or self._priorities[place] == UNREACHABLE:
            return 0.0
        return float(1.0 / (1.0 - self._priorities[place]))

    def _find(self, place: int) -> bool:
        """Mark the page as found; return whether it was new and on topic."""
        if not self._new[place]:
            return False
        self._new[place] = False
        self._found_some = True
        return True

    def _follow(self, place: int) -> None:
        """Keep the page waiting at the URL that redirects led to."""
        if place in self._queued:
            self._met_at[place] = self._queued[place] = self._graph.urls[place]

    def _must_measure(self) -> bool:
        # An on-topic link can stay unreachable (its host is full), so stop waiting after a while.
        run_out = not self._waiting or self._off_topic_since >= _PATIENCE_PAGES
        return self._found_some and run_out

    def _moved(self) -> Mapping[str, float]:
        before = self._priorities
        self._priorities = self._measured()
        self._priorities[list(self._waiting)] = 0.0
        self._found_some, self._off_topic_since = False, 0
        return {
            url: float(self._priorities[place])
            for place, url in self._queued.items()
            if self._priorities[place] != before[place]
        }

    def _measured(self) -> NDArray[np.float64]:
        clicks = self._graph.distances(self._new, self._allowed)
        gain = self._graph.links @ self._new.astype(np.float64)
        bonus = _MAX_BONUS * gain / (gain.max(initial=0.0) + 1.0)
        return np.where(clicks < 0, UNREACHABLE, np.where(clicks == 1, bonus, 0.0) - clicks)

    def _place(self, url: str) -> int | None:
        end = self._ground_truth.resolve_url(url)
        return None if end is None else self._graph.index.get(end)


_TIE_BREAK = 1e-12  # found_seq is below 10**9, so this never outweighs a label


def relevant_then_breadth_first(score: float, found_seq: int) -> float:
    """Order by score, ties by discovery, across hosts."""
    return score - _TIE_BREAK * found_seq


def greedy_oracle(ground_truth: GroundTruth) -> Policy:
    """See the labels of the frontier's links, and nothing beyond.

    Takes the earliest on-topic link, otherwise goes breadth-first. It is no upper bound: a policy
    that knows which off-topic page leads to the topic can beat it;
    :func:`~focused_lab.oracles.path_oracle` can.
    """

    def labels(page_context: PageContext, links: Sequence[Link]) -> list[float]:
        return [float(ground_truth.is_relevant(link.url)) for link in links]

    return Policy("oracle", FunctionScorer(labels), relevant_then_breadth_first)


OracleFactory = Callable[[GroundTruth, TopicClassifier, Network], Policy]
"""Creates an oracle for one run."""

ORACLES: Mapping[str, OracleFactory] = {
    "oracle": lambda ground_truth, classifier, network: greedy_oracle(ground_truth),
    "path-oracle": lambda ground_truth, classifier, network: path_oracle(ground_truth),
    "classifier-oracle": classifier_oracle,
}
