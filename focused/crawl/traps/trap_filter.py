"""Skip links that lead into traps or to pages that were fetched under another URL.

Besides the rules for single URLs (:mod:`focused.web.scope_filter`), it combines what the crawl
learns: closed patterns (:mod:`focused.crawl.traps.trap_detector`) and other URLs of fetched pages
(:mod:`focused.crawl.dedup.url_aliases`). Links are checked before they are queued and again when
they are offered.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import xxhash

from focused.crawl.dedup.url_aliases import (
    CanonicalUrls,
    ContentSignature,
    IgnorableUrlParts,
    load_signature,
)
from focused.crawl.listeners import SettledEvent
from focused.crawl.steps import SettledFetch
from focused.crawl.traps.trap_detector import CLOSED_REASONS, PageVerdict, TrapDetector
from focused.frontier.queued_link import QueuedLink
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.text.content_signatures import (
    bag_of_words_hash,
    may_have_sort_parameters,
    opening_digest,
    page_template,
    text_digest,
)
from focused.web.host_names import registered_domain
from focused.web.page import FailureKind, Outcome, Page, Redirected
from focused.web.scope_filter import TRAP_PREFIX
from focused.web.url_patterns import ignorable_parts, patterns_of_url
from focused.web.urls import host_of

MIN_PAGES_PER_FRAME = 4
"""From this many pages of a site with one template on, they count as duplicates."""
MIN_FRAME_SHARE = 0.5
DOUBTFUL_RELEVANCE = 0.2
"""From this relevance on, one in five pages off topic may be on topic after all."""
REDIRECT_LOOP = "trap: redirect loop"
_URL_FAILURES = frozenset(
    {
        FailureKind.CLIENT_ERROR,
        FailureKind.GONE,
        FailureKind.EMPTY,
        FailureKind.BAD_REDIRECT,
        FailureKind.TOO_LARGE,
        FailureKind.WRONG_TYPE,
        FailureKind.WRONG_LANGUAGE,
    }
)
"""Failures caused by the URL; others are caused by the server or by us."""
_COUNT = struct.Struct(">I")


class TrapFilter:
    """Skips links to traps and to known pages; persistent, the caller commits."""

    def __init__(
        self,
        tables: Tables,
        *,
        on: bool = True,
        keeps: Callable[[str], object] = lambda name: False,
    ) -> None:
        """With ``on`` False nothing is learned or refused.

        ``keeps`` tells by name which parameters always make a difference.
        """
        self._tables = tables
        self._on = on
        self._trap_detector = TrapDetector(tables)
        self._url_parts = IgnorableUrlParts(tables, keeps)
        self._canonicals = CanonicalUrls(tables, partial(load_signature, tables))
        self.stats = TrapStats(tables)

    def choose(self, seeds: Iterable[str]) -> None:
        """Allow more pages to the patterns of these seeds."""
        self._trap_detector.choose(seeds)

    def close_site(self, host: str, reason: str) -> bool:
        """Refuse all links to the hosts of a site, for one of the reasons that concern sites.

        False if they are refused already, or traps are not looked for.
        """
        closed = self._trap_detector.close_site(host, reason) if self._on else None
        if closed is not None:
            self.stats.lost(closed.site, closed.reason, closed.pages)
        return closed is not None

    def refusal_reason(self, url: str) -> str | None:
        """Return why a URL is not fetched, and count it; None when it is."""
        if not self._on:
            return None
        alias = self.counted(self._url_parts.why(url) or self._canonicals.why(url), url)
        if alias is not None:
            return alias
        closed = self._trap_detector.closed(url)
        if closed is None:
            return None
        self.stats.refused(closed.site, closed.reason, url)
        return closed.reason

    def is_open(self, host: str) -> bool:
        """Whether :meth:`refusal_reason` refuses no link to that host."""
        if not self._on:
            return True
        return not (
            self._url_parts.of(host)
            or self._canonicals.are_trusted(host)
            or self._trap_detector.has_closed_patterns(host)
        )

    def refusal_when_due(self, link: QueuedLink) -> FailureKind | None:
        """Return TRAP or ALIAS for a queued link that is refused by now; never for seeds."""
        if link.parent is None or link.payload:
            return None
        reason = self.refusal_reason(link.url)
        if reason is None:
            return None
        return FailureKind.TRAP if reason.startswith(TRAP_PREFIX) else FailureKind.ALIAS

    def counted(self, reason: str | None, url: str) -> str | None:
        """Count a refusal if it is a trap's; return its reason."""
        if reason is not None and reason.startswith(TRAP_PREFIX):
            self.stats.refused(host_of(url), reason, url)
        return reason

    def on_settled(self, event: SettledEvent) -> None:
        """Learn from a fetch that is not retried."""
        if self._on and event.outcome is not None:
            self.settled(event.settled.link, event.outcome, event.settled)

    def settled(self, link: QueuedLink, outcome: Outcome, settled: SettledFetch) -> None:
        """Learn from ``outcome`` whether the link's URL patterns are productive."""
        verdict = self._verdict_of(link, outcome, settled)
        if verdict is None:
            return
        closed = None if verdict is PageVerdict.GOOD else self._trap_detector.closed(link.url)
        if closed is not None:  # in flight when its pattern was closed
            self.stats.lost(closed.site, closed.reason, 1)
        for each in self._trap_detector.take(link.url, verdict):
            self.stats.lost(each.site, each.reason, each.pages)

    def _verdict_of(
        self, link: QueuedLink, outcome: Outcome, settled: SettledFetch
    ) -> PageVerdict | None:
        """Return what the fetch means for its patterns, or None."""
        if isinstance(outcome, Redirected):
            return self._of_redirect(link, outcome, settled)
        if settled.page is None or settled.classification is None:
            return PageVerdict.UNPRODUCTIVE if settled.failure in _URL_FAILURES else None
        if settled.outcome != "fetched":
            return None
        self._take(settled, settled.page)
        if settled.duplicate_of == link.url:  # it was asked for again, and has not changed
            return None
        if settled.duplicate_of is not None:
            reason = self._url_parts.why(link.url)
            if reason is not None and reason.startswith(TRAP_PREFIX):
                self.stats.lost(link.host, reason, 1)
            return PageVerdict.DUPLICATE
        share = self._frame_share(link.url, settled.page)
        if share is not None:
            # Pages of a list differ in their links, so they weigh less than duplicates.
            return PageVerdict.DUPLICATE if share >= MIN_FRAME_SHARE else PageVerdict.UNPRODUCTIVE
        if settled.classification.on_topic:
            return PageVerdict.GOOD
        is_doubtful = settled.classification.relevance >= DOUBTFUL_RELEVANCE
        return PageVerdict.DOUBTFUL if is_doubtful else PageVerdict.UNPRODUCTIVE

    def _take(self, settled: SettledFetch, page: Page) -> None:
        """Learn which URL brought the page.

        Texts are hashed only where another URL may bring the same page.
        """
        url = settled.link.url
        signature = ContentSignature.of(url)
        if may_have_sort_parameters(page):
            signature = ContentSignature.of(url, text_digest(page), bag_of_words_hash(page))
        elif ignorable_parts(url) or self._canonicals.was_named(url):
            signature = ContentSignature.of(url, text_digest(page))
        self._url_parts.take(url, signature, settled.duplicate_of)
        # A page that isn't indexed, or whose links aren't followed, stands for no other.
        stands = not settled.is_noindex and not page.nofollow
        self._canonicals.take(
            url,
            signature,
            page.canonical,
            settled.duplicate_of,
            stands=stands,
            amp=page.amp,
        )
        if page.canonical is not None and self._canonicals.are_trusted(settled.link.host):
            self._url_parts.take_same(url, page.canonical)

    def _of_redirect(
        self, link: QueuedLink, outcome: Redirected, settled: SettledFetch
    ) -> PageVerdict | None:
        """A redirect within its pattern is unproductive; one that leads out of it says nothing."""
        if outcome.target in (link.url, link.parent if link.hops else None):
            self.stats.lost(link.host, REDIRECT_LOOP, 1 + link.hops)
            return PageVerdict.UNPRODUCTIVE
        if settled.outcome == "failed":
            return PageVerdict.UNPRODUCTIVE
        self._url_parts.take_same(link.url, outcome.target)
        return (
            PageVerdict.UNPRODUCTIVE
            if patterns_of_url(outcome.target)[0] == patterns_of_url(link.url)[0]
            else None
        )

    def _frame_share(self, url: str, page: Page) -> float | None:
        """Return the template's share of the page, if enough pages of the site have that template.

        The template is extracted only if an earlier page began the same way, which is rare.
        """
        site = registered_domain(host_of(url)).encode()
        same_opening_count = self._count_same(site, b"begins", opening_digest(page))
        if same_opening_count == 1:
            return None
        frame = page_template(page)
        if frame.digest is None:
            return None
        same_count = 1 + self._count_same(site, b"", frame.digest)
        return frame.share if same_count >= MIN_PAGES_PER_FRAME else None

    def _count_same(self, site: bytes, what: bytes, digest: bytes) -> int:
        """Count the pages of the site with this digest, including this one."""
        key = xxhash.xxh3_128_digest(b" ".join((site, what, digest)))
        raw = self._tables.get("trap_frames", key)
        same_count = 1 + (0 if raw is None else int(_COUNT.unpack(raw)[0]))
        self._tables.put("trap_frames", key, _COUNT.pack(same_count))
        return same_count


MAX_COUNTED_SITES = 1_000
_MAX_EXAMPLES = 3
OTHER_HOSTS = "(other hosts)"


class TrapCount(msgspec.Struct):
    """``pages`` lost to one kind of trap on ``site``, and ``links`` refused.

    ``examples`` are the first three refused URLs.
    """

    site: str
    kind: str
    pages: int = 0
    links: int = 0
    examples: list[str] = []  # a struct copies it


class TrapStats:
    """Trap statistics by site and kind; persistent after :meth:`save`, the caller commits.

    The first thousand sites have rows of their own, the others share one for each kind.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lines: dict[tuple[str, str], TrapCount] = {}
        self._changed: dict[tuple[str, str], TrapCount] = {}
        for _, raw in tables.scan("trap_counts"):
            line = TrapCount(*unpack(raw))
            self._lines[line.site, line.kind] = line

    def lines(self) -> list[TrapCount]:
        """Return all rows, most pages first."""
        return sorted(self._lines.values(), key=lambda line: (-line.pages, -line.links, line.site))

    def most_refused(self) -> TrapCount | None:
        """Return the row of closed patterns with most links refused, None if none was."""
        rows = [row for row in self._lines.values() if row.links and row.kind in CLOSED_REASONS]
        return max(rows, key=lambda row: (row.links, row.site), default=None)

    def as_json(self) -> list[dict[str, Any]]:
        """Return all rows as JSON data."""
        return [msgspec.to_builtins(line) for line in self.lines()]

    def lost(self, site: str, kind: str, pages: int) -> None:
        """Count pages that were fetched for nothing."""
        if pages:
            self._line_to_change(site, kind).pages += pages

    def refused(self, site: str, kind: str, url: str) -> None:
        """Count a refused link."""
        line = self._line_to_change(site, kind)
        line.links += 1
        if len(line.examples) < _MAX_EXAMPLES and url not in line.examples:
            line.examples.append(url)

    def save(self) -> None:
        """Write the changed rows: a page may have hundreds of refused links."""
        for line in self._changed.values():
            key = xxhash.xxh3_128_digest(f"{line.site} {line.kind}".encode("utf-8", "replace"))
            self._tables.put("trap_counts", key, pack(msgspec.structs.astuple(line)))
        self._changed.clear()

    def _line_to_change(self, site: str, kind: str) -> TrapCount:
        """Return the row of a count that is about to change; :meth:`save` writes it."""
        line = self._lines.get((site, kind))
        if line is None:
            named = site if len(self._lines) < MAX_COUNTED_SITES else OTHER_HOSTS
            line = self._lines.setdefault((named, kind), TrapCount(named, kind))
        self._changed[line.site, kind] = line
        return line
