"""Work that all policies share, done once and taken out of what a policy is charged.

Parsing a page and judging it cost the same under every policy, and far more
than choosing what to fetch. Both are remembered, so that the first policy to
meet a page does the work; a :class:`Meter` counts the seconds that went into
it, and the run's CPU time is given without them.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.evaluation.simulation.network import Network
from focused.learning.protocols import TopicJudge
from focused.web.page import Failed, Fetched, Judgement, Outcome, Page


class Meter:
    """CPU seconds of this process that went into shared work; only ever grows."""

    def __init__(self) -> None:
        self.shared_s = 0.0


class MeteredNetwork:
    """A network with a cache of parsed pages; what misses the cache is shared work.

    An answer from the cache has a body of zeros, by the contract of
    :class:`focused.evaluation.simulation.parsed_web.ParsedWeb`.
    """

    def __init__(self, network: Network, meter: Meter) -> None:
        self._network = network
        self._meter = meter

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """What a request for ``url`` brings."""
        began_s = time.process_time()
        outcome = self._network.answer(url, now, elapsed_s)
        if isinstance(outcome, Fetched) and _is_fresh(outcome):
            self._meter.shared_s += time.process_time() - began_s
        return outcome

    def parse(self, fetched: Fetched) -> Page | Failed:
        """The answer's page."""
        began_s = time.process_time()
        page = self._network.parse(fetched)
        if _is_fresh(fetched):
            self._meter.shared_s += time.process_time() - began_s
        return page


class RememberingJudge:
    """A judge that judges each page of a web once.

    Verdicts are kept by the page's URL, some 150 bytes each: a recorded web
    answers a URL with the same page every time.
    """

    def __init__(self, judge: TopicJudge, meter: Meter) -> None:
        self._judge = judge
        self._meter = meter
        self._places: dict[int, int] = {}
        self._relevances = array("d")
        self._flags = bytearray()
        self._categories = array("l")
        self._names: dict[str, int] = {}
        self._by_number: list[str] = []

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self._judge.threshold

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats of log-odds."""
        return self._judge.verdicts(texts)

    def judge(self, page: Page) -> Judgement:
        """Judge one page, or remember how it was judged."""
        key = xxhash.xxh3_64_intdigest(page.url.encode())
        place = self._places.get(key)
        if place is None:
            began_s = time.process_time()
            place = self._keep(key, self._judge.judge(page))
            self._meter.shared_s += time.process_time() - began_s
        return Judgement(
            self._relevances[place],
            bool(self._flags[place] & 1),
            bool(self._flags[place] & 2),
            self._by_number[self._categories[place]],
        )

    def _keep(self, key: int, judgement: Judgement) -> int:
        number = self._names.setdefault(judgement.category, len(self._names))
        if number == len(self._by_number):
            self._by_number.append(judgement.category)
        self._relevances.append(judgement.relevance)
        self._flags.append(judgement.on_topic | judgement.known << 1)
        self._categories.append(number)
        self._places[key] = len(self._flags) - 1
        return self._places[key]


def _is_fresh(fetched: Fetched) -> bool:
    return fetched.body[:1] not in (b"", b"\0")
