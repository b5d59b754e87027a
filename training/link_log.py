"""Log followed links and their outcomes, to fit the link prior.

Simulated crawls follow links in a noisy order: a log of what one prior prefers could not show what
else is worth following. Each logged link has its features at the time it was fetched and whether
its page has a good label. No label reaches a running crawl.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import groupby

import numpy as np
from link_prior_fitting import LoggedRun
from msgspec import structs

from focused.child_processes import spawn_context
from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.protocols import (
    LinkScorer,
    MergedScore,
    OnlineLinkScorer,
    PageContext,
    ScorableLink,
    ScoredLinks,
    TrainingExample,
    UpdatedScore,
)
from focused.orderings import WORTH_WAITING_FOR
from focused.text import hash_fraction
from focused.web.page import Link, Page
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import PreparedTopic, Trial
from focused_lab.runner import WebContextCache, run_seed, simulate_trial
from focused_lab.web_sources import ExperimentWeb

STRAY_SHARE = 0.2
"""Share of links that get the priority of a link without features."""

_STRAY_PRIORITY = -2.0
_MIN_UNIFORM = 1e-9


class NoisyLinkScorer:
    """Wraps a scorer and adds noise to its ``rank_score``, so that links are sampled by their odds.

    With Gumbel noise on log-odds the maximum is a sample in proportion to the odds (Luce's choice;
    Yellott 1977). The noise is a hash of the URL: a repeated or rescored link gets the same noise.
    Implements :class:`focused.link_scoring.protocols.OnlineLinkScorer`.
    """

    def __init__(self, scorer: OnlineLinkScorer, seed: int) -> None:
        self._scorer = scorer
        self._seed = seed
        self.feature_names = scorer.feature_names

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Return the wrapped scorer's scores."""
        return self._scorer.score(page_context, links)

    def score_merged(
        self,
        page_context: PageContext,
        links: Sequence[Link],
        waiting: Sequence[ScorableLink | None],
    ) -> Sequence[MergedScore]:
        """Return the wrapped scorer's scores and features with a noisy ``rank_score``."""
        merged = self._scorer.score_merged(page_context, links, waiting)
        return [
            structs.replace(each, rank_score=self._noised(each.rank_score, link.url))
            for each, link in zip(merged, links, strict=True)
        ]

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Return the wrapped scorer's scores and features with a noisy ``rank_score``."""
        again = self._scorer.rescore(links)
        return [
            replace(each, rank_score=self._noised(each.rank_score, link.url))
            for each, link in zip(again, links, strict=True)
        ]

    def make_example(self, link: ScorableLink, page: Page, relevance: float) -> TrainingExample:
        """Delegate to the wrapped scorer."""
        return self._scorer.make_example(link, page, relevance)

    def learn(self, lesson: TrainingExample) -> None:
        """Delegate to the wrapped scorer."""
        self._scorer.learn(lesson)

    def state(self) -> bytes:
        """Delegate to the wrapped scorer."""
        return self._scorer.state()

    def restore(self, state: bytes) -> None:
        """Delegate to the wrapped scorer."""
        self._scorer.restore(state)

    def _noised(self, rank_score: float, url: str) -> float:
        stray = hash_fraction(f"stray {url}", self._seed) < STRAY_SHARE
        drawn = max(hash_fraction(f"noise {url}", self._seed), _MIN_UNIFORM)
        return (_STRAY_PRIORITY if stray else rank_score) - math.log(-math.log(drawn))


class LinkLogger:
    """Makes logged runs one at a time; keeps one web and one topic's classifications in memory."""

    def __init__(
        self,
        webs: Mapping[str, ExperimentWeb],
        prepared_topics: Mapping[str, PreparedTopic],
        settings: ExperimentSettings,
    ) -> None:
        """``webs`` and ``prepared_topics`` by name; each scorer must learn online."""
        self._settings = settings
        self._web_contexts = WebContextCache(webs, prepared_topics)

    def log(self, trial: Trial) -> LoggedRun:
        """Crawl as the trial says, ignoring its policy, and log the followed links.

        Seeds, training pages, duplicates and unlabelled pages are left out. Raises
        RecordedWebError, and TypeError when the topic's scorer does not learn online.
        """
        web_context = self._web_contexts.for_trial(trial)
        followed: list[tuple[tuple[float, ...], bool]] = []

        def note(settled: SettledFetch) -> None:
            link = settled.link
            if settled.classification is None or settled.duplicate_of is not None:
                return
            is_relevant = web_context.ground_truth.known_relevance(link.url)
            if is_relevant is not None and len(link.features) == len(FEATURE_NAMES):
                followed.append((tuple(link.features), is_relevant))

        seed = run_seed(self._settings, trial)
        simulate_trial(
            web_context,
            trial,
            policy=_noisy_policy(trial, web_context.apprentice(), seed),
            seed=seed,
            latency_s=self._settings.latency_s,
            watch=note,
        )
        rows = np.array([features for features, _ in followed], dtype=np.float64)
        relevance = np.array([is_relevant for _, is_relevant in followed], dtype=np.bool_)
        return LoggedRun(trial.web, trial.topic, rows.reshape(-1, len(FEATURE_NAMES)), relevance)

    def close(self) -> None:
        """Close the web."""
        self._web_contexts.close()


def _noisy_policy(trial: Trial, apprentice: LinkScorer, seed: int) -> Policy:
    if not isinstance(apprentice, OnlineLinkScorer):
        raise TypeError(f"{trial.topic}: its link scorer does not learn, so it has no features")
    return Policy(
        trial.policy,
        NoisyLinkScorer(apprentice, seed),
        worth_waiting_for=WORTH_WAITING_FOR,
    )


def log_links(
    webs: Mapping[str, ExperimentWeb],
    prepared_topics: Mapping[str, PreparedTopic],
    trials: Sequence[Trial],
    settings: ExperimentSettings,
    *,
    jobs: int = 1,
) -> Iterator[list[LoggedRun]]:
    """Log all trials, ``jobs`` topics at a time; yield one topic's runs after the other.

    Trials of a topic must be adjacent; the order of topics is kept. Raises RecordedWebError, and
    BrokenProcessPool when a worker dies.
    """
    topics = [list(trials) for _, trials in groupby(trials, lambda t: (t.web, t.topic))]
    if jobs == 1:
        logger = LinkLogger(webs, prepared_topics, settings)
        try:
            yield from ([logger.log(trial) for trial in topic] for topic in topics)
        finally:
            logger.close()
        return
    # An open LMDB environment must not be inherited by a child: each opens its own web.
    context = spawn_context()
    pool = ProcessPoolExecutor(jobs, context, _start_log_worker, (webs, prepared_topics, settings))
    try:
        yield from pool.map(_log_in_worker, topics)
    finally:
        pool.shutdown(cancel_futures=True)


_log_worker: list[LinkLogger] = []


def _start_log_worker(
    webs: Mapping[str, ExperimentWeb],
    prepared_topics: Mapping[str, PreparedTopic],
    settings: ExperimentSettings,
) -> None:
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _log_worker.append(LinkLogger(webs, prepared_topics, settings))


def _exit_with_parent() -> None:
    """Exit when the parent was killed, which leaves workers waiting forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _log_in_worker(trials: Sequence[Trial]) -> list[LoggedRun]:
    return [_log_worker[0].log(trial) for trial in trials]
