"""The one door by which links enter the frontier.

Scope and nofollow (:mod:`focused.crawl.admission`) and the URL-seen test come
first; what is left of a page's links is scored in one batch and queued. No
link is scored that cannot be fetched, or was settled already; one that waits
is, for it may move up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from focused.archive import LinkRow
from focused.crawl.admission import Admission
from focused.crawl.order import MOVED, worth_of
from focused.crawl.steps import ScoredLink, Settled
from focused.frontier.frontier import Frontier
from focused.frontier.ordering import Ordering
from focused.frontier.queued import QueuedLink, link_key
from focused.learning.evidence import FEATURE_NAMES, is_full, join, tells_more
from focused.learning.protocols import LearningScorer, LinkScorer, Visit
from focused.web.page import Link, Page
from focused.web.url import host_of

_MAX_ANCHOR_CHARS = 200


class Discovery:
    """Scores and queues what pages link to."""

    def __init__(
        self, admission: Admission, scorer: LinkScorer, ordering: Ordering, frontier: Frontier
    ) -> None:
        self._admission = admission
        self._scorer = scorer
        # Asked once: whether an object has all methods of a protocol takes tens of microseconds.
        self._learner = scorer if isinstance(scorer, LearningScorer) else None
        self._learns = self._learner is not None
        self._joins = self._learns and scorer.feature_names == FEATURE_NAMES
        self._ordering = ordering
        self._frontier = frontier

    def score(self, visit: Visit, depth: int) -> dict[str, ScoredLink]:
        """Predict the links of a page that may be followed, by URL, in document order.

        ``depth`` is theirs.
        """
        page = visit.page
        allowed = self._admission.allowed(page, depth)
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

    def refuses(self, url: str, parent: Settled | None) -> str | None:
        """Why a URL that was found on ``parent``'s page may not be queued; None when it may be."""
        return self._admission.refuses(url, _depth_under(parent))

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
        depth = _depth_under(parent)
        if self._admission.refuses(url, depth) is not None:
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

    def follow(self, link: QueuedLink, now: float) -> str | None:
        """Queue what a redirect led to; one that waits gains what the redirecting link told.

        Return why it may not be queued, else None.
        """
        refusal = self._admission.refuses(link.url, link.depth)
        if refusal is not None:
            return refusal
        joined = self._joined(link)
        if joined is None:
            self.push(link, now)
            return None
        again, worth = joined
        priority = self._ordering(worth, self._frontier.found)
        self._frontier.push(replace(again, priority=priority), now, joined=True)
        return None

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


def _depth_under(parent: Settled | None) -> int:
    return 0 if parent is None else parent.link.depth + 1


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
