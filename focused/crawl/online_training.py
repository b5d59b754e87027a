"""How a crawl's learner is taught, and asked again.

Each page is learned from once, after its link's score was made. The lesson is
written with the page; what the learner knows is kept every two thousand
lessons, and the lessons until then are dropped. A restarted crawl restores
that and teaches the lessons since: the learner knows what it knew.

A link that was scored earlier is scored again when its turn comes, and goes
back into its queue when it is rank_score less by then; one that a page links to
once more is scored again at once. A link that is rank_score more by then would
never come up by that: so a host's best links are scored again, some each time so
many more of its pages were fetched, and all when its turn comes first after another classifier
took office. No scan of the frontier, ever.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import compress

import msgspec
from msgspec import structs

from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.policy import MIN_PRIORITY_CHANGE, Policy
from focused.crawl.steps import SettledFetch
from focused.frontier.host import Host
from focused.frontier.interface import Frontier, NotYet, Offer
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import ClassifierSwapListener, OnlineLinkScorer, UpdatedScore
from focused.link_scoring.protocols import decode_example as from_bytes
from focused.storage.rows import pack
from focused.storage.tables import Tables

# A bound on the time of one turn; the last link is then taken as it is.
_MAX_RESCORED_PER_OFFER = 50
# Measured on recorded webs: all links of all hosts are hardly rank_score more
# (docs/explanation/apprentice.md).
_RESCORED_BEST_LINKS = 500
_RESCORE_INTERVAL_PAGES = 25
# Some at a time, lest the reactor be blocked.
_RESCORE_BATCHES = 5
# What a learner knows is megabytes in a long crawl; so many lessons are taught again in 0.1 s.
_EXAMPLES_PER_SNAPSHOT = 2_000
logger = logging.getLogger(__name__)

_EXAMPLE_KEY = struct.Struct(">Q")
_SNAPSHOT_KEY = b"state"


class OnlineTraining:
    """Stands between a frontier and a policy's scorer, when that one learns."""

    def __init__(self, policy: Policy, frontier: Frontier, tables: Tables) -> None:
        """What earlier sessions taught is taught again, from ``tables``."""
        scorer = policy.scorer
        self._learner = scorer if isinstance(scorer, OnlineLinkScorer) else None
        self._follower = scorer if isinstance(scorer, ClassifierSwapListener) else None
        self._ordering = policy.ordering
        self._features = len(scorer.feature_names)
        self._frontier = frontier
        self._tables = tables
        self._lessons = 0
        # Hosts whose links were scored anew since another classifier took office; None: none did.
        self._rescored_hosts: set[str] | None = None
        if self._learner is not None:
            self._remember(self._learner)

    def learn(self, settled: SettledFetch) -> None:
        """Learn from a judged page; copies teach once, pages too short to be judged never."""
        judged, page = settled.classification, settled.page
        if self._learner is None or judged is None or page is None or not judged.known:
            return
        if settled.outcome != "fetched" or settled.duplicate_of is not None:
            return
        # Through the row it is kept as: what is taught again must be what was taught.
        try:
            row = pack(
                self._learner.make_example(settled.link, page, judged.relevance, settled.words)
            )
            self._learner.learn(from_bytes(row))
        except Exception:
            # A scorer of the user's own may break over a page; that is no end of the crawl.
            logger.exception("%s could not be learned from", settled.link.url)
            return
        self._tables.put("lessons", _EXAMPLE_KEY.pack(self._lessons), row)
        self._lessons += 1
        if self._lessons % _EXAMPLES_PER_SNAPSHOT == 0:
            self._keep(self._learner)

    def classifier_swapped(self, at: float) -> None:
        """Another classifier has its office since ``at``: each host's links are scored anew in turn."""
        if self._follower is not None:
            self._follower.classifier_swapped(at)
            self._rescored_hosts = set()

    def refresh(self, host: Host, now: float) -> None:
        """Score the next of a host's best links again, when so many more pages were fetched."""
        if self._learner is None or host.fetched < _RESCORE_INTERVAL_PAGES:
            return
        pages = host.fetched % _RESCORE_INTERVAL_PAGES
        portion, between = divmod(pages * _RESCORE_BATCHES, _RESCORE_INTERVAL_PAGES)
        if between < _RESCORE_BATCHES:
            count = _RESCORED_BEST_LINKS // _RESCORE_BATCHES
            first = portion * count
            self._rescore_host(self._learner, host, range(first, first + count), now)

    def offer(self, now: float, patience_s: float) -> Offer | NotYet | None:
        """The frontier's offer, its link scored by what is known now."""
        offer = self._frontier.offer(now, patience_s)
        if self._learner is None:
            return offer
        one_was_scored_anew = False
        for _ in range(_MAX_RESCORED_PER_OFFER):
            if not isinstance(offer, Offer):
                return offer
            if not one_was_scored_anew and self._needs_rescoring(offer.host):
                one_was_scored_anew = True
                self._frontier.put_back(offer, offer.host.pace, now)
                self._rescore_host(self._learner, offer.host, range(_RESCORED_BEST_LINKS), now)
                offer = self._frontier.offer(now, patience_s)
                continue
            link = self._rescore_link(self._learner, offer.link, offer.found)
            if link.priority >= offer.link.priority - MIN_PRIORITY_CHANGE:
                return replace(offer, link=link)
            self._frontier.requeue(offer, link, now)
            offer = self._frontier.offer(now, patience_s)
        return offer

    def _needs_rescoring(self, host: Host) -> bool:
        """Whether another classifier took office since the host's links were; told once."""
        if self._rescored_hosts is None or host.name in self._rescored_hosts:
            return False
        self._rescored_hosts.add(host.name)
        return True

    def _rescore_host(
        self, learner: OnlineLinkScorer, host: Host, ranks: range, now: float
    ) -> None:
        self._frontier.rescore_best(host, partial(self._moved, learner), ranks, now)

    def _rescore_link(self, learner: OnlineLinkScorer, link: QueuedLink, found: int) -> QueuedLink:
        # Seeds, and a driver's own requests, were not scored on a page.
        if len(link.features) != self._features:
            return link
        (again,) = _rescore_or_none(learner, [link])
        return (
            link
            if again is None
            else _with_score(link, again, self._ordering(again.rank_score, found))
        )

    def _moved(
        self, learner: OnlineLinkScorer, links: Sequence[QueuedLink], found: Sequence[int]
    ) -> Sequence[QueuedLink]:
        scored = [len(link.features) == self._features for link in links]
        again = iter(_rescore_or_none(learner, list(compress(links, scored))))
        moved = []
        for link, number, is_scored in zip(links, found, scored, strict=True):
            told = next(again) if is_scored else None
            if told is not None:
                priority = self._ordering(told.rank_score, number)
                if abs(priority - link.priority) > MIN_PRIORITY_CHANGE:
                    moved.append(_with_score(link, told, priority))
                    continue
            moved.append(link)
        return moved

    def _keep(self, learner: OnlineLinkScorer) -> None:
        self._tables.put(
            "learned", _SNAPSHOT_KEY, _EXAMPLE_KEY.pack(self._lessons) + learner.state()
        )
        for key in [key for key, _ in self._tables.scan("lessons")]:
            self._tables.delete("lessons", key)

    def _remember(self, learner: OnlineLinkScorer) -> None:
        kept = self._tables.get("learned", _SNAPSHOT_KEY)
        if kept is not None:
            (self._lessons,) = _EXAMPLE_KEY.unpack(kept[: _EXAMPLE_KEY.size])
            learner.restore(kept[_EXAMPLE_KEY.size :])
        for _, row in self._tables.scan("lessons"):
            learner.learn(from_bytes(row))
            self._lessons += 1


def _rescore_or_none(
    learner: OnlineLinkScorer, links: Sequence[QueuedLink]
) -> Sequence[UpdatedScore | None]:
    """What the learner says of each link; None where it breaks."""
    try:
        return learner.rescore(links)
    except Exception:
        if len(links) > 1:  # the others need not suffer from the one
            return [told for link in links for told in _rescore_or_none(learner, [link])]
        logger.exception("%s could not be scored again", links[0].url)
        return [None]


def _with_score(link: QueuedLink, told: UpdatedScore, priority: float) -> QueuedLink:
    return structs.replace(link, score=told.score, features=told.features, priority=priority)


_MODEL_HISTORY_META = "judges"


class ModelPeriod(msgspec.Struct, frozen=True):
    """``classifier`` names who judged from the page with number ``seq`` on; ``since`` is a time."""

    classifier: str
    since: float
    seq: int


class ModelHistory:
    """The terms of a crawl's judges; the caller commits."""

    def __init__(
        self, office: SwappableClassifier, follower: ClassifierSwapListener, tables: Tables
    ) -> None:
        self._office = office
        self._follower = follower
        self._tables = tables

    @property
    def terms(self) -> Sequence[ModelPeriod]:
        """All terms, the first classifier's first."""
        return msgspec.convert(
            self._tables.get_meta(_MODEL_HISTORY_META) or [], tuple[ModelPeriod, ...]
        )

    def begin(self, seq: int, now: float) -> None:
        """The classifier in office judges on; it may be another than when the crawl was stopped."""
        terms = self.terms
        if not terms or terms[-1].classifier != self._office.name:
            self._note(seq, now)
        elif len(terms) > 1:
            self._follower.classifier_swapped(terms[-1].since)

    def appoint(self, classifier: TopicClassifier, name: str, seq: int, now: float) -> None:
        """``classifier`` judges from the page with number ``seq`` on."""
        self._office.swap(classifier, name)
        self._note(seq, now)

    def _note(self, seq: int, now: float) -> None:
        terms = [*self.terms, ModelPeriod(self._office.name, now, seq)]
        self._tables.put_meta(_MODEL_HISTORY_META, terms)
        if len(terms) > 1:
            self._follower.classifier_swapped(now)
