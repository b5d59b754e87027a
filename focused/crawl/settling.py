"""What becomes of one answer: parse, judge, archive, discover.

The order is the invariant: the link's score was made before; the page is
judged, its row is written, and only then do its links enter the frontier.
"""

from __future__ import annotations

import logging

from focused.crawl.copies import Copies, CopyKind
from focused.crawl.counters import Counters
from focused.crawl.discovery import Discovery
from focused.crawl.failures import RULES
from focused.crawl.focus import HARD_FOCUS, leads_on
from focused.crawl.harvest import Harvest
from focused.crawl.intake import Intake, is_seeds_feed
from focused.crawl.page_rows import PageRows
from focused.crawl.reading import Reading
from focused.crawl.stages import Stage, Stages
from focused.crawl.steps import Settled
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.tables import Tables
from focused.learning.protocols import Visit
from focused.topic import Topic
from focused.web.page import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
)
from focused.web.parameters import DroppedParameters
from focused.web.robots import product_token
from focused.web.robots_tags import HEADER_SEPARATOR, read_tags
from focused.web.url import host_of

MAX_PAGE_REDIRECTS = 10

logger = logging.getLogger(__name__)


class Settling:
    """Turns outcomes into rows, counts and new links; the caller commits."""

    def __init__(
        self,
        topic: Topic,
        intake: Intake,
        tables: Tables,
        rows: PageRows,
        counters: Counters,
        discovery: Discovery,
        *,
        training_urls: frozenset[str],
        follow_links: bool,
        stages: Stages,
    ) -> None:
        self._topic = topic
        self._intake = intake
        self._copies = Copies(tables, near=topic.scope.near_duplicates)
        self._rows = rows
        self._counters = counters
        self._discovery = discovery
        self._training_urls = training_urls
        self._follow_links = follow_links
        self._stages = stages
        self._dropped = DroppedParameters(topic.scope.drop_parameters, topic.scope.keep_parameters)

    def settle(
        self, link: QueuedLink, outcome: Outcome, now: float, reading: Reading | Failed | None
    ) -> Settled:
        """Take in what the fetch of ``link`` brought; ``reading`` is its page, if it was read."""
        if isinstance(outcome, Redirected):
            return self._redirected(link, outcome, now)
        if isinstance(outcome, Failed):
            return self._failed(link, outcome, now)
        self._counters.bytes += len(outcome.body)
        try:
            harvest = self._harvest(link, outcome, now, reading)
        except Exception as error:
            # A page that our own code cannot digest is a failed page, never the crawl's end.
            logger.exception("%s could not be judged", link.url)
            harvest = Failed(link.url, FailureKind.UNDIGESTED, outcome.status, repr(error)[:200])
        if isinstance(harvest, Failed):
            return self._failed(link, harvest, now)
        with self._stages(Stage.ARCHIVING):
            self._keep(link, outcome, harvest, now)
        if self._follow_links:
            with self._stages(Stage.QUEUEING):
                self._queue_onward(link, harvest, now)
        return Settled(
            link,
            "feed" if harvest.feed else "fetched",
            page=harvest.page,
            judgement=harvest.judgement,
            duplicate_of=harvest.duplicate_of,
            same_as=harvest.same_as,
            left_out=harvest.left_out,
            scored=harvest.scored,
            words=harvest.words,
        )

    def exclude(self, link: QueuedLink, kind: FailureKind, now: float, *, has_row: bool) -> Settled:
        """Settle a link that may not be asked for; no request was made.

        It is counted, and with ``has_row`` archived.
        """
        if kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        if has_row:
            return self._give_up(link, Failed(link.url, kind), now)
        self._counters.count_failure(kind)
        return Settled(link, "failed", failure=kind)

    def _harvest(
        self, link: QueuedLink, fetched: Fetched, now: float, reading: Reading | Failed | None
    ) -> Harvest | Failed:
        """Read, look up and score; changes nothing that a crash would have to undo."""
        read = self._intake.read(link, fetched, reading)
        if isinstance(read, Failed):
            return read
        page, judgement = read.page, read.judgement
        feed = is_seeds_feed(link, fetched)
        with self._stages(Stage.LIKENESS):
            content = None if feed else self._copies.look_up(read)
        # What a feed lists is where the crawl starts: as near as the feed itself.
        depth = link.depth if feed else link.depth + 1
        visit = Visit(page, judgement, link.depth, link.score, link.evidence, read.told)
        new = content is None or content.of is None
        with self._stages(Stage.SCORING):
            scored = self._discovery.score(visit, depth) if new and self._leads_on(visit) else {}
        asked_to = self._topic.politeness.noindex == "leave-out" and page.left_out_at(now)
        left_out = asked_to and not feed
        return Harvest(
            page, judgement, feed, content, depth, left_out, scored, read.words, read.record
        )

    def _leads_on(self, visit: Visit) -> bool:
        followed = leads_on(self._topic.training, visit.judgement, visit.depth)
        if not followed:
            self._counters.count_out_of_scope(HARD_FOCUS, len(visit.page.links))
        return followed

    def _keep(self, link: QueuedLink, fetched: Fetched, harvest: Harvest, now: float) -> None:
        training = link.url in self._training_urls
        if harvest.content is not None and not harvest.left_out:
            self._copies.keep(harvest.page, harvest.content)
        self._count_page(harvest, training)
        self._rows.fetched(link, fetched, harvest, now, training=training)

    def _queue_onward(self, link: QueuedLink, harvest: Harvest, now: float) -> None:
        page = harvest.page
        if harvest.duplicate_of is None:
            hops = link.hops + 1 if harvest.feed else 0
            self._discovery.queue(link, harvest.scored, harvest.depth, now, hops)
        # Stubs of the same few words point to different pages. As bounded as redirects are:
        # pages that refresh to ever new pages are a trap.
        stays = page.nofollow and self._topic.politeness.nofollow
        if page.refresh is not None and not stays and link.hops < MAX_PAGE_REDIRECTS:
            self._follow(link, self._dropped.of_target(page.refresh, link.url), now)

    def _count_page(self, harvest: Harvest, training: bool) -> None:
        counters = self._counters
        counters.fetched += 1
        counters.duplicates += harvest.duplicate_of is not None
        near = harvest.content is not None and harvest.content.kind is CopyKind.NEAR
        counters.near_duplicates += near
        counters.training += training
        counters.noindex += harvest.left_out
        counters.links_cut += harvest.page.links_cut
        if not training and not harvest.feed and not harvest.left_out:
            counters.count_judged(harvest.counts)

    def _redirected(self, link: QueuedLink, outcome: Redirected, now: float) -> Settled:
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
        target = self._dropped.of_target(outcome.target, link.url)
        in_warc = self._may_be_archived(outcome, now)
        self._rows.redirected(link, outcome, target, now, in_warc=in_warc)
        refusal = self._follow(link, target, now)
        return Settled(link, "redirected", target_refused=refusal or "")

    def _follow(self, link: QueuedLink, target: str, now: float) -> str | None:
        """Queue where a redirect points, with what was known of the link that led to it.

        Return why it is not queued, None when it is, or was.
        """
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
            trail=link.trail,
        )
        return self._discovery.follow(moved, now)

    def _failed(self, link: QueuedLink, failed: Failed, now: float) -> Settled:
        if RULES[failed.kind].again and link.tries + 1 < self._topic.politeness.max_tries:
            self._counters.retries += 1
            if self._may_be_archived(failed, now):
                self._rows.retried(failed, now)
            return Settled(link, "failed", failure=failed.kind, will_retry=True)
        if failed.kind is FailureKind.ROBOTS:
            self._counters.robots_excluded += 1
        return self._give_up(link, failed, now)

    def _give_up(self, link: QueuedLink, failed: Failed, now: float) -> Settled:
        self._counters.count_failure(failed.kind)
        self._rows.failed(link, failed, now, in_warc=self._may_be_archived(failed, now))
        return Settled(link, "failed", failure=failed.kind)

    def _may_be_archived(self, outcome: Redirected | Failed, now: float) -> bool:
        """Whether the WARC may hold the response; False where its X-Robots-Tag asks otherwise."""
        exchange = outcome.exchange
        if exchange is None or self._topic.politeness.noindex == "keep":
            return exchange is not None
        asked = HEADER_SEPARATOR.join(exchange.response_values("x-robots-tag"))
        tags = read_tags(asked, (), product_token(self._topic.politeness.user_agent))
        ends_at = tags.unavailable_after
        return not tags.noindex and (ends_at is None or now < ends_at)
