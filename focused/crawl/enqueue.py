"""Enqueue links: filter, score in one batch, push.

The scope, nofollow, host and trap filters come first, then the URL-seen test. Settled links are not
scored. A queued link is scored again, because its priority may rise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress

from msgspec.structs import replace

from focused.archive.archive import LinkRow
from focused.crawl.crawl_stats import Counters
from focused.crawl.dedup.mirrors import MirrorFilter
from focused.crawl.hosts.host_policy import HostPolicy
from focused.crawl.policy import MIN_PRIORITY_CHANGE, priority_from_score
from focused.crawl.steps import ScoredLink, SettledFetch
from focused.crawl.traps.trap_filter import TrapFilter
from focused.directory import is_in_category
from focused.frontier.disk_frontier import LinkQueue
from focused.frontier.host import Host
from focused.frontier.queued_link import Ordering, QueuedLink, link_key
from focused.link_scoring.link_features import (
    FEATURE_NAMES,
    adds_information,
    has_enough_inlinks,
    merge_features,
    parent_log_odds,
)
from focused.link_scoring.protocols import (
    LinkScorer,
    OnlineLinkScorer,
    PageContext,
    UpdatedScore,
)
from focused.topic import Topic, Training
from focused.web.decoding import CONTINUATION_PATH
from focused.web.page import Classification, FailureKind, Link, Page
from focused.web.scope_filter import ScopeFilter
from focused.web.urls import host_of

_MAX_ANCHOR_CHARS = 200


class LinkEnqueuer:
    """Scores and queues the links of pages."""

    def __init__(
        self, link_filter: LinkFilter, scorer: LinkScorer, ordering: Ordering, queue: LinkQueue
    ) -> None:
        self.link_filter = link_filter
        self._scorer = scorer
        # Once: isinstance() with a protocol takes tens of microseconds.
        self._learner = scorer if isinstance(scorer, OnlineLinkScorer) else None
        self._learns = self._learner is not None
        self._merges_features = self._learns and scorer.feature_names == FEATURE_NAMES
        self._ordering = ordering
        self._queue = queue

    def score(self, context: PageContext, depth: int) -> dict[str, ScoredLink]:
        """Score the links of a page that may be followed, by URL, in document order.

        ``depth`` is that of the links.
        """
        page = context.page
        allowed, hosts = self.link_filter.allowed(page, depth)
        keys = [link_key(link.url) for link in allowed]
        known = self._queue.lookup_links(list(zip(hosts, keys, strict=True)))
        left = [key not in known.settled for key in keys]
        followed = list(compress(allowed, left))
        if not followed:
            return {}
        if self._learner is not None:
            waiting = [known.waiting.get(key) for key in compress(keys, left)]
            return self._score_informative(self._learner, context, followed, waiting)
        scores = self._scorer.score(context, followed)
        rows = zip(followed, scores.scores.tolist(), scores.features.tolist(), strict=True)
        return {
            link.url: ScoredLink(link, score, tuple(features), rank_score=score)
            for link, score, features in rows
        }

    def _score_informative(
        self,
        scorer: OnlineLinkScorer,
        context: PageContext,
        links: Sequence[Link],
        waiting: Sequence[QueuedLink | None],
    ) -> dict[str, ScoredLink]:
        """Score the links; queued ones to which the page adds no information keep their score."""
        pairs = list(zip(links, waiting, strict=True))
        log_odds = parent_log_odds(context.classification)
        found = {
            link.url: _as_queued(link, other)
            for link, other in pairs
            if other is not None and self._merges_features and not adds_information(log_odds, other)
        }
        informative = [pair for pair in pairs if pair[0].url not in found]
        if informative:
            found |= self._score_with_queued(scorer, context, *zip(*informative, strict=True))
        return {link.url: found[link.url] for link in links}

    def _score_with_queued(
        self,
        scorer: OnlineLinkScorer,
        context: PageContext,
        links: Sequence[Link],
        waiting: Sequence[QueuedLink | None],
    ) -> dict[str, ScoredLink]:
        """Score links by the features of all their in-links, on this page and earlier ones."""
        scores = scorer.score_merged(context, links, waiting)
        return {
            link.url: ScoredLink(
                link,
                merged.score,
                merged.features,
                merged.rank_score,
                merged.tag_path_key,
                None if merged.is_best_inlink else before,
            )
            for link, before, merged in zip(links, waiting, scores, strict=True)
        }

    def new_link_scores(self, scored: Mapping[str, ScoredLink]) -> Sequence[float]:
        """Return the scores of the links that are not queued yet."""
        links = [(host_of(url), link_key(url)) for url in scored]
        waiting = self._queue.lookup_links(links).waiting
        return [
            found.score
            for (_, key), found in zip(links, scored.values(), strict=True)
            if key not in waiting
        ]

    def queue(
        self,
        parent: QueuedLink,
        scored: Mapping[str, ScoredLink],
        depth: int,
        now: float,
        hops: int = 0,
    ) -> None:
        """Push a page's scored links in document order."""
        links = (
            self._queued(parent, url, found, depth, now, hops)
            for url, found in scored.items()
            if not self._is_redundant(found, depth)
        )
        self._queue.push_all(links, now, joined=self._learns)

    def _queued(
        self, parent: QueuedLink, url: str, found: ScoredLink, depth: int, now: float, hops: int
    ) -> QueuedLink:
        before = found.before
        return QueuedLink(
            link_key(url),
            url,
            host_of(url),
            self._ordering(found.rank_score, self._queue.found),
            found.score,
            depth,
            before.parent if before else parent.url,
            before.anchor if before else found.link.anchor[:_MAX_ANCHOR_CHARS],
            found.features,
            now,
            # The rest of a list is no deeper nested than its beginning.
            hops=parent.hops if hops and found.link.tag_path == CONTINUATION_PATH else hops,
            tag_path_key=found.tag_path_key,
        )

    def _is_redundant(self, found: ScoredLink, depth: int) -> bool:
        """Whether one more in-link neither adds information nor moves the queued link.

        What the scorer learned since takes effect when the link is offered.
        """
        before = found.before
        if (
            before is None
            or depth < before.depth
            or not self._merges_features
            or not has_enough_inlinks(before)
        ):
            return False
        return (
            abs(self._ordering(found.rank_score, self._queue.found) - before.priority)
            <= MIN_PRIORITY_CHANGE
        )

    def offer_feed(self, url: str, now: float) -> bool:
        """Queue the sitemap of a robots.txt or the feed of a page, as a seed; True when new."""
        return self.offer(url, 1.0, now, None, None, None, None)

    def refusal_reason(self, url: str, parent: SettledFetch | None) -> str | None:
        """Return why a URL found on ``parent``'s page may not be queued, or None."""
        return self.link_filter.refusal_reason(url, _child_depth(parent))

    def offer(
        self,
        url: str,
        score: float,
        now: float,
        key: bytes | None,
        parent: SettledFetch | None,
        found: ScoredLink | None,
        payload: str | None,
    ) -> bool:
        """Queue a URL of the driver; see :meth:`focused.crawl.Crawl.enqueue_url`."""
        depth = _child_depth(parent)
        if self.link_filter.refusal_reason(url, depth) is not None:
            return False
        link = QueuedLink(
            key=key or link_key(url),
            url=url,
            host=host_of(url),
            priority=0.0,
            score=score if found is None else found.score,
            depth=depth,
            parent=None if parent is None else parent.link.url,
            anchor="" if found is None else found.link.anchor,
            features=() if found is None else found.features,
            found_at=now,
            payload=payload,
            tag_path_key=0 if found is None else found.tag_path_key,
        )
        return self.push(link, now, rank_score=None if found is None else found.rank_score)

    def push(self, link: QueuedLink, now: float, rank_score: float | None = None) -> bool:
        """Queue one link by its ``rank_score``, or else its score; True when it is new."""
        if rank_score is None:
            rank_score = priority_from_score(link.score, learns=self._learns)
        priority = self._ordering(rank_score, self._queue.found)
        return self._queue.push(replace(link, priority=priority), now)

    def follow(self, link: QueuedLink, now: float) -> str | None:
        """Queue the target of a redirect; a queued one gets the redirecting link's features too.

        Return why it may not be queued, or None.
        """
        refusal = self.link_filter.refusal_reason(link.url, link.depth)
        if refusal is not None:
            return refusal
        joined = self._joined(link)
        if joined is None:
            self.push(link, now)
            return None
        self._queue.push(joined, now, joined=True)
        return None

    def receive(self, links: Sequence[QueuedLink], now: float) -> int:
        """Queue links that other crawls of the same topic found; return how many are accepted.

        They are merged with queued links and scored like those of the crawl's own pages.
        """
        accepted = [
            link for link in links if self.link_filter.refusal_reason(link.url, link.depth) is None
        ]
        left: Sequence[QueuedLink] = accepted
        while left:
            # Each target once, so that its second link is merged with its first.
            once = {link.key: link for link in reversed(left)}
            self._receive([link for link in left if once[link.key] is link], now)
            left = [link for link in left if once[link.key] is not link]
        return len(accepted)

    def _receive(self, links: Sequence[QueuedLink], now: float) -> None:
        known = self._queue.lookup_links([(link.host, link.key) for link in links])
        left = [link for link in links if link.key not in known.settled]
        scorer = self._learner if self._merges_features else None
        merged = []
        for link in left:
            if scorer is None or len(link.features) != len(FEATURE_NAMES):
                self.push(link, now)
            else:
                merged.append(_merged(link, known.waiting.get(link.key)))
        if scorer is not None and merged:
            links = [
                self._with_score(link, again)
                for link, again in zip(merged, scorer.rescore(merged), strict=True)
            ]
            self._queue.push_all(links, now, joined=True)

    def _joined(self, link: QueuedLink) -> QueuedLink | None:
        """The link with its features merged with the queued link's."""
        scorer = self._learner
        if scorer is None or not self._merges_features:
            return None
        waiting = self._queue.lookup_links([(link.host, link.key)]).waiting.get(link.key)
        if waiting is None or not (
            len(waiting.features) == len(link.features) == len(FEATURE_NAMES)
        ):
            return None
        merged = _merged(link, waiting)
        (again,) = scorer.rescore([merged])
        return self._with_score(merged, again)

    def _with_score(self, link: QueuedLink, again: UpdatedScore) -> QueuedLink:
        priority = self._ordering(again.rank_score, self._queue.found)
        return replace(link, score=again.score, features=again.features, priority=priority)


def _merged(link: QueuedLink, waiting: QueuedLink | None) -> QueuedLink:
    """The link with its features merged with the queued link's, and those of the best in-link."""
    if waiting is None or len(waiting.features) != len(FEATURE_NAMES):
        return link
    rows = [list(link.features)]
    kept = link if merge_features(rows, [waiting])[0] else waiting
    return replace(
        link,
        features=tuple(rows[0]),
        parent=kept.parent,
        anchor=kept.anchor,
        tag_path_key=kept.tag_path_key,
        found_at=kept.found_at,
    )


def _child_depth(parent: SettledFetch | None) -> int:
    return 0 if parent is None else parent.link.depth + 1


def _as_queued(link: Link, before: QueuedLink) -> ScoredLink:
    return ScoredLink(
        link, before.score, before.features, before.priority, before.tag_path_key, before
    )


def archive_links(page: Page, scores: Mapping[str, float]) -> Sequence[LinkRow]:
    """Return the archive rows of a page's links; ``scores`` by URL, of the links that have one."""
    return [
        LinkRow(
            link.url,
            link.anchor[:_MAX_ANCHOR_CHARS],
            link.position,
            link.nofollow or page.nofollow,
            scores.get(link.url),
        )
        for link in page.links
    ]


LinkRefusal = Callable[[str], str | None]
"""Returns why the URL of a page's link is not queued, a short phrase that is counted, or None."""


class LinkFilter:
    """Decides which links may enter the frontier, and counts refusals by reason."""

    def __init__(
        self,
        topic: Topic,
        counters: Counters,
        host_policy: HostPolicy,
        mirrors: MirrorFilter,
        traps: TrapFilter,
    ) -> None:
        self._filter = ScopeFilter(topic.scope)
        self._counters = counters
        self._host_policy = host_policy
        self.mirrors = mirrors
        self.traps = traps
        self._obeys_nofollow = topic.politeness.nofollow
        self.refusals: list[LinkRefusal] = []
        """Why features refuse a link of a page, in the order in which they are asked."""

    def refusal_reason(self, url: str, depth: int) -> str | None:
        """Return why ``url`` is not queued, or None; count the refusal."""
        reason = self.traps.counted(
            self._filter.refusal_reason(url, depth), url
        ) or self._host_policy.closed(host_of(url))
        if reason is None and depth > 0:
            found = (refuse(url) for refuse in self.refusals)
            reason = next(filter(None, found), None) or self.traps.refusal_reason(url)
        if reason is not None:
            self._counters.count_out_of_scope(reason)
        return reason

    def refusal_when_due(self, host: Host, link: QueuedLink) -> FailureKind | None:
        """Return why a queued link is not fetched when it is offered, or None."""
        return (
            self._host_policy.dead_hosts.why(host.name)
            or self.mirrors.refusal_when_due(link)
            or self.traps.refusal_when_due(link)
        )

    def allowed(self, page: Page, depth: int) -> tuple[list[Link], list[str]]:
        """Return the links of a page that may be followed, and their hosts."""
        links: Sequence[Link] = page.links
        if self._obeys_nofollow:
            links = [] if page.nofollow else [link for link in links if not link.nofollow]
            self._counters.nofollow += len(page.links) - len(links)
        open_hosts: dict[str, bool] = {}
        allowed, hosts = [], []
        for link in links:
            host = host_of(link.url)
            is_open = open_hosts.get(host)
            if is_open is None:
                is_open = open_hosts[host] = self._is_open(host, depth)
            # Links of an open host are refused for their own URL alone.
            if (is_open and self._filter.is_plain(link.url)) or self.refusal_reason(
                link.url, depth
            ) is None:
                allowed.append(link)
                hosts.append(host)
        return allowed, hosts

    def _is_open(self, host: str, depth: int) -> bool:
        """Whether no rule can refuse a link by its host."""
        return (
            self._filter.is_open(host, depth)
            and self._host_policy.closed(host) is None
            and self.traps.is_open(host)
            and (depth == 0 or not self.refusals)
        )


HARD_FOCUS = "hard focus"
"""The reason counted for links that hard focus doesn't follow."""


def follows_links(
    training: Training, classification: Classification, depth: int, find_category: Callable[[], str]
) -> bool:
    """Whether the links of a page, ``depth`` links from a seed, are followed.

    After Chakrabarti, van den Berg and Dom (1999), "Focused crawling", section 3.1: soft focus
    follows all links and orders them by relevance; hard focus follows only those of pages whose
    most likely category is good. Links of seeds and of pages too short to classify are always
    followed. A classifier without categories decides by whether the page is on topic.
    ``find_category`` returns the page's most likely category, or an empty string.
    """
    if training.focus != "hard" or depth == 0 or not classification.known:
        return True
    category = find_category()
    if not category:
        return classification.on_topic
    return any(is_in_category(category, good) for good in training.good)
