"""A page after parsing, classification and deduplication, and what features do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from focused.crawl.dedup.duplicates import DuplicateMatch
from focused.crawl.page_parser import ParsedPage
from focused.crawl.steps import ScoredLink
from focused.web.page import Classification, Fetched, Page
from focused.web.warc_records import WarcCapture


@dataclass(frozen=True, slots=True)
class ClassifiedPage:
    """A page after parsing, classification and deduplication.

    ``classification`` is that of ``parsed``, or a reviewer's. ``content`` is None for a ``feed``.
    ``depth`` is that of the page's links. ``is_noindex``: the page asks not to be indexed.
    """

    response: Fetched
    parsed: ParsedPage
    classification: Classification
    feed: bool
    content: DuplicateMatch | None
    depth: int
    is_noindex: bool
    scored: Mapping[str, ScoredLink]

    @property
    def page(self) -> Page:
        """The page."""
        return self.parsed.page

    @property
    def findings(self) -> Mapping[str, Any]:
        """What features found in the page, by name."""
        return self.parsed.findings

    @property
    def looks_relevant(self) -> bool:
        """Whether the classifier called the page on topic, whatever reviewers say."""
        return self.parsed.classification.on_topic

    @property
    def duplicate_of(self) -> str | None:
        """The URL of the original that this page duplicates."""
        return self.content.of if self.content is not None else None

    @property
    def exact_duplicate_of(self) -> str | None:
        """The URL of the first page with exactly the same text."""
        return self.content.exact_duplicate_of if self.content is not None else None

    @property
    def counts(self) -> bool:
        """Whether the page is on topic and counts as harvest."""
        apart = self.feed or self.is_noindex or self.duplicate_of is not None
        return self.classification.on_topic and not apart

    @property
    def kept_record(self) -> WarcCapture | None:
        """The record to write into the WARC, or None."""
        return None if self.is_noindex else self.parsed.record

    @property
    def outcome(self) -> str:
        """The value of the archive's ``outcome`` column."""
        if self.feed:
            return "feed"
        return "noindex" if self.is_noindex else "fetched"


class PageReviewer(Protocol):
    """Rates pages by what a feature knows of their sites, after the classifier."""

    def trust(self, urls: Iterable[str]) -> None:
        """Learn that a person chose the sites of these URLs."""

    def review(self, parsed: ParsedPage, found: Classification) -> Classification:
        """Return the classification of a page, ``found`` by the classifier; writes nothing."""

    def is_original(self, url: str, content: DuplicateMatch) -> bool:
        """Whether a page on topic takes the place of the one that it duplicates."""

    def learn(self, classified: ClassifiedPage, number: int, *, is_harvest: bool) -> None:
        """Learn from a page before its row, of that ``number``, is written and links are queued."""


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column that a feature adds to ``pages.parquet``; null for rows without a page.

    ``kind`` is a key of :data:`focused.archive.archive.COLUMN_KINDS`, and ``value`` returns such a
    value, or None.
    """

    name: str
    kind: str
    value: Callable[[ClassifiedPage], str | float | bool | None]
