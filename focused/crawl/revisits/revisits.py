"""Revisits of a continuous crawl: pace them, request them conditionally, settle what comes back.

The order matters as for new pages: the probability that the page changed is computed before the
response is compared; the visit is stored before the page's new links enter the frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from statistics import fmean

from msgspec.structs import replace

from focused.archive.archive import Archive, PageRow
from focused.archive.page_history import FirstVersion, VisitResult, VisitRow
from focused.crawl.crawl_stats import Counters
from focused.crawl.listeners import SettledEvent
from focused.crawl.page_parser import ParsedPage
from focused.crawl.responses import ClassifiedPage, ResponseProcessor
from focused.crawl.revisits.announcements import Announcements
from focused.crawl.revisits.collection import Collection, first_record, is_visited_again
from focused.crawl.revisits.download_budget import DownloadBudget
from focused.crawl.revisits.page_fate import PRESENT, decide_fate, redirects_to_missing_page
from focused.crawl.revisits.page_records import KnownPage
from focused.crawl.revisits.versions import Comparison, VersionChecker, changed_at
from focused.crawl.steps import SettledFetch
from focused.frontier.interface import Frontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected
from focused.web.urls import host_of

_NEW_VERSION = frozenset({VisitResult.CHANGED, VisitResult.REAPPEARED, VisitResult.UNKNOWN})
_SAME_VERSION = frozenset({VisitResult.IDENTICAL, VisitResult.COSMETIC})
_MIN_NEW_RELEVANCE = 0.1
_ENDS = frozenset({VisitResult.GONE, VisitResult.MOVED, VisitResult.SOFT_404})
_CHANGES = frozenset({VisitResult.CHANGED, VisitResult.REAPPEARED, *_ENDS})
_RETRY_S = {
    VisitResult.MISSING: 3 * 86_400.0,
    VisitResult.FAILED: 3_600.0,
    VisitResult.EXCLUDED: 30 * 86_400.0,
}
"""When to visit again after results that don't tell whether the page changed."""

_MIN_RELEASED = 16
_MAX_RELEASED_S = 3_600.0
"""No more pages are queued than are visited in this time, so that their scores stay up to date."""


class Revisits:
    """The part of a continuous crawl that keeps its pages fresh; the caller commits."""

    def __init__(
        self,
        collection: Collection,
        budget: DownloadBudget,
        save_schedule: Callable[[], None],
        responses: ResponseProcessor,
        versions: VersionChecker,
        announcements: Announcements,
        archive: Archive,
        frontier: Frontier,
        counters: Counters,
    ) -> None:
        """``save_schedule`` writes what the schedule holds in memory."""
        self._collection = collection
        self._budget = budget
        self._save_schedule = save_schedule
        self._responses = responses
        self._versions = versions
        self._announcements = announcements
        self._archive = archive
        self._frontier = frontier
        self._counters = counters

    @property
    def released(self) -> int:
        """The number of pages that are queued in the frontier or in flight."""
        return self._collection.released

    def prepare(self, now: float, *, harvest_over: bool) -> float:
        """Queue the pages to visit next; return when the next download may begin."""
        collection, budget = self._collection, self._budget
        collection.catch_up()
        if harvest_over and not budget.is_rationed:
            budget.start_rationing()
        pages = len(collection)
        at = budget.available_at(pages, now)
        if at > now:
            return at
        collection.refresh(now)
        while self._may_release(pages) and budget.next_revisit_at(pages, now) <= now:
            if not collection.release(now):
                break
            budget.count_revisit(pages, now)
        return now

    def next_release_at(self, now: float) -> float | None:
        """Return when the next page may be queued; None if enough are queued, or all."""
        pages = len(self._collection)
        release_at = self._collection.next_release_at()
        if release_at is None or not self._may_release(pages):
            return None
        return max(
            release_at,
            self._budget.next_revisit_at(pages, now),
            self._budget.available_at(pages, now),
        )

    def _may_release(self, pages: int) -> bool:
        most = max(_MIN_RELEASED, self._budget.pages_per_s(pages) * _MAX_RELEASED_S)
        return self._collection.released < most

    def count_download(self, now: float) -> None:
        """Count a page that is requested, of the collection or new."""
        self._budget.count_page(len(self._collection), now)

    def save(self) -> None:
        """Write the state held in memory into the open transaction."""
        self._budget.save()
        self._save_schedule()

    def conditional_headers(self, url: str, now: float) -> Mapping[str, str]:
        """Return the headers that make the request for a page conditional."""
        record = self._collection.records.load_url(url).record
        return self._versions.conditional_headers(url, record, now)

    def on_settled(self, event: SettledEvent) -> None:
        """Add a page to the collection after its first fetch."""
        settled, outcome = event.settled, event.outcome
        row = self._archive.row(self._counters.settled - 1)
        if row is None or row.url != settled.link.url or not is_visited_again(row):
            return
        known = first_record(row)
        if not isinstance(outcome, Fetched) or settled.page is None:
            self._collection.add(known)
            return
        # One change is expected to bring one link like those that the page has; one of a sitemap
        # or feed, a relevant page.
        is_feed = settled.outcome == "feed"
        scores = [1.0] if is_feed else [found.score for found in settled.scored.values()]
        record = known.record
        record.new_relevance = fmean(scores) if scores else 0.0
        blocks = None if is_feed else settled.blocks or ()
        self._versions.first_version(outcome, settled.page, blocks, record)
        if is_feed:
            self._read_signals(outcome, event.now)
        self._collection.add(known)

    def settle(
        self, link: QueuedLink, outcome: Outcome, now: float, parsed: ParsedPage | Failed | None
    ) -> SettledFetch:
        """Process the outcome of a revisit; the result has a page if a new version came."""
        known = self._collection.records.load_url(link.url)
        link = _as_found(link, known.row)
        if isinstance(outcome, Fetched):
            self._counters.bytes += len(outcome.body)
            self._budget.count_bytes(len(outcome.body), now)
        finding = self._find(link, known, outcome, now, parsed)
        self._versions.forget_request(link.url)
        self._counters.count_revisit(finding.result)
        visit = VisitRow(
            page=known.row.seq,
            url=known.row.url,
            at=now,
            previous_at=known.history.seen_at,
            result=finding.result,
            predicted=self._collection.change_probability(known.row.seq, now),
            status=outcome.status,
            change=finding.change,
            bytes=len(outcome.body) if isinstance(outcome, Fetched) else 0,
        )
        known.record.tries += 1
        if finding.classified is not None and finding.result in _NEW_VERSION:
            return self._keep_version(link, known, outcome, finding, visit, now)
        capture = None if finding.classified is None else finding.classified.kept_record
        position = self._archive.record_unchanged(outcome, capture, known.row, now)
        if position is not None:
            visit = replace(visit, warc_file=position.file, warc_offset=position.offset)
        if finding.classified is not None and finding.result in _SAME_VERSION:
            # The same text may have other links: a menu, a list of pictures.
            new = self._new_links(finding.classified)
            visit = replace(visit, new_links=len(new))
            self._responses.enqueue_links(link, finding.classified, now)
            finding = dataclass_replace(finding, brings_links=sum(new) >= _MIN_NEW_RELEVANCE)
        self._collection.records.append_visit(visit)
        self._update(known, finding, visit, now)
        return SettledFetch(link, "revisited", failure=_failure_of(outcome))

    def _find(
        self,
        link: QueuedLink,
        known: KnownPage,
        outcome: Outcome,
        now: float,
        parsed: ParsedPage | Failed | None,
    ) -> _Finding:
        """Compare an outcome with the stored version, and learn what it shows of the host."""
        record, was_gone = known.record, known.history.gone_at is not None
        classified: ClassifiedPage | None = None
        comparison: Comparison | None = None
        if isinstance(outcome, NotModified):
            if not self._versions.confirm(outcome, record):
                # It answers 304 to validators of no version: the page may have changed.
                self._collection.visit_site_soon(known.row.host)
                return _Finding(VisitResult.FAILED)
        elif isinstance(outcome, Fetched):
            read = self._responses.classify_version(link, outcome, now, parsed)
            if isinstance(read, Failed):
                outcome = read
            else:
                classified = read
                blocks = None if read.feed else read.blocks or ()
                comparison = self._versions.compare(
                    outcome, read.page, blocks, record, title_before=known.row.title
                )
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.ROBOTS:
            return _Finding(VisitResult.EXCLUDED)
        if comparison is not None and comparison.change is None:
            record.absence = PRESENT
            result = VisitResult.REAPPEARED if was_gone else VisitResult.UNKNOWN
            return _Finding(result, classified=classified)
        change = None if comparison is None else comparison.change
        is_soft_404 = comparison is not None and comparison.is_soft_404
        if isinstance(outcome, Redirected):
            is_soft_404 = redirects_to_missing_page(outcome, None)
        fate = decide_fate(outcome, change, record.absence, now, is_soft_404=is_soft_404)
        record.absence = fate.absence
        if isinstance(outcome, Redirected) and not is_soft_404:
            self._responses.follow_redirect(link, outcome, now)
        result = fate.kind
        if result is VisitResult.REAPPEARED and not was_gone:  # it was missing for a while
            result = VisitResult.NOT_MODIFIED if change is None else VisitResult(change.kind)
        modified_at = None
        if isinstance(outcome, Fetched):
            modified_at = changed_at(outcome, known.history.seen_at)
        return _Finding(result, fate.change, classified, modified_at)

    def _keep_version(
        self,
        link: QueuedLink,
        known: KnownPage,
        outcome: Outcome,
        finding: _Finding,
        visit: VisitRow,
        now: float,
    ) -> SettledFetch:
        """Store a new version of a page and queue its new links."""
        classified = finding.classified
        assert classified is not None and isinstance(outcome, Fetched)
        new = self._new_links(classified)
        gain = sum(new)
        if classified.feed:
            gain += self._read_signals(outcome, now)
        if known.history.first_version is None:
            known.history.first_version = _first_version(known.row)
        row = self._responses.keep_version(known.row, outcome, classified)
        visit = replace(
            visit,
            relevance=row.relevance,
            on_topic=row.on_topic,
            new_links=len(new),
            warc_file=row.warc_file,
            warc_offset=row.warc_offset,
        )
        self._collection.records.append_visit(visit)
        known = KnownPage(row, known.history, known.record)
        history, record = known.history, known.record
        history.versions += finding.result is not VisitResult.UNKNOWN
        record.new_relevance += (gain - record.new_relevance) / (history.changes + 2)
        self._update(known, finding, visit, now)
        self._responses.enqueue_links(link, classified, now)
        return SettledFetch(
            link,
            "revisited",
            page=classified.page,
            classification=classified.classification,
            is_noindex=classified.is_noindex,
            scored=classified.scored,
            words=classified.words,
        )

    def _update(self, known: KnownPage, finding: _Finding, visit: VisitRow, now: float) -> None:
        """Update the page's history and schedule the next visit."""
        history, record, result = known.history, known.record, finding.result
        if result in _RETRY_S:
            wait_s = _RETRY_S[result]
            if result is VisitResult.FAILED:
                record.failures += 1
                wait_s *= 2.0 ** min(record.failures, 10)
            self._collection.postpone(known, now + wait_s)
            return
        if result is VisitResult.UNKNOWN:
            record.failures = 0
            history.seen_at = now
            self._collection.restart(known, now)
            return
        previous_at = history.seen_at
        is_gone, was_gone = result in _ENDS, history.gone_at is not None
        changed = finding.brings_links or (result in _CHANGES and not (is_gone and was_gone))
        record.failures = 0
        history.seen_at = now
        history.visits += 1
        history.changes += changed
        if changed:
            history.changed_at = now
        if is_gone != was_gone:
            history.gone_at = now if is_gone else None
        self._announcements.learn(known, previous_at, now, changed=changed, prior=visit.predicted)
        self._collection.record_visit(
            known, previous_at, now, changed=changed, changed_at=finding.changed_at
        )

    def _read_signals(self, fetched: Fetched, now: float) -> float:
        offset_s = self._versions.clock_offset_s(fetched.url)
        return self._announcements.read(fetched, offset_s, now)

    def _new_links(self, classified: ClassifiedPage) -> Sequence[float]:
        """Return the scores of a page's links that were not found before."""
        links = [(host_of(url), link_key(url)) for url in classified.scored]
        waiting = self._frontier.lookup_links(links).waiting
        return [
            found.score
            for (_, key), found in zip(links, classified.scored.values(), strict=True)
            if key not in waiting
        ]


@dataclass(frozen=True, slots=True)
class _Finding:
    """What a revisit found; ``change`` is the size, ``changed_at`` when the host says it was.

    ``brings_links``: an unchanged page has new links, which count as a change.
    """

    result: VisitResult
    change: float | None = None
    classified: ClassifiedPage | None = None
    changed_at: float | None = None
    brings_links: bool = False


def _first_version(row: PageRow) -> FirstVersion:
    return FirstVersion(row.relevance, row.on_topic, row.bytes, row.warc_file, row.warc_offset)


def _as_found(link: QueuedLink, row: PageRow) -> QueuedLink:
    """The link as it was when the page was first fetched."""
    return replace(link, score=row.score, anchor=row.anchor, features=tuple(row.features.values()))


def _failure_of(outcome: Outcome) -> str:
    return str(outcome.kind) if isinstance(outcome, Failed) else ""
