"""Pages that were met before under another URL: word for word, nearly so, or as they say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from focused.crawl.near_duplicates import RESEMBLANCE, NearDuplicates, Sketched
from focused.crawl.page_texts import said_by
from focused.crawl.reading import Reading
from focused.frontier.tables import Tables
from focused.web.page import Page
from focused.web.word_bag import NO_BAG, word_bag

CANONICAL_RESEMBLANCE = 0.5
"""So alike are a page and the one that it says it is, to be taken for the same."""


class CopyKind(StrEnum):
    """How a page repeats an earlier one. The value is what archives hold."""

    EXACT = "exact"
    NEAR = "near"
    CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a page's content: ``of`` is the page it repeats, None when it is new.

    ``key`` stands for the content, ``sketched`` for what it is made of. ``same_as`` is the first
    page that is the same word for word, which may be a near-duplicate of ``of``.
    """

    key: bytes
    of: str | None = None
    kind: CopyKind | None = None
    sketched: Sketched | None = None
    same_as: str | None = None


class Copies:
    """The contents that a crawl has met, durable over its tables; the caller commits."""

    def __init__(self, tables: Tables, *, near: bool) -> None:
        """``near`` False: pages must be the same word for word."""
        self._tables = tables
        self._near = NearDuplicates(tables) if near else None

    def look_up(self, reading: Reading) -> Looked:
        """Find the page that a page repeats, itself no copy; changes nothing."""
        page, key = reading.page, reading.content
        same = self._tables.get("content", key)
        if same is not None:
            original, _, near = same.decode().partition(" ")
            return Looked(key, original, CopyKind.EXACT, same_as=near or original)
        sketched = self._sketched(reading)
        if self._is_its_canonical(page):
            return Looked(key, page.canonical, CopyKind.CANONICAL, sketched)
        if self._near is None or sketched is None:
            return Looked(key)
        share, like = self._near.nearest(sketched)
        if share >= RESEMBLANCE:
            return Looked(key, like, CopyKind.NEAR, sketched)
        if like == page.canonical and share >= CANONICAL_RESEMBLANCE:
            return Looked(key, like, CopyKind.CANONICAL, sketched)
        return Looked(key, sketched=sketched)

    def _sketched(self, reading: Reading) -> Sketched | None:
        if self._near is None or reading.shingles is None:
            return None
        return self._near.sketched(reading.page, reading.shingles)

    def _is_its_canonical(self, page: Page) -> bool:
        """Whether the page that it names came, with the same words in another order."""
        if page.canonical is None or page.canonical == page.url:
            return False
        there = said_by(self._tables, page.canonical)
        return there is not None and there.bag != NO_BAG and there.bag == word_bag(page)

    def keep(self, page: Page, looked: Looked) -> None:
        """Remember the content of a page that was looked up."""
        if looked.kind is CopyKind.EXACT:
            return
        first = page.url if looked.of is None else f"{looked.of} {page.url}"
        self._tables.put("content", looked.key, first.encode())
        if self._near is not None and looked.of is None and looked.sketched is not None:
            self._near.add(looked.sketched)
