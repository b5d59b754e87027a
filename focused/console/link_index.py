"""Which pages link to a URL, from a crawl's stored links, also while the crawl runs.

Memory holds two numbers a link, 12 bytes: the hash of its target and the page that has it.
"""

from __future__ import annotations

from array import array

import numpy as np

from focused.archive.archive import decode_page_links
from focused.corpus.page_selection import url_hash
from focused.storage.tables import Tables


class LinkIndex:
    """In-links by the hash of their target; :meth:`read` adds what is new."""

    def __init__(self) -> None:
        self._targets = array("Q")
        self._sources = array("L")
        self._read_up_to = 0

    def __len__(self) -> int:
        return len(self._targets)

    def read(self, tables: Tables) -> None:
        """Add the links of pages that were stored since the last call."""
        for key, raw in tables.scan("page_links", start=self._read_up_to.to_bytes(8, "big")):
            source = int.from_bytes(key, "big")
            for link in decode_page_links(raw):
                self._targets.append(url_hash(link.target))
                self._sources.append(source)
            self._read_up_to = source + 1

    def sources(self, url: str) -> list[int]:
        """Return the numbers of the pages that link to ``url``, ascending."""
        if not self._targets:
            return []
        targets = np.frombuffer(self._targets, np.uint64)
        found = np.flatnonzero(targets == np.uint64(url_hash(url)))
        return sorted({self._sources[place] for place in found.tolist()})
