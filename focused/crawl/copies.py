"""Pages that were met before under another URL: word for word, or nearly so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from focused.crawl.near_duplicates import NearDuplicates, Sketched
from focused.frontier.store import StateStore
from focused.web.fingerprint import content_fingerprint
from focused.web.page import Page


class CopyKind(StrEnum):
    """How a page repeats an earlier one. The value is what archives hold."""

    EXACT = "exact"
    NEAR = "near"


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a page's content: ``of`` is the page it repeats, None when it is new.

    ``key`` stands for the content, ``sketched`` for what it is made of.
    """

    key: bytes
    of: str | None = None
    kind: CopyKind | None = None
    sketched: Sketched | None = None


class Copies:
    """The contents that a crawl has met, durable over its store; the caller commits."""

    def __init__(self, store: StateStore, *, near: bool) -> None:
        """``near`` False: pages must be the same word for word."""
        self._store = store
        self._near = NearDuplicates(store) if near else None

    def look_up(self, page: Page) -> Looked:
        """Find the page that ``page`` repeats, itself no copy; changes nothing."""
        key = content_fingerprint(page)
        same = self._store.get("content", key)
        if same is not None:
            return Looked(key, same.decode(), CopyKind.EXACT)
        if self._near is None:
            return Looked(key)
        sketched = self._near.sketched(page)
        like = self._near.like(sketched)
        kind = None if like is None else CopyKind.NEAR
        return Looked(key, like, kind, sketched)

    def keep(self, page: Page, looked: Looked) -> None:
        """Remember the content of a page that was looked up."""
        if looked.kind is CopyKind.EXACT:
            return
        self._store.put("content", looked.key, (looked.of or page.url).encode())
        if self._near is not None and looked.of is None and looked.sketched is not None:
            self._near.add(looked.sketched)
