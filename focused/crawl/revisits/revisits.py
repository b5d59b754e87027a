"""Revisits of a continuous crawl: what a response means for the page, and what is stored of it.

:class:`RevisitProcessor` makes the conditional request, compares the response with the stored
version, stores the visit and the new version, schedules the next visit and queues new links. When a
page is fetched for the first time, it adds it to the collection.

The order matters as for new pages: the probability that the page changed is computed before the
response is compared; the visit is stored before the page's new links enter the frontier.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from msgspec import structs

from focused.archive.archive import Archive, PageRow
from focused.archive.page_history import ENDS, NEWS, FirstVersion, VisitResult, VisitRow
from focused.crawl.classified_page import ClassifiedPage
from focused.crawl.crawl_stats import Counters
from focused.crawl.leases import Lease
from focused.crawl.listeners import SettledEvent
from focused.crawl.page_parser import EarlyResult, ParsedPage
from focused.crawl.purposes import HostAccess
from focused.crawl.responses import ResponseProcessor
from focused.crawl.revisits.announcements import Announcements
from focused.crawl.revisits.change_detection import ContentChange
from focused.crawl.revisits.collection import (
    REVISIT,
    Collection,
    KnownPage,
    first_record,
    is_visited_again,
)
from focused.crawl.revisits.page_fate import PRESENT, decide_fate, redirects_to_missing_page
from focused.crawl.revisits.validators import modification_time
from focused.crawl.revisits.versions import BLOCKS, VersionChecker
from focused.crawl.steps import SettledFetch
from focused.durations import DAY_S, HOUR_S
from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink
from focused.revisit.policy import Visit
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected
from focused.web.robots.robots_rules import RobotsFile

_NEW_VERSION = frozenset({VisitResult.CHANGED, VisitResult.REAPPEARED, VisitResult.UNKNOWN})
_SAME_VERSION = frozenset({VisitResult.IDENTICAL, VisitResult.COSMETIC})
_MAY_ANNOUNCE = _NEW_VERSION | {VisitResult.COSMETIC}
"""The dates of a listing are a small part of its text."""
_MIN_NEW_RELEVANCE = 0.1
_RETRY_S = {
    VisitResult.MISSING: 3 * DAY_S,
    VisitResult.REDIRECTED: DAY_S,
    VisitResult.FAILED: HOUR_S,
    VisitResult.EXCLUDED: 30 * DAY_S,
}
"""When to visit again after results that don't tell whether the page changed."""
_BACKS_OFF = frozenset({VisitResult.REDIRECTED, VisitResult.FAILED})
_MAX_RETRY_S = 30 * DAY_S
"""The waiting time doubles with each of these results in a row, up to this time."""


@dataclass(frozen=True, slots=True)
class DetectedChange:
    """What a revisit found; ``size`` is the share of content that changed.

    ``classified`` is the fetched page, ``changed_at`` when it changed by its host's account.
    ``redirect`` is to be followed.
    """

    result: VisitResult
    size: float | None = None
    classified: ClassifiedPage | None = None
    changed_at: float | None = None
    redirect: Redirected | None = None


class RevisitProcessor:
    """Fetches pages of the collection again; see :class:`focused.crawl.purposes.RequestHandler`.

    Stores visits and new versions, schedules, queues links; the caller commits. As a settled-page
    listener it adds pages to the collection.
    """

    def __init__(
        self,
        hosts: HostAccess,
        frontier: DiskFrontier,
        collection: Collection,
        versions: VersionChecker,
        announcements: Announcements,
        responses: ResponseProcessor,
        archive: Archive,
        counters: Counters,
    ) -> None:
        self._hosts = hosts
        self._frontier = frontier
        self._collection = collection
        self._versions = versions
        self._announcements = announcements
        self._responses = responses
        self._archive = archive
        self._counters = counters

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
        if settled.classification is not None and not is_feed:
            record.guiding_relevance = settled.classification.untempered
        blocks = None if is_feed else settled.findings[BLOCKS]
        self._versions.compare(outcome, settled.page, blocks, record)
        # A list is known before it enters the schedule.
        self._announcements.read(outcome, row.seq, event.now)
        if not is_feed and row.on_topic:
            self._announcements.find_feed(settled.page, event.now)
        self._collection.add(known)

    def prepare(self, offer: Offer, now: float) -> Lease | None:
        """Lease the page, or a page that cannot exist; None if robots.txt forbids it by now.

        The host's answer to a URL that cannot exist is compared with its pages: soft 404s look the
        same.
        """
        url, host, policy = offer.link.url, offer.host, self._hosts.policy
        first = self._hosts.robots_first(offer, now)
        if first is not None:
            return first
        if not policy.robots_cache.allows(host, url):
            self._settle_page(offer.link, Failed(url, FailureKind.ROBOTS), now, None)
            self._end(offer, host.pace, now)
            return None
        missing = self._versions.missing_pages.url_to_request(url, now)
        if missing is not None and policy.robots_cache.allows(host, missing):
            return Lease(offer, REVISIT, missing)
        known = self._collection.records.load_url(url)
        original = known.row.duplicate_of
        if original is not None and self._responses.duplicates.is_vacant(original):
            # The page takes the place of its original: its text is needed, changed or not.
            return Lease(offer, REVISIT, url, is_page=True)
        headers = self._versions.conditional_headers(url, known.record, now)
        return Lease(offer, REVISIT, url, headers=headers, is_page=True)

    def settle(
        self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult
    ) -> SettledFetch | None:
        """Process the outcome; after a page that cannot exist the offered link stays queued."""
        assert not isinstance(parsed, RobotsFile)
        offer = lease.offer
        if not lease.is_page:
            self._settle_missing_page(offer.link, outcome, now, parsed)
            pace = self._hosts.pace_after(offer, lease.url, outcome, now)
            self._frontier.put_back(offer, pace, now)
            return None
        settled = self._settle_page(offer.link, outcome, now, parsed)
        self._end(offer, self._hosts.pace_after(offer, lease.url, outcome, now), now)
        return settled

    def _end(self, offer: Offer, pace: HostPace, now: float) -> None:
        self._frontier.settle(offer, pace, now)
        self._frontier.forget(offer.host.name, offer.link.key)

    def _settle_missing_page(
        self, link: QueuedLink, outcome: Outcome, now: float, parsed: ParsedPage | Failed | None
    ) -> None:
        """Process the answer to the request for a URL that cannot exist; it is not archived."""
        self._counters.count("missing_pages_requested")
        page = blocks = None
        if isinstance(outcome, Fetched):
            self._counters.bytes += len(outcome.body)
            read = self._responses.parse(link, outcome, parsed)
            if isinstance(read, ParsedPage):
                page, blocks = read.page, read.findings[BLOCKS]
        self._versions.record_missing_page(outcome, page, blocks, now)

    def _settle_page(
        self, link: QueuedLink, outcome: Outcome, now: float, parsed: ParsedPage | Failed | None
    ) -> SettledFetch:
        """Process the outcome of a revisit; the result has a page if a new version came."""
        known = self._collection.records.load_url(link.url)
        link = _as_found(link, known.row)
        if isinstance(outcome, Fetched):
            self._counters.bytes += len(outcome.body)
        detected = self._detect(link, known, outcome, now, parsed)
        self._versions.forget_request(link.url)
        if detected.redirect is not None:
            self._responses.follow(link, detected.redirect.target, now)
        self._counters.count_kind("revisits", detected.result)
        visit = VisitRow(
            page=known.row.seq,
            url=known.row.url,
            at=now,
            previous_at=known.record.seen_at,
            result=detected.result,
            predicted=self._collection.change_probability(known.row.seq, now),
            status=outcome.status,
            change=detected.size,
            bytes=len(outcome.body) if isinstance(outcome, Fetched) else 0,
        )
        known.record.tries += 1
        if isinstance(outcome, Fetched) and detected.result in _MAY_ANNOUNCE:
            self._announcements.read(outcome, known.row.seq, now)
        if _is_kept(detected):
            return self._keep_version(link, known, detected, visit)
        return self._confirm_version(link, known, outcome, detected, visit)

    def _detect(
        self,
        link: QueuedLink,
        known: KnownPage,
        outcome: Outcome,
        now: float,
        parsed: ParsedPage | Failed | None,
    ) -> DetectedChange:
        """Compare an outcome with the stored version, and learn what it shows of the host."""
        record, was_gone = known.record, known.record.gone_at is not None
        classified: ClassifiedPage | None = None
        change: ContentChange | None = None
        if isinstance(outcome, NotModified):
            if not self._versions.confirm(outcome, record):
                # It answers 304 to validators of no version: the page may have changed.
                self._collection.visit_site_soon(known.row.host)
                return DetectedChange(VisitResult.FAILED)
        elif isinstance(outcome, Fetched):
            read = self._responses.classify(link, outcome, now, parsed, earlier=known.row)
            if isinstance(read, Failed):
                outcome = read
            else:
                classified = read
                blocks = None if read.feed else read.parsed.findings[BLOCKS]
                change = self._versions.compare(
                    outcome, read.page, blocks, record, title_before=known.row.title
                )
                if change is None:
                    record.absence = PRESENT
                    result = VisitResult.REAPPEARED if was_gone else VisitResult.UNKNOWN
                    return DetectedChange(result, classified=classified)
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.ROBOTS:
            return DetectedChange(VisitResult.EXCLUDED)
        is_soft_404 = change is not None and change.is_soft_404
        if isinstance(outcome, Redirected):
            missing = self._versions.missing_pages.get(outcome.url)
            is_soft_404 = redirects_to_missing_page(outcome, missing)
        fate = decide_fate(outcome, change, record.absence, now, is_soft_404=is_soft_404)
        record.absence = fate.absence
        result = fate.kind
        if result is VisitResult.REAPPEARED and not was_gone:  # it was missing for a while
            result = VisitResult.NOT_MODIFIED if change is None else change.kind
        modified_at = redirect = None
        if isinstance(outcome, Fetched):
            modified_at = modification_time(
                outcome.headers, known.record.seen_at, outcome.received_at
            )
        elif isinstance(outcome, Redirected) and not is_soft_404:
            redirect = outcome
        return DetectedChange(result, fate.change, classified, modified_at, redirect)

    def _keep_version(
        self,
        link: QueuedLink,
        known: KnownPage,
        detected: DetectedChange,
        visit: VisitRow,
    ) -> SettledFetch:
        """Store a new version of a page and queue its new links."""
        classified, now = detected.classified, visit.at
        assert classified is not None
        new = self._responses.new_link_scores(classified)
        gain = sum(new)
        if known.record.first_version is None:
            known.record.first_version = _first_version(known.row)
        row = self._responses.keep_version(known.row, classified)
        self._collection.replace_row(known.row, row)
        if row.on_topic:
            self._announcements.find_feed(classified.page, now)
        visit = structs.replace(
            visit,
            relevance=row.relevance,
            on_topic=row.on_topic,
            new_links=len(new),
            warc_file=row.warc_file,
            warc_offset=row.warc_offset,
        )
        self._collection.records.append_visit(visit)
        known = KnownPage(row, known.record)
        record = known.record
        record.versions += detected.result in NEWS
        record.new_relevance += (gain - record.new_relevance) / (record.changes + 2)
        record.guiding_relevance = None if classified.feed else classified.classification.untempered
        self._update(known, detected, now)
        self._responses.enqueue_links(link, classified, now)
        return SettledFetch(
            link,
            "revisited",
            page=classified.page,
            classification=classified.classification,
            is_noindex=classified.is_noindex,
            scored=classified.scored,
        )

    def _confirm_version(
        self,
        link: QueuedLink,
        known: KnownPage,
        outcome: Outcome,
        detected: DetectedChange,
        visit: VisitRow,
    ) -> SettledFetch:
        """Store a visit that brought no new version."""
        classified, now, brings_links = detected.classified, visit.at, False
        capture = None if classified is None else classified.kept_record
        position = self._archive.record_unchanged(outcome, capture, known.row, now)
        if position is not None:
            visit = structs.replace(visit, warc_file=position.file, warc_offset=position.offset)
        if classified is not None and detected.result in _SAME_VERSION:
            # The same text may have other links: a menu, a list of pictures.
            new = self._responses.new_link_scores(classified)
            visit = structs.replace(visit, new_links=len(new))
            self._responses.enqueue_links(link, classified, now)
            brings_links = sum(new) >= _MIN_NEW_RELEVANCE
        self._collection.records.append_visit(visit)
        self._update(known, detected, now, brings_links=brings_links)
        return SettledFetch(link, "revisited", failure=_failure_of(outcome))

    def _update(
        self, known: KnownPage, detected: DetectedChange, now: float, *, brings_links: bool = False
    ) -> None:
        """Update the page's record and schedule the next visit.

        ``brings_links``: an unchanged page has new links, which count as a change.
        """
        record, result = known.record, detected.result
        if result in _RETRY_S:
            wait_s = _RETRY_S[result]
            if result in _BACKS_OFF:
                record.failures += 1
                wait_s = min(wait_s * 2.0 ** min(record.failures, 10), _MAX_RETRY_S)
            self._collection.postpone(known, now + wait_s)
            return
        if result is VisitResult.UNKNOWN:
            record.failures = 0
            record.seen_at = now
            self._collection.restart(known, now)
            return
        previous_at = record.seen_at
        is_gone, was_gone = result in ENDS, record.gone_at is not None
        changed = brings_links or (result in NEWS and not (is_gone and was_gone))
        misses, record.failures = record.failures, 0
        record.seen_at = now
        record.visits += 1
        record.changes += changed
        if changed:
            record.changed_at = now
        if is_gone != was_gone:
            record.gone_at = now if is_gone else None
            duplicates = self._responses.duplicates
            (duplicates.vacate if is_gone else duplicates.occupy)(known.row.url)
        if is_gone and was_gone:
            # A page that is still gone has nothing that changes; it may come back.
            record.failures = misses + 1
            wait_s = min(DAY_S * 2.0 ** min(misses, 10), _MAX_RETRY_S)
            self._collection.postpone(known, now + wait_s)
            return
        visit = Visit(known.row.seq, now, previous_at, changed, detected.changed_at)
        self._collection.record_visit(known, visit)


def _is_kept(detected: DetectedChange) -> bool:
    """Whether a visit brought a new version, or the same one of a page that now counts."""
    if detected.classified is None:
        return False
    if detected.result in _NEW_VERSION:
        return True
    content = detected.classified.content  # only that of a duplicate may succeed another page
    succeeds = content is not None and content.succeeds is not None
    return succeeds and detected.result in _SAME_VERSION


def _first_version(row: PageRow) -> FirstVersion:
    return FirstVersion(row.relevance, row.on_topic, row.bytes, row.warc_file, row.warc_offset)


def _as_found(link: QueuedLink, row: PageRow) -> QueuedLink:
    """The link as it was when the page was first fetched."""
    features = tuple(row.features.values())
    return structs.replace(link, score=row.score, anchor=row.anchor, features=features)


def _failure_of(outcome: Outcome) -> str:
    return str(outcome.kind) if isinstance(outcome, Failed) else ""
