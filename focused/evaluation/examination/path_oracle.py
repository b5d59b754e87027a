"""The path oracle: knows the labels of the whole web and every way to them.

Labels and links together tell, for each link of the frontier, how many clicks
lie between it and the nearest on-topic page that the crawl has not found yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.crawl.policy import Policy
from focused.crawl.steps import Settled
from focused.evaluation.examination.referee import Referee
from focused.learning.protocols import Visit
from focused.policies.per_link import PerLink
from focused.web.page import Link

NOWHERE = -1_000.0
"""Priority of what leads to nothing new: further than any web is wide."""

_PATIENCE_PAGES = 10
_MOST_GAIN = 0.9  # of a click: what lies behind a page never outweighs a shorter way


def path_oracle(referee: Referee) -> Policy:
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
    ways = _Ways(referee)
    return Policy("path-oracle", PerLink(ways.scores), nearest_first, steering=ways)


def nearest_first(score: float, found_seq: int) -> float:
    """Order by clicks, the negated priority; whole numbers apart, so always worth waiting for."""
    return 1.0 - 1.0 / score if score > 0.0 else NOWHERE


class _Ways:
    """What the crawl has found, and how far it is from what it has not.

    Arrays have shape (n,), a row per page of the graph. ``_waiting`` are the
    on-topic pages that the frontier holds.
    """

    def __init__(self, referee: Referee) -> None:
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

    def scores(self, visit: Visit, links: Sequence[Link]) -> list[float]:
        """1 for on-topic pages, 1 / (1 + clicks) for others, 0 for what leads nowhere."""
        return [self._score(link.url) for link in links]

    def after(self, settled: Settled) -> Mapping[str, float]:
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
        if self._met_at[place] != url or self._priorities[place] == NOWHERE:
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
        bonus = _MOST_GAIN * gain / (gain.max(initial=0.0) + 1.0)
        return np.where(clicks < 0, NOWHERE, np.where(clicks == 1, bonus, 0.0) - clicks)

    def _place(self, url: str) -> int | None:
        end = self._referee.end_of(url)
        return None if end is None else self._graph.index.get(end)
