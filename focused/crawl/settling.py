"""What becomes of one answer: parse, judge, archive, discover.

The order is the invariant: the link's score was made before; the page is
judged, its row is written, and only then do its links enter the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from focused.archive import Archive, PageRow
from focused.crawl.counters import Counters
from focused.crawl.discovery import Discovery, link_rows
from focused.crawl.failures import RULES
from focused.crawl.steps import ScoredLink, Settled
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore
from focused.learning.protocols import TopicJudge
from focused.topic import Topic
from focused.web.feeds import is_feed
from focused.web.fingerprint import content_fingerprint
from focused.web.page import (
    Failed,
    FailureKind,
    Fetched,
    Judgement,
    Outcome,
    Page,
    Redirected,
)
from focused.web.parse import parse_page
from focused.web.response import content_type_of
from focused.web.url import host_of

MAX_PAGE_REDIRECTS = 10
_MAX_TITLE_CHARS = 300


class Settling:
    """Turns outcomes into rows, counts and new links; the caller commits."""

    def __init__(
        self,
        topic: Topic,
        judge: TopicJudge,
        feature_names: Sequence[str],
        store: StateStore,
        archive: Archive,
        counters: Counters,
        discovery: Discovery,
        *,
        policy: str,
        training_urls: frozenset[str],
        follow_links: bool,
    ) -> None:
        self._topic = topic
        self._judge = judge
        self._feature_names = tuple(feature_names)
        self._store = store
        self._archive = archive
        self._counters = counters
        self._discovery = discovery
        self._policy = policy
        self._training_urls = training_urls
        self._follow_links = follow_links

    def settle(self, link: QueuedLink, outcome: Outcome, now: float) -> Settled:
        """Take in what the fetch of ``link`` brought."""
        if isinstance(outcome, Redirected):
            return self._redirected(link, outcome, now)
        if isinstance(outcome, Failed):
            return self._failed(link, outcome, now)
        self._counters.bytes += len(outcome.body)
        page = self._page_in(link, outcome)
        if isinstance(page, Failed):
            return self._failed(link, page, now)
        return self._fetched(link, outcome, page, now)

    def exclude(self, link: QueuedLink, kind: FailureKind, now: float) -> Settled:
        """Settle a link that may not be asked for; no request was made."""
        if kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        return self._give_up(link, Failed(link.url, kind), now)

    def _page_in(self, link: QueuedLink, fetched: Fetched) -> Page | Failed:
        scope = self._topic.scope
        if len(fetched.body) > scope.max_page_bytes:
            return Failed(fetched.url, FailureKind.TOO_LARGE, fetched.status)
        media_type = content_type_of(fetched.headers)
        # Feeds and sitemaps are welcome as seeds, and as what those point to.
        seed_feed = link.depth == 0 and is_feed(fetched)
        if media_type and media_type not in scope.content_types and not seed_feed:
            return Failed(fetched.url, FailureKind.WRONG_TYPE, fetched.status, media_type)
        page = parse_page(fetched)
        if isinstance(page, Page) and self._is_foreign(page):
            return Failed(fetched.url, FailureKind.WRONG_LANGUAGE, fetched.status, page.language)
        return page

    def _is_foreign(self, page: Page) -> bool:
        wanted = self._topic.scope.languages
        return bool(wanted and page.language and page.language not in wanted)

    def _fetched(self, link: QueuedLink, fetched: Fetched, page: Page, now: float) -> Settled:
        feed = link.depth == 0 and is_feed(fetched)
        judgement = self._judge.judge(page)
        duplicate_of = None if feed else self._earlier_copy(page)
        training = link.url in self._training_urls
        self._count_page(judgement, feed, duplicate_of is not None, training)
        # What a feed lists is where the crawl starts: as near as the feed itself.
        depth = link.depth if feed else link.depth + 1
        scored: dict[str, ScoredLink] = {}
        if duplicate_of is None:
            scored = self._discovery.score(page, judgement, depth)
        row = self._row(
            link,
            now,
            outcome="feed" if feed else "fetched",
            status=fetched.status,
            title=page.title[:_MAX_TITLE_CHARS],
            relevance=None if feed else judgement.relevance,
            on_topic=judgement.on_topic and not feed and duplicate_of is None,
            language=page.language,
            content_type=content_type_of(fetched.headers),
            bytes=len(fetched.body),
            duplicate_of=duplicate_of,
            training=training,
            elapsed_s=fetched.elapsed_s,
            warc_offset=self._archive.append_response(fetched, now),
        )
        self._archive.append(row, link_rows(page, scored))
        if self._follow_links:
            self._discovery.queue(link, scored, depth, now)
            self._follow_refresh(link, page, now)
        return Settled(
            link,
            row.outcome,
            page=page,
            judgement=judgement,
            duplicate_of=duplicate_of,
            scored=scored,
        )

    def _count_page(
        self, judgement: Judgement, feed: bool, duplicate: bool, training: bool
    ) -> None:
        counters = self._counters
        counters.fetched += 1
        counters.duplicates += duplicate
        counters.training += training
        if not training and not feed:
            counters.count_judged(judgement.on_topic and not duplicate)

    def _earlier_copy(self, page: Page) -> str | None:
        """Return the URL that brought the same content before, or remember this one."""
        key = content_fingerprint(page)
        earlier = self._store.get("content", key)
        if earlier is None:
            self._store.put("content", key, page.url.encode())
            return None
        return earlier.decode()

    def _follow_refresh(self, link: QueuedLink, page: Page, now: float) -> None:
        if page.refresh is not None and not page.nofollow:
            self._follow(link, page.refresh, now)

    def _redirected(self, link: QueuedLink, outcome: Redirected, now: float) -> Settled:
        if link.hops >= MAX_PAGE_REDIRECTS:
            failed = Failed(link.url, FailureKind.BAD_REDIRECT, outcome.status, "too many redirects")
            return self._give_up(link, failed, now)
        self._counters.redirected += 1
        self._archive.append(self._row(link, now, outcome="redirected", status=outcome.status))
        self._follow(link, outcome.target, now)
        return Settled(link, "redirected")

    def _follow(self, link: QueuedLink, target: str, now: float) -> None:
        """Queue where a redirect points, with what was known of the link that led to it."""
        if self._discovery.refuses(target, link.depth) is not None:
            return
        key = link_key(target)
        if link.payload is not None:
            # A spider's own request keeps its callback along the way.
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
            evidence=link.evidence,
            found_at=now,
            hops=link.hops + 1,
            payload=link.payload,
        )
        self._discovery.push(moved, now)

    def _failed(self, link: QueuedLink, failed: Failed, now: float) -> Settled:
        if RULES[failed.kind].again and link.tries + 1 < self._topic.politeness.max_tries:
            self._counters.retries += 1
            return Settled(link, "failed", failure=failed.kind, will_retry=True)
        if failed.kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        return self._give_up(link, failed, now)

    def _give_up(self, link: QueuedLink, failed: Failed, now: float) -> Settled:
        self._counters.count_failure(failed.kind)
        row = self._row(
            link,
            now,
            outcome="failed",
            status=failed.status,
            failure=str(failed.kind),
            elapsed_s=failed.elapsed_s,
        )
        self._archive.append(row)
        return Settled(link, "failed", failure=failed.kind)

    def _row(self, link: QueuedLink, now: float, *, outcome: str, **fields: Any) -> PageRow:
        seq = self._counters.settled
        self._counters.settled += 1
        return PageRow(
            seq=seq,
            url=link.url,
            host=link.host,
            outcome=outcome,
            score=link.score,
            evidence=dict(zip(self._feature_names, link.evidence, strict=False)),
            depth=link.depth,
            parent=link.parent,
            anchor=link.anchor,
            found_at=link.found_at,
            fetched_at=now,
            policy=self._policy,
            **fields,
        )
