"""Groups of waiting links that are valued as groups, of which only one link each shows it.

Where a group (a site, an arm of a bandit) has one value for all its links,
which changes with nearly every page, it is enough that one link, the group's
head, stands in the queue at that value: the others wait below all heads until
it is their turn. So a change moves one link instead of thousands.

The way of a link: the scorer gives it some score, by which it is queued;
``Steering.after`` then calls :meth:`GroupHeads.add` for the page's links,
:meth:`GroupHeads.gone` for the link that was settled, and returns what
:meth:`GroupHeads.moves` says. Hazards, and how they are met:

- a link met again is pushed again by its score, and would rise above its
  group's head: score 0 what :meth:`GroupHeads.knows`, and let the policy's ordering
  give score 0 no more than ``rest``;
- redirect targets enter the queue unscored, by the score of the link that led
  there: they stay where that puts them, so score a new link as its group was
  worth. The same goes for a seed, until a page links to it: from then on it is
  one of its group;
- a link that is under way cannot be moved, and may come back after a failure
  at the value it left with: until the next change of its group it stands there.

A link's cost: one move when it comes, one when it becomes the head. Memory: a
heap entry a waiting link, a set entry a link that was ever known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)

LinkPriority = tuple[str, float]
"""A link's URL and its priority."""


class GroupHeads(Generic[Group]):
    """Which link of each group is its head, and what has to be moved."""

    def __init__(self, rest: float, key: Callable[[str], Any] | None = None) -> None:
        """``rest`` is the priority of links that are no heads.

        Within a group the link with the smallest ``key`` is the head; without
        one, the link that was added first.
        """
        self._rest = rest
        self._key = key
        self._group_of: dict[str, Group] = {}
        self._gone: set[str] = set()
        self._heaps: dict[Group, list[tuple[Any, int, str]]] = {}
        self._waiting: dict[Group, int] = {}
        self._placed: dict[Group, LinkPriority] = {}
        self._touched: dict[Group, None] = {}  # a dict, for the order of a set is no one's
        self._newcomers: list[str] = []
        self._added = 0

    def knows(self, url: str) -> bool:
        """Whether the link waits in a group, or has left the queue for good."""
        return url in self._group_of or url in self._gone

    def waiting(self, group: Group) -> int:
        """How many links of the group wait."""
        return self._waiting.get(group, 0)

    def groups(self) -> Iterable[Group]:
        """The groups that have links waiting, the longest known first."""
        return self._waiting.keys()

    def add(self, group: Group, url: str) -> bool:
        """Take in a queued link; False when it is known or gone already, whatever its group."""
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
        """The link left the queue for good, be it known here or not."""
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

        ``value`` gives a group's priority, above ``rest``. It is asked for the
        groups that gained or lost links since the last call, and for
        ``groups``, those whose value changed otherwise.
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
