"""Queue groups of links by one link each, the head, when a whole group has one value.

When the value of a group (a site, an arm of a bandit) changes with nearly every page, only the
group's head is queued at that value; the others wait below all heads. A change then moves one link
instead of thousands.

The scorer gives a link some score, by which it is queued. The policy's ``after`` then calls
:meth:`GroupHeads.add` for the page's links and :meth:`GroupHeads.gone` for the settled link, and
returns :meth:`GroupHeads.moves`. Take care of:

- a link met again, which is queued again by its score and would rise above its head: score 0
  whatever :meth:`GroupHeads.knows`, and order score 0 no higher than ``rest``;
- redirect targets, which are queued by the score of the link that led there, and stay there: score
  a new link by its group's value. The same applies to a seed until a page links to it;
- a link in flight, which cannot be moved and may return after a failure at its old value, until its
  group changes again.

Each link is moved once when added and once when it becomes the head.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)

LinkPriority = tuple[str, float]
"""A link's URL and its priority."""


class GroupHeads(Generic[Group]):
    """Tracks the head of each group, and the links to be moved."""

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
