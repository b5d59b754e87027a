"""Unbounded values of links (counts, ranks, cash) as scores and priorities.

The score is ``amount / (1 + amount)``, in [0, 1) as required; the priority is the natural logarithm
of the amount. A difference of 0.1 in priority, for which a patient crawl waits
(:data:`focused.crawl.policy.Policy.worth_waiting_for`), is thus ten per cent.
"""

from __future__ import annotations

import math
from array import array

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_PRIORITY = 40.0
"""The priority of score 1, which seeds have: above e^40. Score 0 has the negative."""

MIN_PRIORITY_CHANGE = 0.1
"""A smaller change of priority is not worth a write."""


def value_to_score(amounts: ArrayLike) -> NDArray[np.float64]:
    """Scores in [0, 1) of amounts >= 0, elementwise."""
    values = np.asarray(amounts, dtype=np.float64)
    return values / (1.0 + values)


def score_to_value(score: float) -> float:
    """The amount of a score, infinite for 1; inverse of :func:`value_to_score`."""
    return score / (1.0 - score) if score < 1.0 else math.inf


def order_by_log_value(score: float, found_seq: int) -> float:
    """Order by the logarithm of the amount: an :data:`focused.frontier.priorities.Ordering`."""
    return _log_priority(score_to_value(score))


def next_update(pages: int) -> int:
    """The number of pages at which to recompute all links, last done after ``pages``.

    Every hundred pages, and from 400 on after every further quarter: all recomputations cost about
    five times the last one.
    """
    return max(pages + 100, pages + pages // 4)


class LinkValues:
    """The amounts of all known links, and the priorities at which the waiting ones are queued.

    Links are numbered from 0 as they become known. About 30 bytes per link besides its URL.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.amounts = array("d")
        self._urls: list[str] = []
        self._placed = array("d")
        self._waits = bytearray()

    def __len__(self) -> int:
        return len(self._urls)

    def number(self, url: str) -> int:
        """The link's number; a new link has amount 0 and does not wait."""
        number = self.numbers.setdefault(url, len(self._urls))
        if number == len(self._urls):
            self._urls.append(url)
            self.amounts.append(0.0)
            self._placed.append(-MAX_PRIORITY)
            self._waits.append(False)
        return number

    def waits(self, number: int) -> bool:
        """Whether the link is queued, as far as is known here."""
        return bool(self._waits[number])

    def queue(self, url: str, amount: float) -> int:
        """The link was enqueued with ``amount``, which can only raise it."""
        number = self.number(url)
        self.amounts[number] = amount
        self._waits[number] = True
        self._placed[number] = max(self._placed[number], _log_priority(amount))
        return number

    def settle(self, url: str) -> int:
        """The link left the queue for good."""
        number = self.number(url)
        self._waits[number] = False
        return number

    def waiting(self) -> NDArray[np.intp]:
        """The numbers of the waiting links."""
        return np.flatnonzero(np.array(self._waits, dtype=bool))

    def place(self, number: int) -> tuple[str, float]:
        """The URL and priority of a waiting link, which counts as moved."""
        self._placed[number] = _log_priority(self.amounts[number])
        return self._urls[number], self._placed[number]

    def moves(self) -> dict[str, float]:
        """New priorities by URL of the links that changed by :data:`MIN_PRIORITY_CHANGE` or more.

        They count as moved.
        """
        waiting = self.waiting()
        amounts = np.maximum(np.array(self.amounts)[waiting], math.exp(-MAX_PRIORITY))
        priorities = np.minimum(np.log(amounts), MAX_PRIORITY)
        far = np.abs(priorities - np.array(self._placed)[waiting]) >= MIN_PRIORITY_CHANGE
        return dict(self.place(int(number)) for number in waiting[far])


def _log_priority(amount: float) -> float:
    if amount <= 0.0:
        return -MAX_PRIORITY
    return max(-MAX_PRIORITY, min(MAX_PRIORITY, math.log(amount)))
