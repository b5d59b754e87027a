"""Samples drawn by lot while a directory goes by that memory could not hold.

Each URL's lot is a hash of it, and the smallest lots stay: a uniform draw of the URLs,
each once, that depends neither on their order nor on how often they are listed.
"""

from __future__ import annotations

from heapq import heappop, heappush

import xxhash

from focused.directory.entry import DirectoryEntry
from focused.lots import lot


class _Side:
    """The URLs of one side with the smallest lots, each with its place and entry."""

    def __init__(self, limit: int | None, seed: int) -> None:
        self._limit = limit
        self._seed = seed
        self._largest: list[tuple[float, str]] = []
        self.samples: dict[str, tuple[int, DirectoryEntry]] = {}

    def add(self, place: int, entry: DirectoryEntry) -> str | None:
        """Take the entry in; return the URL that has to leave for it, maybe its own."""
        self.samples[entry.url] = place, entry
        if self._limit is None:
            return None
        heappush(self._largest, (-lot(entry.url, self._seed), entry.url))
        while len(self.samples) > self._limit:
            url = heappop(self._largest)[1]
            if self.samples.pop(url, None) is not None:
                return url
        return None


class Draw:
    """At most ``limit`` URLs a side; a URL on both sides is good.

    ``repeats`` counts the lines whose URL was there already, ``left_out`` those whose
    URL was not drawn. Of good URLs a hash is kept, drawn or not: they are not to come
    back on the other side.
    """

    def __init__(self, limit: int | None, seed: int) -> None:
        self._good = _Side(limit, seed)
        self._other = _Side(limit, seed)
        self._good_left_out: set[int] = set()
        self._on_both: set[str] = set()
        self._entries = 0
        self.repeats = 0
        self.left_out = 0

    @property
    def conflicts(self) -> int:
        """How many URLs were listed on both sides, as far as they were drawn."""
        return len(self._on_both)

    def add(self, entry: DirectoryEntry, good: bool) -> None:
        """Put one entry on its side, or drop it."""
        place, url = self._entries, entry.url
        self._entries += 1
        if url in self._good.samples:
            self.repeats += 1
            if not good:
                self._on_both.add(url)
        elif self._good_left_out and _hash(url) in self._good_left_out:
            self.left_out += 1
        elif good:
            earlier = self._other.samples.pop(url, None)
            if earlier is not None:
                place = earlier[0]
                self.repeats += 1
                self._on_both.add(url)
            self._left_out_good(self._good.add(place, entry))
        elif url in self._other.samples:
            self.repeats += 1
        else:
            self.left_out += self._other.add(place, entry) is not None

    def kept(self) -> list[tuple[DirectoryEntry, bool]]:
        """What was drawn, in the order in which the URLs came, with its side."""
        samples = [
            (place, entry, good)
            for side, good in ((self._good, True), (self._other, False))
            for place, entry in side.samples.values()
        ]
        samples.sort(key=lambda sample: sample[0])
        return [(entry, good) for _, entry, good in samples]

    def _left_out_good(self, url: str | None) -> None:
        if url is not None:
            self.left_out += 1
            self._on_both.discard(url)
            self._good_left_out.add(_hash(url))


def _hash(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode())
