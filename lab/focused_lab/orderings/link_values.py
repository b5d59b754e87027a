"""Unbounded values (counts, ranks, cash) of links and of groups of links, as priorities.

A score is ``amount / (1 + amount)``, in [0, 1) as required; the priority is the natural logarithm
of the amount. A difference of 0.1 in priority, for which a patient crawl waits
(:data:`focused.crawl.policy.Policy.worth_waiting_for`), is thus ten per cent.

:class:`LinkValues` moves the links whose values changed, :class:`GroupHeads` one link of each group
that has one value.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_PRIORITY = 40.0
"""The priority of score 1, which seeds have: above e^40. Score 0 has the negative."""

MIN_PRIORITY_CHANGE = 0.1
"""A smaller change of priority is not worth a write."""
Group = TypeVar("Group", bound=Hashable)
LinkPriority = tuple[str, float]
"""A link's URL and its priority."""


def value_to_score(amounts: ArrayLike) -> NDArray[np.float64]:
    """Scores in [0, 1) of amounts >= 0, elementwise."""
    values = np.asarray(amounts, dtype=np.float64)
    return values / (1.0 + values)


def score_to_value(score: float) -> float:
    """The amount of a score, infinite for 1; inverse of :func:`value_to_score`."""
    return score / (1.0 - score) if score < 1.0 else math.inf


def order_by_log_value(score: float, found_seq: int) -> float:
    """Order by the logarithm of the amount: an :data:`focused.frontier.queued_link.Ordering`."""
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


class GroupHeads(Generic[Group]):
    """Queues groups of links by one link each, the head, when a whole group has one value.

    When the value of a group (a site, an arm of a bandit) changes with nearly every page, only the
    group's head is queued at that value; the others wait below all heads. A change then moves one
    link instead of thousands.

    The scorer gives a link some score, by which it is queued. The policy's ``after`` then calls
    :meth:`add` for the page's links and :meth:`gone` for the settled link, and returns
    :meth:`moves`. Take care of:

    - a link met again, which is queued again by its score and would rise above its head: score 0
      whatever :meth:`knows`, and order score 0 no higher than ``rest``;
    - redirect targets, which are queued by the score of the link that led there, and stay there:
      score a new link by its group's value. The same applies to a seed until a page links to it;
    - a link in flight, which cannot be moved and may return after a failure at its old value, until
      its group changes again.

    Each link is moved once when added and once when it becomes the head.
    """

    def __init__(self, rest: float, key: Callable[[str], Any] | None = None) -> None:
        """``rest`` is the priority of links that are no heads.

        Within a group the link with the smallest ``key`` is the head, by default the first added.
        """
        self._rest = rest
        self._key = key
        self._group_of: dict[str, Group] = {}
        self._gone: set[str] = set()
        self._heaps: dict[Group, list[tuple[Any, int, str]]] = {}
        self._waiting: dict[Group, int] = {}
        self._placed: dict[Group, LinkPriority] = {}
        self._touched: dict[Group, None] = {}  # an ordered set: iteration must be deterministic
        self._newcomers: list[str] = []
        self._added = 0

    def knows(self, url: str) -> bool:
        """Whether the link waits in a group or has left the queue."""
        return url in self._group_of or url in self._gone

    def waiting(self, group: Group) -> int:
        """Number of waiting links of the group."""
        return self._waiting.get(group, 0)

    def groups(self) -> Iterable[Group]:
        """The groups with waiting links, oldest first."""
        return self._waiting.keys()

    def add(self, group: Group, url: str) -> bool:
        """Add a queued link; return False when it is already known, in whatever group."""
        if self.knows(url):
            return False
        key = self._added if self._key is None else self._key(url)
        heapq.heappush(self._heaps.setdefault(group, []), (key, self._added, url))
        self._added += 1
        self._group_of[url] = group
        self._waiting[group] = self._waiting.get(group, 0) + 1
        self._touched[group] = None
        self._newcomers.append(url)
        return True

    def gone(self, url: str) -> None:
        """Record that the link has left the queue; it may be unknown."""
        self._gone.add(url)
        group = self._group_of.pop(url, None)
        if group is None:
            return
        self._touched[group] = None
        self._waiting[group] -= 1
        if not self._waiting[group]:
            for of_groups in (self._waiting, self._heaps, self._placed):
                of_groups.pop(group, None)

    def moves(
        self, value: Callable[[Group], float], groups: Iterable[Group] = ()
    ) -> dict[str, float]:
        """Return the priorities that changed since the last call, by URL.

        ``value`` gives a group's priority, above ``rest``. It is called for the groups that gained
        or lost links, and for ``groups``, those whose value changed otherwise.
        """
        moved = {url: self._rest for url in self._newcomers if url in self._group_of}
        for group in dict.fromkeys([*self._touched, *groups]):
            if group not in self._waiting:
                continue
            head = self._head(group)
            place = (head, value(group))
            before = self._placed.get(group)
            if before is not None and before[0] != head and before[0] in self._group_of:
                moved[before[0]] = self._rest
            if place != before or head in moved:
                moved[head] = place[1]
            self._placed[group] = place
        self._touched.clear()
        self._newcomers.clear()
        return moved

    def _head(self, group: Group) -> str:
        heap = self._heaps[group]
        while heap[0][2] in self._gone:
            heapq.heappop(heap)
        return heap[0][2]
