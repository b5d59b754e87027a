"""Process the outcome of a fetch: parse, classify, archive, enqueue.

The order matters: the link was scored before its page is classified; the page's row is written
before its links enter the frontier.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from focused.archive.archive import PageRow
from focused.crawl.archive_writer import ArchiveWriter
from focused.crawl.classified_page import ClassifiedPage, PageReviewer
from focused.crawl.crawl_stats import Stage
from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateKind, DuplicateMatch
from focused.crawl.enqueue import HARD_FOCUS, LinkEnqueuer, follows_links
from focused.crawl.hosts.failures import FAILURE_RULES
from focused.crawl.page_parser import ParsedPage, ResponseParser, is_seed_feed
from focused.crawl.steps import SettledFetch
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import PageContext
from focused.topic import Topic
from focused.web.page import (
    Classification,
    Failed,
    FailureKind,
    Fetched,
    NotModified,
    Outcome,
    Redirected,
)
from focused.web.robots.robots_rules import product_token
from focused.web.robots.robots_tags import X_ROBOTS_SEPARATOR, parse_robots_directives
from focused.web.scope_filter import QueryParameterFilter
from focused.web.urls import host_of

if TYPE_CHECKING:
    from focused.crawl.crawl_state import CrawlState

MAX_PAGE_REDIRECTS = 10

logger = logging.getLogger(__name__)


class ResponseProcessor:
    """Turns outcomes into archive rows, counts and queued links; the caller commits."""

    def __init__(
        self,
        topic: Topic,
        state: CrawlState,
        parser: ResponseParser,
        rows: ArchiveWriter,
        enqueuer: LinkEnqueuer,
        duplicates: DuplicateDetector,
        *,
        training_urls: frozenset[str],
        follow_links: bool,
    ) -> None:
        self._topic = topic
        self.parser = parser
        self.duplicates = duplicates
        self.rows = rows
        self._counters = state.counters
        self._enqueuer = enqueuer
        self.reviewers: list[PageReviewer] = []
        """Those of the features that are on."""
        self._recent_pages = (
            0 if topic.budget.min_harvest is None else topic.budget.min_harvest_pages
        )
        self._training_urls = training_urls
        self._follow_links = follow_links
        self._stages = state.stages
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
        classified = self.classify(link, outcome, now, parsed)
        if isinstance(classified, Failed):
            return self._failed(link, classified, now)
        with self._stages(Stage.ARCHIVING):
            self._keep(link, classified, now)
        with self._stages(Stage.ENQUEUEING):
            self.enqueue_links(queued, classified, now)
        return SettledFetch(
            link,
            "feed" if classified.feed else "fetched",
            page=classified.page,
            classification=classified.classification,
            duplicate_of=classified.duplicate_of,
            exact_duplicate_of=classified.exact_duplicate_of,
            is_noindex=classified.is_noindex,
            scored=classified.scored,
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

    def keep_version(self, row: PageRow, classified: ClassifiedPage) -> PageRow:
        """Store a new version of a page in place of the earlier one; return its row."""
        if classified.content is not None and not classified.is_noindex:
            if row.duplicate_of is None:
                self.duplicates.keep_version(classified.page, classified.content)
            else:
                self.duplicates.keep(classified.page, classified.content)
        self._counters.links_over_limit += classified.page.links_over_limit
        return self.rows.new_version(row, classified)

    def trust_sites(self, urls: Iterable[str]) -> None:
        """Tell reviewers that a person chose these sites."""
        for reviewer in self.reviewers:
            reviewer.trust(urls)

    def new_link_scores(self, classified: ClassifiedPage) -> Sequence[float]:
        """Return the scores of a page's links that were not found before."""
        return self._enqueuer.new_link_scores(classified.scored)

    def queue_feed(self, url: str, now: float) -> bool:
        """Queue the feed of a page, if the crawl follows links; True when it is new."""
        return self._follow_links and self._enqueuer.offer_feed(url, now)

    def classify(
        self,
        link: QueuedLink,
        fetched: Fetched,
        now: float,
        parsed: ParsedPage | Failed | None,
        *,
        earlier: PageRow | None = None,
    ) -> ClassifiedPage | Failed:
        """Parse, deduplicate and score the links; writes nothing but a claim of the content.

        A page with an ``earlier`` version is compared with no other, unless that was a duplicate.
        """
        try:
            found = self.parser.read(link, fetched, parsed)
            if isinstance(found, Failed):
                return found
            feed = is_seed_feed(link, fetched)
            return self._classified(link, fetched, found, now, feed=feed, earlier=earlier)
        except Exception as error:
            return _internal_error(fetched, error)

    def _classified(
        self,
        link: QueuedLink,
        fetched: Fetched,
        found: ParsedPage,
        now: float,
        *,
        feed: bool,
        earlier: PageRow | None,
    ) -> ClassifiedPage:
        page = found.page
        if link.parent is None:  # a spider's own request, or a seed that was added later
            self.trust_sites((link.url,))
        classification = found.classification if feed else self._review(found)
        asked_to = self._topic.politeness.noindex == "leave-out" and page.is_noindex_at(now)
        is_noindex = asked_to and not feed
        with self._stages(Stage.DEDUPLICATING):
            content = None
            if earlier is not None and earlier.duplicate_of is None:
                content = DuplicateMatch(found.content)
            elif not feed:
                content = self.duplicates.find_duplicate(found, is_kept=not is_noindex)
        is_first = earlier is None and classification.on_topic
        if content is not None and content.of is not None and is_first:
            content = self._decide_original(page.url, content)
        # Links of a feed have the depth of the feed itself.
        depth = link.depth if feed else link.depth + 1
        visit = PageContext(
            page, classification, link.depth, link.score, link.features, found.static_features
        )
        new = content is None or content.of is None
        with self._stages(Stage.SCORING):
            scored = self._enqueuer.score(visit, depth) if new and self._leads_on(visit) else {}
        return ClassifiedPage(
            fetched, found, classification, feed, content, depth, is_noindex, scored
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
        followed = follows_links(
            self._topic.training,
            visit.classification,
            visit.depth,
            lambda: self.parser.likeliest_category(visit.page),
        )
        if not followed:
            self._counters.count_out_of_scope(HARD_FOCUS, len(visit.page.links))
        return followed

    def _keep(self, link: QueuedLink, classified: ClassifiedPage, now: float) -> None:
        training = link.url in self._training_urls
        page = classified.page
        number = self._counters.settled
        for reviewer in self.reviewers:
            reviewer.learn(classified, number, is_harvest=classified.counts and not training)
        if classified.content is not None and not classified.is_noindex:
            self.duplicates.keep(page, classified.content)
        self._count_page(classified, training)
        self.rows.fetched(link, classified, now, training=training)

    def enqueue_links(self, link: QueuedLink, classified: ClassifiedPage, now: float) -> None:
        """Queue the links of a page, if the crawl follows links."""
        if not self._follow_links:
            return
        page = classified.page
        if classified.duplicate_of is None:
            hops = link.hops + 1 if classified.feed else 0
            self._enqueuer.queue(link, classified.scored, classified.depth, now, hops)
        # Also for duplicates: stubs with the same few words refresh to different pages. Bounded
        # like redirects, because pages that refresh to ever new pages are a trap.
        stays = page.nofollow and self._topic.politeness.nofollow
        if page.refresh is not None and not stays and link.hops < MAX_PAGE_REDIRECTS:
            self.follow(link, page.refresh, now)

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
        refusal = self.follow(queued, outcome.target, now)
        return SettledFetch(link, "redirected", redirect_refusal=refusal or "")

    def follow(self, link: QueuedLink, target: str, now: float) -> str | None:
        """Queue the target of a redirect with the link's features.

        Return why it is not queued, or None.
        """
        target = self._dropped.apply_to_target(target, link.url)
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
        directives = X_ROBOTS_SEPARATOR.join(exchange.response_values("x-robots-tag"))
        tags = parse_robots_directives(
            directives, (), product_token(self._topic.politeness.user_agent)
        )
        ends_at = tags.unavailable_after
        return not tags.noindex and (ends_at is None or now < ends_at)


def _internal_error(fetched: Fetched, error: Exception) -> Failed:
    """Log an error of our own: it makes a failed page and never stops the crawl."""
    logger.exception("%s could not be processed", fetched.url)
    return Failed(fetched.url, FailureKind.INTERNAL_ERROR, fetched.status, repr(error)[:200])
