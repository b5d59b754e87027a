"""Values without an upper bound (counts, ranks, cash) as scores and as priorities.

A score is ``amount / (1 + amount)``, within [0, 1) as scores must be; the
priority is the amount's natural logarithm. So a difference of 0.1 in priority,
from which a patient crawl waits for a link
(:data:`focused.frontier.interface.WORTH_WAITING_FOR`), is an amount ten per cent
larger, whatever its size.
"""

from __future__ import annotations

import math
from array import array

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_PRIORITY = 40.0
"""The priority of score 1, which seeds have: above e^40 of anything. Score 0 has the negative."""

MIN_PRIORITY_CHANGE = 0.1
"""In priority: a smaller change of a queued link costs a write and is not waited for."""


def value_to_score(amounts: ArrayLike) -> NDArray[np.float64]:
    """Scores in [0, 1) of amounts >= 0, elementwise."""
    values = np.asarray(amounts, dtype=np.float64)
    return values / (1.0 + values)


def score_to_value(score: float) -> float:
    """The amount behind a score; inverse of :func:`value_to_score`, infinite for 1."""
    return score / (1.0 - score) if score < 1.0 else math.inf


def order_by_log_value(score: float, found_seq: int) -> float:
    """Order by the amount behind the score: an :data:`focused.frontier.priorities.Ordering`."""
    return _log_priority(score_to_value(score))


def next_update(pages: int) -> int:
    """After how many pages to look at all links again, having done so after ``pages``.

    After every hundred pages, from 400 on after every quarter more: all looks
    together cost about five times the last one, however long the crawl.
    """
    return max(pages + 100, pages + pages // 4)


class LinkValues:
    """The amounts of all known links, and at what priority the queue has those that wait.

    Links have numbers, counted from 0 as they become known. Memory: some 30
    bytes a link beside its URL.
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
        """The link was pushed with ``amount``, by which it can only have risen."""
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
        """The numbers of the links that wait."""
        return np.flatnonzero(np.array(self._waits, dtype=bool))

    def place(self, number: int) -> tuple[str, float]:
        """Where a waiting link belongs, taken as done: its URL and its priority."""
        self._placed[number] = _log_priority(self.amounts[number])
        return self._urls[number], self._placed[number]

    def moves(self) -> dict[str, float]:
        """Priorities, by URL, of the waiting links that the queue has at another place.

        Another by :data:`MIN_PRIORITY_CHANGE` or more; they are taken as moved.
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
