"""How a crawl's learner is taught, and asked again.

Each page is learned from once, after its link's score was made. A link that
was scored earlier is scored again when its turn comes, and goes back into its
queue when it is worth less by then: no scan of the frontier, ever. A link
that is worth more by now shows when a page links to it once more.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from focused.archive import page_rows
from focused.crawl.policy import Policy
from focused.crawl.steps import Settled
from focused.frontier.frontier import Frontier, NotYet, Offer
from focused.frontier.queued import QueuedLink
from focused.frontier.store import StateStore
from focused.learning.protocols import LearningScorer

# A bound on the time of one turn; the last link is then taken as it is.
_RESCORED_A_TURN = 50
# A link that fell by less is fetched in its turn: a move costs two writes.
_FELL = 0.01


class Apprenticeship:
    """Stands between a frontier and a policy's scorer, when that one learns."""

    def __init__(self, policy: Policy, frontier: Frontier, store: StateStore) -> None:
        """What earlier sessions saw is taught again, from the archive's rows in ``store``."""
        scorer = policy.scorer
        self._learner = scorer if isinstance(scorer, LearningScorer) else None
        self._ordering = policy.ordering
        self._features = len(scorer.feature_names)
        self._frontier = frontier
        if self._learner is not None:
            _teach_again(self._learner, store)

    def learn(self, settled: Settled) -> None:
        """Learn from a judged page; copies of one page teach once."""
        judged = settled.judgement
        if self._learner is None or judged is None or settled.outcome != "fetched":
            return
        if settled.duplicate_of is None:
            self._learner.learn(settled.link.url, settled.link.anchor, judged.relevance)

    def offer(self, now: float, patience_s: float) -> Offer | NotYet | None:
        """The frontier's offer, its link scored by what is known now."""
        offer = self._frontier.offer(now, patience_s)
        if self._learner is None:
            return offer
        for _ in range(_RESCORED_A_TURN):
            if not isinstance(offer, Offer):
                return offer
            link = self._scored_again(self._learner, offer)
            if link.priority >= offer.link.priority - _FELL:
                return replace(offer, link=link)
            self._frontier.requeue(offer, link, now)
            offer = self._frontier.offer(now, patience_s)
        return offer

    def _scored_again(self, learner: LearningScorer, offer: Offer) -> QueuedLink:
        link = offer.link
        # Seeds, and a driver's own requests, were not scored on a page.
        if len(link.evidence) != self._features:
            return link
        score, evidence = learner.rescore(link.url, link.anchor, link.evidence)
        priority = self._ordering(score, offer.found)
        return structs.replace(link, score=score, evidence=tuple(evidence), priority=priority)


def _teach_again(learner: LearningScorer, store: StateStore) -> None:
    for row in page_rows(store):
        if row["outcome"] == "fetched" and row["duplicate_of"] is None:
            learner.learn(row["url"], row["anchor"], row["relevance"])
