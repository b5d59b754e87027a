"""What is spent: the crawl's budget, and the scope's for directories."""

from __future__ import annotations

import struct

import xxhash

from focused.frontier.tables import Tables
from focused.topic import Budget
from focused.web.url import directory_of

_COUNT = struct.Struct(">Q")


def spent(budget: Budget, *, pages: int, bytes_: int, active_s: float) -> str | None:
    """Name the limit that is reached, or None. ``pages`` counts those under way, too."""
    if budget.pages is not None and pages >= budget.pages:
        return "page budget spent"
    if budget.bytes is not None and bytes_ >= budget.bytes:
        return "byte budget spent"
    if budget.hours is not None and active_s >= budget.hours * 3600:
        return "time budget spent"
    return None


class DirectoryBudget:
    """Pages fetched by directory, where the scope limits them.

    Durable, over :class:`Tables`; the caller commits. Without a limit
    nothing is counted: one that is set later starts from 0.
    """

    def __init__(self, most: int | None, tables: Tables) -> None:
        """``most`` pages may come from a directory; None: no limit."""
        self._most = most
        self._tables = tables

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._most is not None

    def spent(self, url: str) -> bool:
        """Whether no further page may come from the directory of a normalised URL."""
        return self._most is not None and self._count(_key(url)) >= self._most

    def fetched(self, url: str) -> None:
        """A page came from ``url``."""
        if self._most is not None:
            key = _key(url)
            self._tables.put("directories", key, _COUNT.pack(self._count(key) + 1))

    def _count(self, key: bytes) -> int:
        raw = self._tables.get("directories", key)
        return 0 if raw is None else int(_COUNT.unpack(raw)[0])


def _key(url: str) -> bytes:
    # Paths may be longer than a table's keys.
    return xxhash.xxh3_128_digest(directory_of(url).encode())
