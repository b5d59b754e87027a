"""What a crawl has learned of traps: which links are not worth asking for, and what they cost.

Beside the rules for URLs (:mod:`focused.web.traps`), which the scope holds,
three things are learned: places that bring nothing
(:mod:`focused.crawl.barren_places`), parts of URLs that change nothing
(:mod:`focused.crawl.idle_slots`), and whose canonical links are true
(:mod:`focused.crawl.canonicals`). Links are refused at the door and once more
when their turn comes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial

import xxhash

from focused.crawl.barren_places import BarrenPlaces, Verdict
from focused.crawl.canonicals import Canonicals
from focused.crawl.idle_slots import IdleSlots
from focused.crawl.page_texts import Said, said_by
from focused.crawl.steps import Settled
from focused.crawl.trap_tally import TrapTally
from focused.frontier.queued import QueuedLink
from focused.frontier.tables import Tables
from focused.web.domain import registered_domain
from focused.web.page import FailureKind, Outcome, Page, Redirected
from focused.web.skeleton import beginning_of, frame_of, text_of
from focused.web.traps import KIND
from focused.web.url import host_of
from focused.web.url_patterns import places_of, slots_of
from focused.web.word_bag import may_be_sorted, word_bag

ALIKE_ARE_COPIES_FROM = 4
"""So many pages of a site have one frame: from this one on they are copies."""
COPIES_SHARE = 0.5
LOOP = "trap: redirect loop"
_NO_PAGE = frozenset(
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
"""Failures that tell of the URL; others tell of the server, or of us."""
_COUNT = struct.Struct(">I")


class Traps:
    """Durable, over :class:`Tables`; the caller commits."""

    def __init__(
        self,
        tables: Tables,
        *,
        on: bool = True,
        keeps: Callable[[str], object] = lambda name: False,
    ) -> None:
        """With ``on`` False nothing is learned nor refused.

        ``keeps`` tells by their names which parameters always make a difference.
        """
        self._tables = tables
        self._on = on
        self._places = BarrenPlaces(tables)
        self._slots = IdleSlots(tables, keeps)
        self._canonicals = Canonicals(tables, partial(said_by, tables))
        self.tally = TrapTally(tables)

    def choose(self, seeds: Iterable[str]) -> None:
        """Somebody chose these normalised URLs: there is more patience with where they stand."""
        self._places.choose(seeds)

    def refuses(self, url: str) -> str | None:
        """Why a normalised URL is not to be asked for, and count it; None when it may be."""
        if not self._on:
            return None
        alias = self.counted(self._slots.why(url) or self._canonicals.why(url), url)
        if alias is not None:
            return alias
        closed = self._places.closed(url)
        if closed is None:
            return None
        self.tally.refused(closed.site, closed.reason, url)
        return closed.reason

    def is_open(self, host: str) -> bool:
        """Whether :meth:`refuses` says nothing of any link to that host."""
        if not self._on:
            return True
        return not (
            self._slots.of(host)
            or self._canonicals.are_good(host)
            or self._places.are_closed_at(host)
        )

    def at_its_turn(self, link: QueuedLink) -> FailureKind | None:
        """TRAP or ALIAS for a link that was queued before it was known for one; never for seeds."""
        if link.parent is None or link.payload:
            return None
        reason = self.refuses(link.url)
        if reason is None:
            return None
        return FailureKind.TRAP if reason.startswith(KIND) else FailureKind.ALIAS

    def counted(self, reason: str | None, url: str) -> str | None:
        """The same reason for which a URL was refused; it is counted if it is a trap's."""
        if reason is not None and reason.startswith(KIND):
            self.tally.refused(host_of(url), reason, url)
        return reason

    def settled(self, link: QueuedLink, outcome: Outcome, settled: Settled) -> None:
        """Take in what became of a fetch that is not tried again."""
        if not self._on:
            return
        verdict = self._verdict(link, outcome, settled)
        if verdict is None:
            return
        closed = None if verdict is Verdict.GOOD else self._places.closed(link.url)
        if closed is not None:  # it was under way as its place was closed
            self.tally.lost(closed.site, closed.reason, 1)
        for each in self._places.take(link.url, verdict):
            self.tally.lost(each.site, each.reason, each.pages)

    def _verdict(self, link: QueuedLink, outcome: Outcome, settled: Settled) -> Verdict | None:
        """What the fetch says of the place; None where it says nothing."""
        if isinstance(outcome, Redirected):
            return self._of_redirect(link, outcome, settled)
        if settled.page is None or settled.judgement is None:
            return Verdict.BARREN if settled.failure in _NO_PAGE else None
        if settled.outcome != "fetched":
            return None
        self._take(settled, settled.page)
        if settled.duplicate_of == link.url:  # it was asked for again, and has not changed
            return None
        if settled.duplicate_of is not None:
            idle = self._slots.why(link.url)
            if idle is not None and idle.startswith(KIND):
                self.tally.lost(link.host, idle, 1)
            return Verdict.COPY
        share = self._share_alike(link.url, settled.page)
        if share is not None:
            # Pages of a list differ in their links: they are worth more patience than copies.
            return Verdict.COPY if share >= COPIES_SHARE else Verdict.BARREN
        return Verdict.GOOD if settled.judgement.on_topic else Verdict.BARREN

    def _take(self, settled: Settled, page: Page) -> None:
        """Learn from what came under which URL; most pages have no other, and are not hashed."""
        url = settled.link.url
        said = Said.of(url)
        if may_be_sorted(page):
            said = Said.of(url, text_of(page), word_bag(page))
        elif slots_of(url) or self._canonicals.are_told_of(url):
            said = Said.of(url, text_of(page))
        self._slots.take(url, said, settled.duplicate_of)
        # A page that is no harvest, or leads nowhere, stands for no other.
        stands = not settled.left_out and not page.nofollow
        self._canonicals.take(url, said, page.canonical, settled.duplicate_of, stands=stands)
        if page.canonical is not None and self._canonicals.are_good(settled.link.host):
            self._slots.told(url, page.canonical)

    def _of_redirect(
        self, link: QueuedLink, outcome: Redirected, settled: Settled
    ) -> Verdict | None:
        """A redirect within its place is one more of a chain; one that leads on is none of it."""
        if outcome.target in (link.url, link.parent if link.hops else None):
            self.tally.lost(link.host, LOOP, 1 + link.hops)
            return Verdict.BARREN
        if settled.outcome == "failed":
            return Verdict.BARREN
        self._slots.told(link.url, outcome.target)
        return Verdict.BARREN if places_of(outcome.target)[0] == places_of(link.url)[0] else None

    def _share_alike(self, url: str, page: Page) -> float | None:
        """The share of the page's frame, where enough pages of the site had the same.

        Of the first page with its beginning that is all that is looked at: most pages
        have one of their own, and no frame that another page has.
        """
        site = registered_domain(host_of(url)).encode()
        began = self._count_alike(site, b"begins", beginning_of(page))
        if began == 1:
            return None
        frame = frame_of(page)
        if frame.digest is None:
            return None
        alike = 1 + self._count_alike(site, b"", frame.digest)
        return frame.share if alike >= ALIKE_ARE_COPIES_FROM else None

    def _count_alike(self, site: bytes, what: bytes, digest: bytes) -> int:
        """How many pages of the site had this, with the one that is counted now."""
        key = xxhash.xxh3_128_digest(b" ".join((site, what, digest)))
        raw = self._tables.get("trap_frames", key)
        alike = 1 + (0 if raw is None else int(_COUNT.unpack(raw)[0]))
        self._tables.put("trap_frames", key, _COUNT.pack(alike))
        return alike
