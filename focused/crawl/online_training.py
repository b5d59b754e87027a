"""Online training of the link scorer, and scoring queued links again.

The scorer learns from each page once, after the page's link was scored. The training example is
stored with the page. The scorer's state is stored every 2,000 examples, and the examples before it
are deleted. After a restart the crawl restores the state and trains on the examples since, so the
scorer is the same as before. A crawl that shares its scorer with others hands its examples over
instead: it neither trains the scorer nor stores anything.

A queued link is scored again when it is offered, and goes back into its queue if its priority fell;
a link that another page links to is scored again at once. Links whose priority rose would never be
offered, so the best links of a host are scored again in batches as its pages are fetched, and all
of them once after the classifier was replaced. The frontier is never scanned.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress

import msgspec
from msgspec import structs

from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.listeners import SettledEvent
from focused.crawl.policy import MIN_PRIORITY_CHANGE, Policy
from focused.crawl.steps import SettledFetch
from focused.frontier.disk_frontier import NO_FLOOR, DiskFrontier, NotYet, Offer
from focused.frontier.host import Host
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import (
    ClassifierSwapListener,
    OnlineLinkScorer,
    UpdatedScore,
    decode_example,
)
from focused.storage.rows import pack
from focused.storage.tables import Tables

# An offered link that loses more is queued again.
_MAX_PRIORITY_LOSS = 0.02
# Scoring all links gains hardly anything (docs/explanation/apprentice.md).
_RESCORED_BEST_LINKS = 500
_RESCORE_INTERVAL_PAGES = 25
# From so many pages of a host on, the interval doubles with them: the model changes less.
_STEADY_PAGES = 500
# In batches, so that the reactor isn't blocked for long.
_RESCORE_BATCHES = 5
# The state takes megabytes in a long crawl; training on this many examples takes 0.1 s.
_EXAMPLES_PER_SNAPSHOT = 2_000
logger = logging.getLogger(__name__)

ShareExample = Callable[[bytes], object]
"""Takes the row of a :class:`TrainingExample`, in the transaction of its page."""

_EXAMPLE_KEY = struct.Struct(">Q")
_SNAPSHOT_KEY = b"state"


class OnlineTraining:
    """Trains an online link scorer and offers links with up-to-date scores."""

    def __init__(
        self,
        policy: Policy,
        frontier: DiskFrontier,
        tables: Tables,
        *,
        patience_s: float = 0.0,
        share: ShareExample | None = None,
    ) -> None:
        """Restore the learner from ``tables``, unless others train it: then ``share`` is given.

        A link waits up to ``patience_s`` for a clearly better one.
        """
        self._patience_s = patience_s
        scorer = policy.scorer
        self._learner = scorer if isinstance(scorer, OnlineLinkScorer) else None
        self._swap_listener = scorer if isinstance(scorer, ClassifierSwapListener) else None
        self.floor = NO_FLOOR
        """No host with a priority below is offered."""
        self._ordering = policy.ordering
        self._features = len(scorer.feature_names)
        self._frontier = frontier
        self._tables = tables
        self._share = share
        self._examples = 0
        # Hosts whose links were scored again since the classifier was replaced; None: it was not.
        self._rescored_hosts: set[str] | None = None
        if self._learner is not None and share is None:
            self._restore(self._learner)

    def on_settled(self, event: SettledEvent) -> None:
        """Train on a fetched page, and score some of its host's links again."""
        if event.outcome is None:
            return
        self.learn(event.settled)
        if event.offer is not None and event.settled.outcome == "fetched":
            self.refresh(event.offer.host, event.now)

    def learn(self, settled: SettledFetch) -> None:
        """Train on a classified page, unless it is a duplicate or too short to classify.

        With ``share`` it only hands the example over.
        """
        classification, page = settled.classification, settled.page
        if (
            self._learner is None
            or classification is None
            or page is None
            or not classification.known
        ):
            return
        if settled.outcome != "fetched" or settled.duplicate_of is not None:
            return
        # Through its row, so that training after a restart sees the same example.
        try:
            relevance = classification.guiding_relevance
            example = self._learner.make_example(settled.link, page, relevance)
            if classification.untempered is not None:
                example = structs.replace(example, tempered=classification.relevance)
            row = pack(example)
            if self._share is not None:
                self._share(row)
                return
            self._learner.learn(decode_example(row))
        except Exception:
            # A user's own scorer may raise; that must not stop the crawl.
            logger.exception("%s could not be used for training", settled.link.url)
            return
        self._tables.put("training_examples", _EXAMPLE_KEY.pack(self._examples), row)
        self._examples += 1
        if self._examples % _EXAMPLES_PER_SNAPSHOT == 0:
            self._save_snapshot(self._learner)

    def classifier_swapped(self, at: float) -> None:
        """Score links again host by host, because the classifier changed at ``at``."""
        if self._swap_listener is not None:
            self._swap_listener.classifier_swapped(at)
            self._rescored_hosts = set()

    def refresh(self, host: Host, now: float) -> None:
        """Score the next batch of the host's best links again, if one is due."""
        if self._learner is None or host.fetched < _RESCORE_INTERVAL_PAGES:
            return
        interval = _RESCORE_INTERVAL_PAGES << (host.fetched // _STEADY_PAGES).bit_length()
        portion, between = divmod(host.fetched % interval * _RESCORE_BATCHES, interval)
        if between < _RESCORE_BATCHES:
            count = _RESCORED_BEST_LINKS // _RESCORE_BATCHES
            first = portion * count
            self._rescore_host(self._learner, host, range(first, first + count), now)

    def offer(self, now: float, *, may_rescore_host: bool = True) -> Offer | NotYet | None:
        """Return the frontier's offer; see :meth:`rescored`.

        With ``may_rescore_host`` its host's best links are scored first if the classifier changed.
        """
        offer = self._frontier.offer(now, self._patience_s, self.floor)
        if self._learner is None or not may_rescore_host or not isinstance(offer, Offer):
            return offer
        if not self._needs_rescoring(offer.host):
            return offer
        self._frontier.put_back(offer, offer.host.pace, now)
        self._rescore_host(self._learner, offer.host, range(_RESCORED_BEST_LINKS), now)
        return self._frontier.offer(now, self._patience_s, self.floor)

    def rescored(self, offer: Offer, now: float) -> Offer | None:
        """Return an offer with its link scored by the current model.

        None when the link lost by it: it is queued again, for there may be a better one.
        """
        if self._learner is None:
            return offer
        link = self._rescore_link(self._learner, offer.link, offer.found)
        if link.priority >= offer.link.priority - _MAX_PRIORITY_LOSS:
            return Offer(link, offer.host, offer.queue_key)
        self._frontier.requeue(offer, link, now)
        return None

    def best_priorities(self, limit: int, now: float) -> Sequence[float]:
        """Return the priorities of the best links that may be fetched soon, best first."""
        return self._frontier.best_priorities(limit, now, self._patience_s)

    def _needs_rescoring(self, host: Host) -> bool:
        """Whether the host's links have scores of the previous classifier; True once per host."""
        if self._rescored_hosts is None or host.name in self._rescored_hosts:
            return False
        self._rescored_hosts.add(host.name)
        return True

    def _rescore_host(
        self, learner: OnlineLinkScorer, host: Host, ranks: range, now: float
    ) -> None:
        self._frontier.rescore_best(host, partial(self._rescore_links, learner), ranks, now)

    def _rescore_link(self, learner: OnlineLinkScorer, link: QueuedLink, found: int) -> QueuedLink:
        # Seeds and a driver's own requests have no features.
        if len(link.features) != self._features:
            return link
        (again,) = _rescore_or_none(learner, [link])
        return (
            link
            if again is None
            else _with_score(link, again, self._ordering(again.rank_score, found))
        )

    def _rescore_links(
        self, learner: OnlineLinkScorer, links: Sequence[QueuedLink], found: Sequence[int]
    ) -> Sequence[QueuedLink]:
        scored = [len(link.features) == self._features for link in links]
        again = iter(_rescore_or_none(learner, list(compress(links, scored))))
        moved = []
        for link, number, is_scored in zip(links, found, scored, strict=True):
            update = next(again) if is_scored else None
            risen = link
            if update is not None:
                priority = self._ordering(update.rank_score, number)
                # That a priority fell shows when the link is offered.
                if priority - link.priority > MIN_PRIORITY_CHANGE:
                    risen = _with_score(link, update, priority)
            moved.append(risen)
        return moved

    def _save_snapshot(self, learner: OnlineLinkScorer) -> None:
        self._tables.put(
            "scorer_state", _SNAPSHOT_KEY, _EXAMPLE_KEY.pack(self._examples) + learner.state()
        )
        for key in [key for key, _ in self._tables.scan("training_examples")]:
            self._tables.delete("training_examples", key)

    def _restore(self, learner: OnlineLinkScorer) -> None:
        kept = self._tables.get("scorer_state", _SNAPSHOT_KEY)
        if kept is not None:
            (self._examples,) = _EXAMPLE_KEY.unpack(kept[: _EXAMPLE_KEY.size])
            learner.restore(kept[_EXAMPLE_KEY.size :])
        for _, row in self._tables.scan("training_examples"):
            learner.learn(decode_example(row))
            self._examples += 1


def _rescore_or_none(
    learner: OnlineLinkScorer, links: Sequence[QueuedLink]
) -> Sequence[UpdatedScore | None]:
    """Score links again; None for each link that the scorer raises an error at."""
    try:
        return learner.rescore(links)
    except Exception:
        if len(links) > 1:  # the others need not suffer from the one
            return [update for link in links for update in _rescore_or_none(learner, [link])]
        logger.exception("%s could not be scored again", links[0].url)
        return [None]


def _with_score(link: QueuedLink, update: UpdatedScore, priority: float) -> QueuedLink:
    return structs.replace(link, score=update.score, features=update.features, priority=priority)


_MODEL_HISTORY_META = "models"


class ModelPeriod(msgspec.Struct, frozen=True):
    """A period of one classifier: from page number ``seq`` and the time ``since`` on."""

    classifier: str
    since: float
    seq: int


class ModelHistory:
    """Records which classifier a crawl used when; the caller commits."""

    def __init__(
        self, classifier: SwappableClassifier, swap_listener: ClassifierSwapListener, tables: Tables
    ) -> None:
        self._classifier = classifier
        self._swap_listener = swap_listener
        self._tables = tables

    @property
    def periods(self) -> Sequence[ModelPeriod]:
        """All periods, oldest first."""
        return msgspec.convert(
            self._tables.get_meta(_MODEL_HISTORY_META) or [], tuple[ModelPeriod, ...]
        )

    def begin(self, seq: int, now: float) -> None:
        """Start a session; the classifier may have changed since the last one."""
        periods = self.periods
        if not periods or periods[-1].classifier != self._classifier.name:
            self._note(seq, now)
        elif len(periods) > 1:
            self._swap_listener.classifier_swapped(periods[-1].since)

    def swap_model(self, classifier: TopicClassifier, name: str, seq: int, now: float) -> None:
        """Use ``classifier`` from page number ``seq`` on."""
        self._classifier.swap(classifier, name)
        self._note(seq, now)

    def _note(self, seq: int, now: float) -> None:
        periods = [*self.periods, ModelPeriod(self._classifier.name, now, seq)]
        self._tables.put_meta(_MODEL_HISTORY_META, periods)
        if len(periods) > 1:
            self._swap_listener.classifier_swapped(now)
