"""The records and due times of a revisit schedule in memory, for experiments."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from heapq import heappop, heappush


class MemorySchedule:
    """A :class:`focused.revisit.schedule.ScheduleStore` in memory."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[int, bytes]] = {}
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._sites: dict[int, list[int]] = {}
        self._site_of: dict[int, int] = {}

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""
        records = self._kinds.get(kind)
        return None if records is None else records.get(number)

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""
        self._kinds.setdefault(kind, {})[number] = record

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""
        self._kinds.get(kind, {}).pop(number, None)

    def register(self, page: int, site: int) -> None:
        """Add a page to its site."""
        self._site_of[page] = site
        insort(self._sites.setdefault(site, []), page)

    def unregister(self, page: int) -> None:
        """Remove a page from its site."""
        self._sites[self._site_of.pop(page)].remove(page)

    def site_of(self, page: int) -> int:
        """Return the site of a registered page."""
        return self._site_of[page]

    def add(self, page: int, due_at: float) -> None:
        """Insert a registered page that is not in the queue."""
        self._due[page] = due_at
        heappush(self._heap, (due_at, page))

    def remove(self, page: int) -> bool:
        """Take a page out of the queue; False if it is not in it."""
        return self._due.pop(page, None) is not None

    def due_at(self, page: int) -> float | None:
        """Return the due time of a page; None if it is not in the queue."""
        return self._due.get(page)

    def first(self) -> tuple[float, int] | None:
        """Return the earliest due time and its page, or None."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0] if heap else None

    def pages_of_site(self, site: int, after: int, limit: int) -> Sequence[int]:
        """Return the pages of a site with numbers above ``after``, in order."""
        pages = self._sites.get(site, [])
        start = bisect_right(pages, after)
        return pages[start : start + limit]
