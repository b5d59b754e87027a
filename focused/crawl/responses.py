"""Process the outcome of a fetch: parse, classify, archive, enqueue.

The order matters: the link was scored before its page is classified; the page's row is written
before its links enter the frontier.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from msgspec import structs

from focused.archive.archive import Archive, LinkRow, PageRow
from focused.classifier.topic_classifier import SwappableClassifier
from focused.crawl.crawl_stats import Counters, Stage, StageTimes
from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateKind, DuplicateMatch
from focused.crawl.enqueue import HARD_FOCUS, LinkEnqueuer, archive_links, follows_links
from focused.crawl.hosts.failures import FAILURE_RULES
from focused.crawl.page_parser import ParsedPage, ResponseParser, is_seed_feed
from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink, SettledFetch
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import PageContext
from focused.text.documents import HashedPage
from focused.topic import Topic
from focused.web.decoding import media_type_of
from focused.web.page import (
    Classification,
    Failed,
    FailureKind,
    Fetched,
    NotModified,
    Outcome,
    Page,
    Redirected,
)
from focused.web.robots.robots_rules import product_token
from focused.web.robots.robots_tags import X_ROBOTS_SEPARATOR, parse_robots_directives
from focused.web.scope_filter import QueryParameterFilter
from focused.web.urls import host_of
from focused.web.warc_writer import WarcCapture

MAX_PAGE_REDIRECTS = 10

logger = logging.getLogger(__name__)


class ResponseProcessor:
    """Turns outcomes into archive rows, counts and queued links; the caller commits."""

    def __init__(
        self,
        topic: Topic,
        parser: ResponseParser,
        rows: ArchiveWriter,
        counters: Counters,
        enqueuer: LinkEnqueuer,
        duplicates: DuplicateDetector,
        *,
        training_urls: frozenset[str],
        follow_links: bool,
        stages: StageTimes,
    ) -> None:
        self._topic = topic
        self.parser = parser
        self.duplicates = duplicates
        self.rows = rows
        self._counters = counters
        self._enqueuer = enqueuer
        self.reviewers: list[PageReviewer] = []
        """Those of the features that are on."""
        self._recent_pages = (
            0 if topic.budget.min_harvest is None else topic.budget.min_harvest_pages
        )
        self._training_urls = training_urls
        self._follow_links = follow_links
        self._stages = stages
        self._dropped = QueryParameterFilter(
            topic.scope.drop_parameters, topic.scope.keep_parameters
        )

    def settle(
        self, link: QueuedLink, outcome: Outcome, now: float, parsed: ParsedPage | Failed | None
    ) -> SettledFetch:
        """Process the outcome of fetching ``link``; ``parsed`` is its page if parsed already."""
        if isinstance(outcome, Redirected):
            return self._redirected(link, outcome, now)
        # Targets of redirects are queued by the link's own score.
        queued, link = link, self.rows.with_calibrated_score(link)
        if isinstance(outcome, NotModified):
            # A spider's own conditional request: the crawl has no version of the page.
            failed = outcome.as_failure("not modified, but no version is stored")
            return self._failed(link, failed, now)
        if isinstance(outcome, Failed):
            return self._failed(link, outcome, now)
        self._counters.bytes += len(outcome.body)
        classified = self._classify_or_fail(link, outcome, now, parsed, is_known=False)
        if isinstance(classified, Failed):
            return self._failed(link, classified, now)
        with self._stages(Stage.ARCHIVING):
            self._keep(link, outcome, classified, now)
        if self._follow_links:
            with self._stages(Stage.ENQUEUEING):
                self._enqueue_links(queued, classified, now)
        return SettledFetch(
            link,
            "feed" if classified.feed else "fetched",
            page=classified.page,
            classification=classified.classification,
            duplicate_of=classified.duplicate_of,
            exact_duplicate_of=classified.exact_duplicate_of,
            is_noindex=classified.is_noindex,
            scored=classified.scored,
            words=classified.words,
            findings=classified.findings,
            rendered=outcome.rendered,
        )

    def exclude(
        self, link: QueuedLink, kind: FailureKind, now: float, *, has_row: bool
    ) -> SettledFetch:
        """Settle a link without a request: count it, and with ``has_row`` archive it."""
        if kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        if has_row:
            link = self.rows.with_calibrated_score(link)
            return self._give_up(link, Failed(link.url, kind), now)
        self._counters.count_failure(kind)
        return SettledFetch(link, "failed", failure=kind)

    def parse(
        self, link: QueuedLink, fetched: Fetched, parsed: ParsedPage | Failed | None
    ) -> ParsedPage | Failed:
        """Parse a response that is no page of the crawl; writes nothing."""
        try:
            return self.parser.read(link, fetched, parsed)
        except Exception as error:
            return _internal_error(fetched, error)

    def classify_version(
        self, link: QueuedLink, fetched: Fetched, now: float, parsed: ParsedPage | Failed | None
    ) -> ClassifiedPage | Failed:
        """Parse and classify a page that was fetched before; writes nothing."""
        return self._classify_or_fail(link, fetched, now, parsed, is_known=True)

    def keep_version(self, row: PageRow, fetched: Fetched, classified: ClassifiedPage) -> PageRow:
        """Store a new version of a page in place of the earlier one; return its row."""
        if classified.content is not None and not classified.is_noindex:
            self.duplicates.keep_version(classified.page, classified.content)
        self._counters.links_over_limit += classified.page.links_over_limit
        return self.rows.new_version(row, fetched, classified)

    def trust_sites(self, urls: Iterable[str]) -> None:
        """Tell reviewers that a person chose these sites."""
        for reviewer in self.reviewers:
            reviewer.trust(urls)

    def new_link_scores(self, classified: ClassifiedPage) -> Sequence[float]:
        """Return the scores of a page's links that were not found before."""
        return self._enqueuer.new_link_scores(classified.scored)

    def enqueue_links(self, link: QueuedLink, classified: ClassifiedPage, now: float) -> None:
        """Queue the links of a new version, if the crawl follows links."""
        if self._follow_links:
            self._enqueue_links(link, classified, now)

    def queue_feed(self, url: str, now: float) -> bool:
        """Queue the feed of a page, if the crawl follows links; True when it is new."""
        return self._follow_links and self._enqueuer.offer_feed(url, now)

    def follow_redirect(self, link: QueuedLink, outcome: Redirected, now: float) -> str | None:
        """Queue the target of a redirect; return why it is not queued, or None."""
        return self._follow(link, self._dropped.apply_to_target(outcome.target, link.url), now)

    def _classify_or_fail(
        self,
        link: QueuedLink,
        fetched: Fetched,
        now: float,
        parsed: ParsedPage | Failed | None,
        *,
        is_known: bool,
    ) -> ClassifiedPage | Failed:
        try:
            return self._classify(link, fetched, now, parsed, is_known=is_known)
        except Exception as error:
            return _internal_error(fetched, error)

    def _classify(
        self,
        link: QueuedLink,
        fetched: Fetched,
        now: float,
        parsed: ParsedPage | Failed | None,
        *,
        is_known: bool,
    ) -> ClassifiedPage | Failed:
        """Parse, deduplicate and score the links; writes nothing but a claim of the content.

        A page that ``is_known`` is compared with no other.
        """
        page_result = self.parser.read(link, fetched, parsed)
        if isinstance(page_result, Failed):
            return page_result
        page, feed = page_result.page, is_seed_feed(link, fetched)
        if link.parent is None:  # a spider's own request, or a seed that was added later
            self.trust_sites((link.url,))
        classification = page_result.classification if feed else self._review(page_result)
        asked_to = self._topic.politeness.noindex == "leave-out" and page.is_noindex_at(now)
        is_noindex = asked_to and not feed
        with self._stages(Stage.DEDUPLICATING):
            content = None
            if is_known:
                content = DuplicateMatch(page_result.content)
            elif not feed:
                content = self.duplicates.find_duplicate(page_result, is_kept=not is_noindex)
        if content is not None and content.of is not None and classification.on_topic:
            content = self._decide_original(page.url, content)
        # Links of a feed have the depth of the feed itself.
        depth = link.depth if feed else link.depth + 1
        visit = PageContext(
            page, classification, link.depth, link.score, link.features, page_result.static_features
        )
        new = content is None or content.of is None
        with self._stages(Stage.SCORING):
            scored = self._enqueuer.score(visit, depth) if new and self._leads_on(visit) else {}
        return ClassifiedPage(
            page,
            classification,
            feed,
            content,
            depth,
            is_noindex,
            scored,
            page_result.words,
            page_result.record,
            page_result.findings,
            looks_relevant=page_result.classification.on_topic,
        )

    def _review(self, parsed: ParsedPage) -> Classification:
        found = parsed.classification
        for reviewer in self.reviewers:
            found = reviewer.review(parsed, found)
        return found

    def _decide_original(self, url: str, content: DuplicateMatch) -> DuplicateMatch:
        """Return the match of a page on topic, as an original if it is the better one."""
        replaces = any(each.is_original(url, content) for each in self.reviewers)
        return content.as_original() if replaces else content

    def _leads_on(self, visit: PageContext) -> bool:
        followed = follows_links(self._topic.training, visit.classification, visit.depth)
        if not followed:
            self._counters.count_out_of_scope(HARD_FOCUS, len(visit.page.links))
        return followed

    def _keep(
        self, link: QueuedLink, fetched: Fetched, classified: ClassifiedPage, now: float
    ) -> None:
        training = link.url in self._training_urls
        page = classified.page
        number = self._counters.settled
        for reviewer in self.reviewers:
            reviewer.learn(classified, number, is_harvest=classified.counts and not training)
        if classified.content is not None and not classified.is_noindex:
            self.duplicates.keep(page, classified.content)
        self._count_page(classified, training)
        self.rows.fetched(link, fetched, classified, now, training=training)

    def _enqueue_links(self, link: QueuedLink, classified: ClassifiedPage, now: float) -> None:
        page = classified.page
        if classified.duplicate_of is None:
            hops = link.hops + 1 if classified.feed else 0
            self._enqueuer.queue(link, classified.scored, classified.depth, now, hops)
        # Also for duplicates: stubs with the same few words refresh to different pages. Bounded
        # like redirects, because pages that refresh to ever new pages are a trap.
        stays = page.nofollow and self._topic.politeness.nofollow
        if page.refresh is not None and not stays and link.hops < MAX_PAGE_REDIRECTS:
            self._follow(link, self._dropped.apply_to_target(page.refresh, link.url), now)

    def _count_page(self, classified: ClassifiedPage, training: bool) -> None:
        counters = self._counters
        counters.fetched += 1
        counters.duplicates += classified.duplicate_of is not None
        near = classified.content is not None and classified.content.kind is DuplicateKind.NEAR
        counters.near_duplicates += near
        counters.training += training
        counters.noindex += classified.is_noindex
        counters.links_over_limit += classified.page.links_over_limit
        if not training and not classified.feed and not classified.is_noindex:
            counters.count_classified(classified.counts, self._recent_pages)

    def _redirected(self, queued: QueuedLink, outcome: Redirected, now: float) -> SettledFetch:
        link = self.rows.with_calibrated_score(queued)
        if link.hops >= MAX_PAGE_REDIRECTS:
            failed = Failed(
                link.url,
                FailureKind.BAD_REDIRECT,
                outcome.status,
                "too many redirects",
                exchange=outcome.exchange,
            )
            return self._give_up(link, failed, now)
        self._counters.redirected += 1
        target = self._dropped.apply_to_target(outcome.target, link.url)
        in_warc = self._may_be_archived(outcome, now)
        self.rows.redirected(link, outcome, target, now, in_warc=in_warc)
        refusal = self._follow(queued, target, now)
        return SettledFetch(link, "redirected", redirect_refusal=refusal or "")

    def _follow(self, link: QueuedLink, target: str, now: float) -> str | None:
        """Queue the target of a redirect with the link's features.

        Return why it is not queued, or None.
        """
        key = link_key(target)
        if link.payload is not None:
            # A spider's own request keeps its callback across redirects.
            key = link_key(f"{target} {link.key.hex()}")
        moved = QueuedLink(
            key=key,
            url=target,
            host=host_of(target),
            priority=0.0,
            score=link.score,
            depth=link.depth,
            parent=link.url,
            anchor=link.anchor,
            features=link.features,
            found_at=now,
            hops=link.hops + 1,
            payload=link.payload,
            tag_path_key=link.tag_path_key,
        )
        return self._enqueuer.follow(moved, now)

    def _failed(self, link: QueuedLink, failed: Failed, now: float) -> SettledFetch:
        if FAILURE_RULES[failed.kind].again and link.tries + 1 < self._topic.politeness.max_tries:
            self._counters.retries += 1
            if self._may_be_archived(failed, now):
                self.rows.retried(failed, now)
            return SettledFetch(link, "failed", failure=failed.kind, will_retry=True)
        if failed.kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        return self._give_up(link, failed, now)

    def _give_up(self, link: QueuedLink, failed: Failed, now: float) -> SettledFetch:
        self._counters.count_failure(failed.kind)
        self.rows.failed(link, failed, now, in_warc=self._may_be_archived(failed, now))
        return SettledFetch(link, "failed", failure=failed.kind)

    def _may_be_archived(self, outcome: Redirected | Failed, now: float) -> bool:
        """Whether the WARC may hold the response: X-Robots-Tag may forbid it."""
        exchange = outcome.exchange
        if exchange is None or self._topic.politeness.noindex == "keep":
            return exchange is not None
        asked = X_ROBOTS_SEPARATOR.join(exchange.response_values("x-robots-tag"))
        tags = parse_robots_directives(asked, (), product_token(self._topic.politeness.user_agent))
        ends_at = tags.unavailable_after
        return not tags.noindex and (ends_at is None or now < ends_at)


def _internal_error(fetched: Fetched, error: Exception) -> Failed:
    """Log an error of our own: it makes a failed page and never stops the crawl."""
    logger.exception("%s could not be processed", fetched.url)
    return Failed(fetched.url, FailureKind.INTERNAL_ERROR, fetched.status, repr(error)[:200])


@dataclass(frozen=True, slots=True)
class ClassifiedPage:
    """A page after parsing, classification and deduplication.

    ``content`` is None for a ``feed``. ``depth`` is that of the page's links. ``is_noindex``: the
    page asks not to be indexed. ``record`` holds the WARC records, if there is a WARC. ``findings``
    are what features found in the page, by name. ``looks_relevant``: the classifier called the page
    on topic, whatever reviewers say.
    """

    page: Page
    classification: Classification
    feed: bool
    content: DuplicateMatch | None
    depth: int
    is_noindex: bool
    scored: Mapping[str, ScoredLink]
    words: HashedPage | None
    record: WarcCapture | None
    findings: Mapping[str, Any]
    looks_relevant: bool

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
        return None if self.is_noindex else self.record

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


_MAX_TITLE_CHARS = 300


class ArchiveWriter:
    """Writes one archive row per settled link, numbered in that order; the caller commits.

    Scores of links are calibrated for the rows; in the frontier they stay as they are, because
    priorities follow from them.
    """

    def __init__(
        self, archive: Archive, counters: Counters, classifier: SwappableClassifier, policy: Policy
    ) -> None:
        self._archive = archive
        self._counters = counters
        self._classifier = classifier
        self._policy = policy
        self._feature_names = tuple(policy.scorer.feature_names)
        self.columns: list[PageColumn] = []
        """Those of the features that are on."""

    def with_calibrated_score(self, link: QueuedLink) -> QueuedLink:
        """Return the link with its score as it is stored and shown."""
        if not link.features:  # the score of a seed was not predicted
            return link
        (score,) = self._policy.calibrate_scores(np.array([link.score])).tolist()
        return structs.replace(link, score=score)

    def fetched(
        self,
        link: QueuedLink,
        fetched: Fetched,
        classified: ClassifiedPage,
        now: float,
        *,
        training: bool,
    ) -> None:
        """Write a page's or feed's row, its links and its WARC records."""
        page, classification = classified.page, classified.classification
        row = self._row(
            link,
            now,
            outcome=classified.outcome,
            status=fetched.status,
            title="" if classified.is_noindex else page.title[:_MAX_TITLE_CHARS],
            relevance=None if classified.feed else classification.relevance,
            on_topic=classified.counts,
            spam=None if classified.feed else classification.spam,
            language=page.language,
            content_type=media_type_of(fetched.headers),
            bytes=len(fetched.body),
            duplicate_of=classified.duplicate_of,
            duplicate_kind=None if classified.content is None else classified.content.kind,
            points_to=None if page.canonical == link.url else page.canonical,
            training=training,
            elapsed_s=fetched.elapsed_s,
            rendered=fetched.rendered is not None,
        )
        links = self._link_rows(classified)
        self._archive.append(row, links, classified.kept_record)
        self._write_columns(row, classified)

    def replaced(self, number: int, later: str) -> None:
        """Make the row of a harvested page that of a duplicate of a ``later`` page."""
        row = self._archive.row(number)
        if row is None or row.duplicate_of is not None:
            return
        self._archive.amend(
            structs.replace(
                row, on_topic=False, duplicate_of=later, duplicate_kind=DuplicateKind.NEAR
            )
        )
        self._counters.duplicates += 1
        self._counters.on_topic -= row.on_topic

    def reinstated(self, number: int) -> bool:
        """Make the row of a duplicate on topic that of a harvested page; False if it is none."""
        row = self._archive.row(number)
        if row is None or row.duplicate_of is None:
            return False
        self._archive.amend(
            structs.replace(row, on_topic=True, duplicate_of=None, duplicate_kind=None)
        )
        self._counters.duplicates -= 1
        self._counters.on_topic += 1
        return True

    def new_version(self, row: PageRow, fetched: Fetched, classified: ClassifiedPage) -> PageRow:
        """Replace the row of a page, its links, and write the WARC records of the new version."""
        page, classification = classified.page, classified.classification
        is_hidden = classified.is_noindex
        row = structs.replace(
            row,
            outcome=classified.outcome,
            status=fetched.status,
            title="" if is_hidden else page.title[:_MAX_TITLE_CHARS],
            relevance=None if classified.feed else classification.relevance,
            on_topic=classified.counts,
            spam=None if classified.feed else classification.spam,
            language=page.language,
            content_type=media_type_of(fetched.headers),
            bytes=len(fetched.body),
            points_to=None if page.canonical == row.url else page.canonical,
            elapsed_s=fetched.elapsed_s,
            model=self._classifier.name,
            rendered=fetched.rendered is not None,
        )
        links = self._link_rows(classified)
        self._write_columns(row, classified)
        return self._archive.replace(row, links, classified.kept_record)

    def redirected(
        self, link: QueuedLink, outcome: Redirected, target: str, now: float, *, in_warc: bool
    ) -> None:
        """Write the row of a redirect to ``target``."""
        row = self._row(link, now, outcome="redirected", status=outcome.status, points_to=target)
        self._archive.append(row, (), self._archive.capture(outcome, now) if in_warc else None)

    def failed(self, link: QueuedLink, failed: Failed, now: float, *, in_warc: bool) -> None:
        """Write the row of a link that failed for good."""
        row = self._row(
            link,
            now,
            outcome="failed",
            status=failed.status,
            failure=str(failed.kind),
            elapsed_s=failed.elapsed_s,
        )
        self._archive.append(row, (), self._archive.capture(failed, now) if in_warc else None)

    def retried(self, failed: Failed, now: float) -> None:
        """Write the WARC record of a failed try; it has no row."""
        self._archive.record(failed, now)

    def _write_columns(self, row: PageRow, classified: ClassifiedPage) -> None:
        if self.columns:
            self._archive.put_columns(
                row.seq, {each.name: each.value(classified) for each in self.columns}
            )

    def _link_rows(self, classified: ClassifiedPage) -> Sequence[LinkRow]:
        if not self._archive.stores_links:
            return ()
        scored = classified.scored
        with_features = [url for url, found in scored.items() if found.features]
        scores = {url: found.score for url, found in scored.items()}
        calibrated = self._policy.calibrate_scores(np.array([scores[url] for url in with_features]))
        scores.update(zip(with_features, calibrated.tolist(), strict=True))
        return archive_links(classified.page, scores)

    def _row(self, link: QueuedLink, now: float, *, outcome: str, **fields: Any) -> PageRow:
        seq = self._counters.settled
        self._counters.settled += 1
        return PageRow(
            seq=seq,
            url=link.url,
            host=link.host,
            outcome=outcome,
            score=link.score,
            features=dict(zip(self._feature_names, link.features, strict=False)),
            depth=link.depth,
            parent=link.parent,
            anchor=link.anchor,
            found_at=link.found_at,
            fetched_at=now,
            policy=self._policy.name,
            model=self._classifier.name,
            **fields,
        )
