"""The classifier's oracle: knows what the classifier will say of a page before it is fetched.

Between what a link scorer can reach and what labels allow stands the classifier: a
crawl follows its verdicts, right or wrong. This policy tells how much is lost
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.experiments.ground_truth import GroundTruth
from focused.experiments.simulation.simulator import Network
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer
from focused.web.page import Fetched, Link, Page


def classifier_oracle(
    referee: GroundTruth, classifier: TopicClassifier, network: Network
) -> Policy:
    """Fetch first what the classifier will find most relevant; sees no label.

    No upper bound: it looks one click ahead, and where pages link to their
    like, links tell of a page what its own text does not.
    """

    def relevances(visit: PageContext, links: Sequence[Link]) -> list[float]:
        return [
            _classified_relevance(referee.resolve_url(link.url), classifier, network)
            for link in links
        ]

    return Policy("classifier-oracle", FunctionScorer(relevances))


def _classified_relevance(url: str | None, classifier: TopicClassifier, network: Network) -> float:
    answer = None if url is None else network.answer(url, 0.0, 0.0)
    page = network.parse(answer) if isinstance(answer, Fetched) else None
    return classifier.classify(page).relevance if isinstance(page, Page) else 0.0


UNREACHABLE = -1_000.0
"""Priority of what leads to nothing new: further than any web is wide."""

_PATIENCE_PAGES = 10
_MAX_BONUS = 0.9  # of a click: what lies behind a page never outweighs a shorter way


def path_oracle(referee: GroundTruth) -> Policy:
    """Fetch on-topic links first, then what is fewest clicks from a new on-topic page.

    New is what no fetched page links to: the ways are measured again whenever
    the on-topic links run out. Between links one click away, the one comes
    first that leads to most new pages; other ties go to the earliest found of
    a host. A page counts under the address it was first met at; its other
    addresses, and what leads nowhere, come last.

    It spends no page off the shortest ways, so nothing that has to guess will
    do better but by luck: the bound in practice. It is no proven one. It is
    greedy and takes the nearest page where another way leads to more; it does
    not know which pages have the same content; a cap on pages per host or on
    depth can close a way it counts on. The best crawl of all is a Steiner
    tree problem, which is not solved exactly for a web.
    """
    ways = _PathDistances(referee)
    return Policy("path-oracle", FunctionScorer(ways.scores), nearest_first, reprioritiser=ways)


def nearest_first(score: float, found_seq: int) -> float:
    """Order by clicks, the negated priority; whole numbers apart, so always worth waiting for."""
    return 1.0 - 1.0 / score if score > 0.0 else UNREACHABLE


class _PathDistances:
    """What the crawl has found, and how far it is from what it has not.

    Arrays have shape (n,), a row per page of the graph. ``_waiting`` are the
    on-topic pages that the frontier holds.
    """

    def __init__(self, referee: GroundTruth) -> None:
        self._referee = referee
        self._graph = referee.graph
        self._allowed = referee.allowed
        relevant = np.fromiter((url in referee.relevant for url in self._graph.urls), np.bool_)
        self._new = relevant & self._allowed
        self._priorities = self._measured()
        self._queued: dict[int, str] = {}
        self._met_at: dict[int, str] = {}
        self._waiting: set[int] = set()
        self._found_some = False
        self._off_topic_since = 0

    def scores(self, visit: PageContext, links: Sequence[Link]) -> list[float]:
        """1 for on-topic pages, 1 / (1 + clicks) for others, 0 for what leads nowhere."""
        return [self._score(link.url) for link in links]

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Measure again when the on-topic links have run out; move what is queued."""
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
        """The page is new no more; True when it was, and on topic."""
        if not self._new[place]:
            return False
        self._new[place] = False
        self._found_some = True
        return True

    def _follow(self, place: int) -> None:
        """The page waits on under the address that redirects led to."""
        if place in self._queued:
            self._met_at[place] = self._queued[place] = self._graph.urls[place]

    def _must_measure(self) -> bool:
        # An on-topic link can stay out of reach (its host is full), so none is waited for long.
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
        end = self._referee.resolve_url(url)
        return None if end is None else self._graph.index.get(end)


_TIE_BREAK = 1e-12  # found_seq is below 10**9: never as much as a label


def relevant_then_breadth_first(score: float, found_seq: int) -> float:
    """Order by score; between equals, on whatever host, by the order of discovery."""
    return score - _TIE_BREAK * found_seq


def greedy_oracle(referee: GroundTruth) -> Policy:
    """See the labels of what is in the frontier, and nothing beyond it.

    Takes an on-topic link whenever it holds one, the earliest found; otherwise
    goes breadth-first. No upper bound: it cannot tell which off-topic page
    leads to the topic, and a policy that can may beat it;
    :func:`~focused.experiments.oracles.path_oracle` can.
    """

    def labels(visit: PageContext, links: Sequence[Link]) -> list[float]:
        return [float(referee.is_relevant(link.url)) for link in links]

    return Policy("oracle", FunctionScorer(labels), relevant_then_breadth_first)


OracleFactory = Callable[[GroundTruth, TopicClassifier, Network], Policy]
"""Makes an oracle for one run, from the labels or from the classifier and all pages."""

ORACLES: Mapping[str, OracleFactory] = {
    "oracle": lambda referee, classifier, network: greedy_oracle(referee),
    "path-oracle": lambda referee, classifier, network: path_oracle(referee),
    "classifier-oracle": classifier_oracle,
}
