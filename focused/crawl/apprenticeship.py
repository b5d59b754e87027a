"""How a crawl's learner is taught, and asked again.

Each page is learned from once, after its link's score was made. The lesson is
written with the page; what the learner knows is kept every two thousand
lessons, and the lessons until then are dropped. A restarted crawl restores
that and teaches the lessons since: the learner knows what it knew.

A link that was scored earlier is scored again when its turn comes, and goes
back into its queue when it is worth less by then; one that a page links to
once more is scored again at once. A link that is worth more by then would
never come up by that: so a host's best links are scored again, some each time so
many more of its pages were fetched, and all when its turn comes first after another judge
took office. No scan of the frontier, ever.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import compress

from msgspec import structs

from focused.crawl.order import MOVED
from focused.crawl.policy import Policy
from focused.crawl.steps import Settled
from focused.frontier.frontier import Frontier, NotYet, Offer
from focused.frontier.host import Host
from focused.frontier.queued import QueuedLink
from focused.frontier.rows import pack
from focused.frontier.tables import Tables
from focused.learning.lesson import from_bytes
from focused.learning.protocols import FollowsJudge, LearningScorer, Rescored

# A bound on the time of one turn; the last link is then taken as it is.
_RESCORED_A_TURN = 50
# Measured on recorded webs: all links of all hosts are hardly worth more
# (docs/explanation/apprentice.md).
_BEST_SCORED_AGAIN = 500
_PAGES_UNTIL_SCORED_AGAIN = 25
# Some at a time, lest the reactor be blocked.
_PORTIONS = 5
# What a learner knows is megabytes in a long crawl; so many lessons are taught again in 0.1 s.
_LESSONS_UNTIL_KEPT = 2_000
logger = logging.getLogger(__name__)

_NUMBER = struct.Struct(">Q")
_STATE = b"state"


class Apprenticeship:
    """Stands between a frontier and a policy's scorer, when that one learns."""

    def __init__(self, policy: Policy, frontier: Frontier, tables: Tables) -> None:
        """What earlier sessions taught is taught again, from ``tables``."""
        scorer = policy.scorer
        self._learner = scorer if isinstance(scorer, LearningScorer) else None
        self._follower = scorer if isinstance(scorer, FollowsJudge) else None
        self._ordering = policy.ordering
        self._features = len(scorer.feature_names)
        self._frontier = frontier
        self._tables = tables
        self._lessons = 0
        # Hosts whose links were scored anew since another judge took office; None: none did.
        self._scored_anew: set[str] | None = None
        if self._learner is not None:
            self._remember(self._learner)

    def learn(self, settled: Settled) -> None:
        """Learn from a judged page; copies teach once, pages too short to be judged never."""
        judged, page = settled.judgement, settled.page
        if self._learner is None or judged is None or page is None or not judged.known:
            return
        if settled.outcome != "fetched" or settled.duplicate_of is not None:
            return
        # Through the row it is kept as: what is taught again must be what was taught.
        try:
            row = pack(self._learner.lesson(settled.link, page, judged.relevance, settled.words))
            self._learner.learn(from_bytes(row))
        except Exception:
            # A scorer of the user's own may break over a page; that is no end of the crawl.
            logger.exception("%s could not be learned from", settled.link.url)
            return
        self._tables.put("lessons", _NUMBER.pack(self._lessons), row)
        self._lessons += 1
        if self._lessons % _LESSONS_UNTIL_KEPT == 0:
            self._keep(self._learner)

    def judge_changed(self, at: float) -> None:
        """Another judge has its office since ``at``: each host's links are scored anew in turn."""
        if self._follower is not None:
            self._follower.judge_changed(at)
            self._scored_anew = set()

    def refresh(self, host: Host, now: float) -> None:
        """Score the next of a host's best links again, when so many more pages were fetched."""
        if self._learner is None or host.fetched < _PAGES_UNTIL_SCORED_AGAIN:
            return
        pages = host.fetched % _PAGES_UNTIL_SCORED_AGAIN
        portion, between = divmod(pages * _PORTIONS, _PAGES_UNTIL_SCORED_AGAIN)
        if between < _PORTIONS:
            count = _BEST_SCORED_AGAIN // _PORTIONS
            first = portion * count
            self._score_again(self._learner, host, range(first, first + count), now)

    def offer(self, now: float, patience_s: float) -> Offer | NotYet | None:
        """The frontier's offer, its link scored by what is known now."""
        offer = self._frontier.offer(now, patience_s)
        if self._learner is None:
            return offer
        one_was_scored_anew = False
        for _ in range(_RESCORED_A_TURN):
            if not isinstance(offer, Offer):
                return offer
            if not one_was_scored_anew and self._is_to_be_scored_anew(offer.host):
                one_was_scored_anew = True
                self._frontier.put_back(offer, offer.host.pace, now)
                self._score_again(self._learner, offer.host, range(_BEST_SCORED_AGAIN), now)
                offer = self._frontier.offer(now, patience_s)
                continue
            link = self._scored_again(self._learner, offer.link, offer.found)
            if link.priority >= offer.link.priority - MOVED:
                return replace(offer, link=link)
            self._frontier.requeue(offer, link, now)
            offer = self._frontier.offer(now, patience_s)
        return offer

    def _is_to_be_scored_anew(self, host: Host) -> bool:
        """Whether another judge took office since the host's links were; told once."""
        if self._scored_anew is None or host.name in self._scored_anew:
            return False
        self._scored_anew.add(host.name)
        return True

    def _score_again(self, learner: LearningScorer, host: Host, ranks: range, now: float) -> None:
        self._frontier.score_best_again(host, partial(self._moved, learner), ranks, now)

    def _scored_again(self, learner: LearningScorer, link: QueuedLink, found: int) -> QueuedLink:
        # Seeds, and a driver's own requests, were not scored on a page.
        if len(link.evidence) != self._features:
            return link
        (again,) = _rescored(learner, [link])
        return link if again is None else _with(link, again, self._ordering(again.worth, found))

    def _moved(
        self, learner: LearningScorer, links: Sequence[QueuedLink], found: Sequence[int]
    ) -> Sequence[QueuedLink]:
        scored = [len(link.evidence) == self._features for link in links]
        again = iter(_rescored(learner, list(compress(links, scored))))
        moved = []
        for link, number, is_scored in zip(links, found, scored, strict=True):
            told = next(again) if is_scored else None
            if told is not None:
                priority = self._ordering(told.worth, number)
                if abs(priority - link.priority) > MOVED:
                    moved.append(_with(link, told, priority))
                    continue
            moved.append(link)
        return moved

    def _keep(self, learner: LearningScorer) -> None:
        self._tables.put("learned", _STATE, _NUMBER.pack(self._lessons) + learner.state())
        for key in [key for key, _ in self._tables.scan("lessons")]:
            self._tables.delete("lessons", key)

    def _remember(self, learner: LearningScorer) -> None:
        kept = self._tables.get("learned", _STATE)
        if kept is not None:
            (self._lessons,) = _NUMBER.unpack(kept[: _NUMBER.size])
            learner.restore(kept[_NUMBER.size :])
        for _, row in self._tables.scan("lessons"):
            learner.learn(from_bytes(row))
            self._lessons += 1


def _rescored(learner: LearningScorer, links: Sequence[QueuedLink]) -> Sequence[Rescored | None]:
    """What the learner says of each link; None where it breaks."""
    try:
        return learner.rescore(links)
    except Exception:
        if len(links) > 1:  # the others need not suffer from the one
            return [told for link in links for told in _rescored(learner, [link])]
        logger.exception("%s could not be scored again", links[0].url)
        return [None]


def _with(link: QueuedLink, told: Rescored, priority: float) -> QueuedLink:
    return structs.replace(link, score=told.score, evidence=told.evidence, priority=priority)
