"""Which of two equal pages on topic is the original, and what that changes in the archive.

Of two sites with the same text one may have copied it. The page that was fetched first keeps its
place, until what is known of the sites (:mod:`focused.spam.site_trust`) says that it is the copy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from focused.crawl.archive_writer import ArchiveWriter
from focused.crawl.classified_page import ClassifiedPage
from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateMatch
from focused.frontier.queued_link import link_key
from focused.spam.site_trust import SiteTrust
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.web.host_names import site_key
from focused.web.page import Page

_TABLE = "copied_pages"
_MAX_REFUSED = 200
"""Refused pages that are stored for each site."""
_ROW_NUMBER = struct.Struct(">I")


class CopiedPages:
    """The harvested pages that a better copy would replace; persistent, the caller commits."""

    def __init__(
        self,
        tables: Tables,
        duplicates: DuplicateDetector,
        rows: ArchiveWriter,
        site_trust: SiteTrust,
        *,
        may_replace: bool,
    ) -> None:
        """With ``may_replace`` False the first page keeps its place.

        So it does in continuous crawls, which visit it again.
        """
        self._tables = tables
        self._duplicates = duplicates
        self._rows = rows
        self._site_trust = site_trust
        self._replaces = may_replace

    def may_replace(self, match: DuplicateMatch) -> bool:
        """Whether a page could take the place of the one that it duplicates."""
        return self._replaces and self._duplicates.can_replace(match)

    def learn(self, classified: ClassifiedPage, number: int, *, is_harvest: bool) -> Iterator[str]:
        """Learn which of two equal pages is a copy, and take its harvest away if it came first.

        ``number`` is that of the row of ``classified``. Yields the URL of each copy.
        """
        content, url = classified.content, classified.page.url
        if is_harvest:
            self._keep_row(url, number)
        if content is None or not classified.looks_relevant or classified.is_noindex:
            return
        if content.replaces is not None:
            earlier = self._harvested_row(content.replaces)
            if earlier is not None:
                self._rows.replaced(earlier, url)
            yield self._learn_copy(content.replaces, url, was_new=True)
        elif content.of is not None and self._site_trust.is_original(content.of, url):
            yield self._learn_copy(url, content.of, was_new=False)
        elif self.may_replace(content) and classified.classification.on_topic:
            self._keep_refused(content, url, number)
        # Copies with advertisements, or their originals.
        for other in self._duplicates.common_text(content):
            if self._site_trust.is_original(url, other):
                yield self._learn_copy(other, url, was_new=True)
            elif self._site_trust.is_original(other, url) or self._credits(classified.page, other):
                yield self._learn_copy(url, other, was_new=True)

    def reinstate(self, site: str) -> None:
        """Count pages that were refused as duplicates of a site's, in place of these.

        ``site`` is the URL of one of its pages.
        """
        done = set()
        for number, url, of in self._refused_for(site):
            if of not in done and self._rows.reinstated(number):
                done.add(of)
                earlier = self._harvested_row(of)
                if earlier is not None:
                    self._rows.replaced(earlier, url)
                self._duplicates.replace_original(of, url)
                self._keep_row(url, number)

    def _learn_copy(self, url: str, original: str, *, was_new: bool) -> str:
        self._site_trust.learn_copy(url, original, was_new=was_new)
        return url

    def _credits(self, page: Page, other: str) -> bool:
        """Whether a page that has text in common with ``other`` links there, as copies do.

        Originals seldom link to sites that copy from them.
        """
        if self._site_trust.is_trusted(page.url):
            return False
        site = site_key(other)
        return any(site_key(link.url) == site for link in page.links if not link.nofollow)

    def _keep_row(self, url: str, number: int) -> None:
        self._tables.put(_TABLE, _row_key(url), _ROW_NUMBER.pack(number))

    def _harvested_row(self, url: str) -> int | None:
        """Return the number of a page's row, or None if the page did not count as harvest."""
        number = self._tables.get(_TABLE, _row_key(url))
        return None if number is None else int(_ROW_NUMBER.unpack(number)[0])

    def _keep_refused(self, match: DuplicateMatch, url: str, number: int) -> None:
        """Store that a page on topic, row ``number``, does not count because of another site's."""
        if match.of is None or site_key(match.of) == site_key(url):
            return
        refused = [*self._refused_for(match.of), (number, url, match.of)]
        self._tables.put(_TABLE, _refused_key(match.of), pack(refused[:_MAX_REFUSED]))

    def _refused_for(self, url: str) -> list[tuple[int, str, str]]:
        """Return rows and URLs of pages refused for the site of ``url``, and its own pages."""
        raw = self._tables.get(_TABLE, _refused_key(url))
        return [] if raw is None else [tuple(each) for each in unpack(raw)]


def _refused_key(url: str) -> bytes:
    """Return the key of the refused pages of a site; longer than those of rows."""
    return b"refused for " + site_key(url)


def _row_key(url: str) -> bytes:
    """Return the key of a row's number."""
    return b"row" + link_key(url)[:8]
