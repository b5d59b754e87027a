"""The one door by which links enter the frontier.

Scope, nofollow and the URL-seen test come first; what is left of a page's
links is scored in one batch and queued. No link is scored that cannot be
fetched, or was settled already; one that waits is, for it may move up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from focused.archive import LinkRow
from focused.crawl.counters import Counters
from focused.crawl.host_care import HostCare
from focused.crawl.order import MOVED, worth_of
from focused.crawl.steps import ScoredLink, Settled
from focused.crawl.traps import Traps
from focused.frontier.frontier import Frontier
from focused.frontier.ordering import Ordering
from focused.frontier.queued import QueuedLink, link_key
from focused.learning.evidence import FEATURE_NAMES, is_full, join, tells_more
from focused.learning.protocols import LearningScorer, LinkScorer, Visit
from focused.topic import Scope
from focused.web.page import Link, Page
from focused.web.scope import ScopeFilter
from focused.web.url import host_of

_MAX_ANCHOR_CHARS = 200


class Discovery:
    """Scores and queues what pages link to."""

    def __init__(
        self,
        scope: Scope,
        scorer: LinkScorer,
        ordering: Ordering,
        frontier: Frontier,
        counters: Counters,
        care: HostCare,
        traps: Traps,
        *,
        nofollow: bool = True,
    ) -> None:
        """``nofollow`` False follows also what pages ask not to."""
        self._obeys_nofollow = nofollow
        self._filter = ScopeFilter(scope)
        self._care = care
        self._traps = traps
        self._scorer = scorer
        # Asked once: whether an object has all methods of a protocol takes tens of microseconds.
        self._learner = scorer if isinstance(scorer, LearningScorer) else None
        self._learns = self._learner is not None
        self._joins = self._learns and scorer.feature_names == FEATURE_NAMES
        self._ordering = ordering
        self._frontier = frontier
        self._counters = counters

    def score(self, visit: Visit, depth: int) -> dict[str, ScoredLink]:
        """Predict the links of a page that may be followed, by URL, in document order.

        ``depth`` is theirs.
        """
        page = visit.page
        allowed = self._allowed(page, depth)
        keys = [link_key(link.url) for link in allowed]
        hosts = [host_of(link.url) for link in allowed]
        known = self._frontier.known_among(list(zip(hosts, keys, strict=True)))
        left = [key not in known.settled for key in keys]
        followed = list(compress(allowed, left))
        if not followed:
            return {}
        if self._learner is not None:
            waiting = [known.waiting.get(key) for key in compress(keys, left)]
            return self._scored_if_told(self._learner, visit, followed, waiting)
        answer = self._scorer.score(visit, followed)
        rows = zip(followed, answer.scores.tolist(), answer.features.tolist(), strict=True)
        return {
            link.url: ScoredLink(link, score, tuple(features), worth=score)
            for link, score, features in rows
        }

    def _scored_if_told(
        self,
        scorer: LearningScorer,
        visit: Visit,
        links: Sequence[Link],
        waiting: Sequence[QueuedLink | None],
    ) -> dict[str, ScoredLink]:
        """Score links, but for those of which the page tells nothing: they stay as they wait."""
        pairs = list(zip(links, waiting, strict=True))
        found = {
            link.url: _as_it_waits(link, other)
            for link, other in pairs
            if other is not None and self._joins and not tells_more(visit, other)
        }
        told = [pair for pair in pairs if pair[0].url not in found]
        if told:
            found |= self._scored_jointly(scorer, visit, *zip(*told, strict=True))
        # In document order.
        return {link.url: found[link.url] for link in links}

    def _scored_jointly(
        self,
        scorer: LearningScorer,
        visit: Visit,
        links: Sequence[Link],
        waiting: Sequence[QueuedLink | None],
    ) -> dict[str, ScoredLink]:
        """Scores of all in-links together: of this page's and of those that were found earlier."""
        answer = scorer.score_joined(visit, links, waiting)
        columns = zip(
            links,
            answer.scores.tolist(),
            answer.features.tolist(),
            answer.worth.tolist(),
            answer.trails,
            (None if leads else link for leads, link in zip(answer.leads, waiting, strict=True)),
            strict=True,
        )
        return {
            link.url: ScoredLink(link, score, tuple(features), worth, trail, before)
            for link, score, features, worth, trail, before in columns
        }

    def queue(
        self,
        parent: QueuedLink,
        scored: Mapping[str, ScoredLink],
        depth: int,
        now: float,
        hops: int = 0,
    ) -> None:
        """Push a page's scored links, in document order; ``hops`` is how far a feed's lead on."""
        links = (
            self._queued(parent, url, found, depth, now, hops)
            for url, found in scored.items()
            if not self._adds_nothing(found, depth)
        )
        self._frontier.push_all(links, now, joined=self._learns)

    def _queued(
        self, parent: QueuedLink, url: str, found: ScoredLink, depth: int, now: float, hops: int
    ) -> QueuedLink:
        before = found.before
        return QueuedLink(
            link_key(url),
            url,
            host_of(url),
            self._ordering(found.worth, self._frontier.found),
            found.score,
            depth,
            before.parent if before else parent.url,
            before.anchor if before else found.link.anchor[:_MAX_ANCHOR_CHARS],
            found.evidence,
            now,
            hops=hops,
            trail=found.trail,
        )

    def _adds_nothing(self, found: ScoredLink, depth: int) -> bool:
        """Whether one more link to a target that waits tells what was known, and moves it nowhere.

        What the crawl has learned since is asked for when its turn comes.
        """
        before = found.before
        if before is None or depth < before.depth or not self._joins or not is_full(before):
            return False
        return abs(self._ordering(found.worth, self._frontier.found) - before.priority) <= MOVED

    def offer(
        self,
        url: str,
        score: float,
        now: float,
        key: bytes | None,
        parent: Settled | None,
        found: ScoredLink | None,
        payload: str | None,
    ) -> bool:
        """Queue what a driver offers; see :meth:`focused.crawl.Crawl.offer_link`."""
        depth = 0 if parent is None else parent.link.depth + 1
        if self.refuses(url, depth) is not None:
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
            evidence=() if found is None else found.evidence,
            found_at=now,
            payload=payload,
            trail=0 if found is None else found.trail,
        )
        return self.push(link, now, worth=None if found is None else found.worth)

    def push(self, link: QueuedLink, now: float, worth: float | None = None) -> bool:
        """Queue one link by its ``worth``, or where its score puts it; True when it is new."""
        if worth is None:
            worth = worth_of(link.score, learns=self._learns)
        priority = self._ordering(worth, self._frontier.found)
        return self._frontier.push(replace(link, priority=priority), now)

    def follow(self, link: QueuedLink, now: float) -> None:
        """Queue what a redirect led to; one that waits gains what the redirecting link told."""
        joined = self._joined(link)
        if joined is None:
            self.push(link, now)
            return
        again, worth = joined
        priority = self._ordering(worth, self._frontier.found)
        self._frontier.push(replace(again, priority=priority), now, joined=True)

    def _joined(self, link: QueuedLink) -> tuple[QueuedLink, float] | None:
        """The link with its own evidence and that of the one that waits, and its worth."""
        scorer = self._learner
        if scorer is None or not self._joins:
            return None
        waiting = self._frontier.known_among([(link.host, link.key)]).waiting.get(link.key)
        if waiting is None or not (
            len(waiting.evidence) == len(link.evidence) == len(FEATURE_NAMES)
        ):
            return None
        joined = join(np.array([link.evidence]), [waiting])
        kept = link if joined.leads[0] else waiting
        evidence = tuple(joined.rows[0].tolist())
        (again,) = scorer.rescore([replace(kept, evidence=evidence)])
        told = replace(
            link,
            score=again.score,
            evidence=again.evidence,
            parent=kept.parent,
            anchor=kept.anchor,
            trail=kept.trail,
        )
        return told, again.worth

    def refuses(self, url: str, depth: int) -> str | None:
        """Why ``url`` is not to be queued, None when it is; refusals are counted."""
        reason = self._traps.counted(self._filter.refuses(url, depth), url) or self._care.closed(
            url
        )
        if reason is None and depth > 0:
            reason = self._traps.refuses(url)
        if reason is not None:
            self._counters.count_out_of_scope(reason)
        return reason

    def _allowed(self, page: Page, depth: int) -> list[Link]:
        """The links of a page that may be followed, by its leave and by ours."""
        links: Sequence[Link] = page.links
        if self._obeys_nofollow:
            links = [] if page.nofollow else [link for link in links if not link.nofollow]
            self._counters.nofollow += len(page.links) - len(links)
        hosts: dict[str, bool] = {}
        allowed = []
        for link in links:
            host = host_of(link.url)
            is_open = hosts.get(host)
            if is_open is None:
                is_open = hosts[host] = self._is_open(host, depth)
            # Of an open host only a URL's own shape can refuse a link.
            if (is_open and self._filter.is_plain(link.url)) or self.refuses(
                link.url, depth
            ) is None:
                allowed.append(link)
        return allowed

    def _is_open(self, host: str, depth: int) -> bool:
        """Whether nothing is known that would refuse a single link to the host."""
        return (
            self._filter.is_open(host, depth)
            and self._care.is_open(host)
            and self._traps.is_open(host)
        )


def _as_it_waits(link: Link, before: QueuedLink) -> ScoredLink:
    return ScoredLink(link, before.score, before.evidence, before.priority, before.trail, before)


def link_rows(page: Page, scored: Mapping[str, ScoredLink]) -> Sequence[LinkRow]:
    """All links of a page as archive rows, with a score where one was made."""
    return [
        LinkRow(
            link.url,
            link.anchor[:_MAX_ANCHOR_CHARS],
            link.position,
            link.nofollow or page.nofollow,
            scored[link.url].score if link.url in scored else None,
        )
        for link in page.links
    ]
