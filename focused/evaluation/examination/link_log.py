"""The log of links that the prior is fitted on: followed in simulated crawls, told by labels.

The crawls are the live crawl's own, but their order is noised: a log of nothing
but what one prior likes could not tell what else is worth following. What is
logged is a link's evidence as it was when its turn came, and whether the
page it led to has a good label. No label reaches a crawl under way.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby

import numpy as np

from focused.crawl import Settled
from focused.crawl.policy import Policy
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.examiner import Desk, on_terms
from focused.evaluation.examination.noised_worth import NoisedWorth
from focused.evaluation.examination.plan import Trial
from focused.evaluation.examination.terms import Terms
from focused.evaluation.examination.webs import ExaminedWeb
from focused.evaluation.simulation.network import drawn_latency
from focused.evaluation.simulation.simulator import simulate
from focused.learning.evidence import FEATURE_NAMES
from focused.learning.prior_fitting import LoggedRun
from focused.learning.protocols import LearningScorer, LinkScorer
from focused.policies.apprenticed import WORTH_WAITING_FOR


class LinkLogger:
    """Makes logged runs, one at a time. Holds one web and one topic's verdicts in memory."""

    def __init__(
        self, webs: Mapping[str, ExaminedWeb], candidates: Mapping[str, Candidate], terms: Terms
    ) -> None:
        """``webs`` and ``candidates`` by name; what scores for a candidate is an apprentice."""
        self._webs = webs
        self._candidates = candidates
        self._terms = terms
        self._desk: Desk | None = None

    def log(self, trial: Trial) -> LoggedRun:
        """Crawl as the trial says, whatever its policy, and log the links followed.

        Left out are seeds, training pages, copies, and pages without a label: of
        these nobody knows what they are. Raises RecordedWebError, and TypeError
        when the candidate's scorer is no apprentice.
        """
        desk = self._desk_for(trial)
        followed: list[tuple[tuple[float, ...], bool]] = []

        def note(settled: Settled) -> None:
            link = settled.link
            if settled.judgement is None or settled.duplicate_of is not None:
                return
            verdict = desk.referee.verdict_of(link.url)
            if verdict is not None and len(link.evidence) == len(FEATURE_NAMES):
                followed.append((tuple(link.evidence), verdict))

        lots = self._terms.seed * 1_000_003 + trial.repeat
        simulate(
            on_terms(desk.candidate.topic, trial),
            desk.judge,
            desk.network,
            _noised(trial, desk.apprentice(), lots),
            latency=drawn_latency(self._terms.latency_s, lots),
            training_urls=desk.referee.training_urls,
            seeds=trial.start,
            pages=trial.budget,
            watch=note,
        )
        rows = np.array([evidence for evidence, _ in followed], dtype=np.float64)
        verdicts = np.array([verdict for _, verdict in followed], dtype=np.bool_)
        return LoggedRun(trial.web, trial.topic, rows.reshape(-1, len(FEATURE_NAMES)), verdicts)

    def close(self) -> None:
        """Close the web."""
        if self._desk is not None:
            self._desk.close()
            self._desk = None

    def _desk_for(self, trial: Trial) -> Desk:
        if self._desk is None or self._desk.name != trial.web:
            self.close()
            self._desk = Desk(self._webs[trial.web])
        self._desk.lay_out(self._candidates[trial.topic])
        return self._desk


def _noised(trial: Trial, apprentice: LinkScorer, lots: int) -> Policy:
    if not isinstance(apprentice, LearningScorer):
        raise TypeError(f"{trial.topic}: its link scorer does not learn: there is no evidence")
    return Policy(
        trial.policy,
        NoisedWorth(apprentice, lots),
        worth_waiting_for=WORTH_WAITING_FOR,
    )


def log_links(
    webs: Mapping[str, ExaminedWeb],
    candidates: Mapping[str, Candidate],
    trials: Sequence[Trial],
    terms: Terms,
    *,
    jobs: int = 1,
) -> Iterator[list[LoggedRun]]:
    """Log all trials, ``jobs`` topics at a time; yield the runs of one topic after the other.

    Trials of a topic must lie side by side. The order is the trials', however
    many jobs there are. Raises RecordedWebError, and BrokenProcessPool when a
    worker dies.
    """
    topics = [list(trials) for _, trials in groupby(trials, lambda t: (t.web, t.topic))]
    if jobs == 1:
        logger = LinkLogger(webs, candidates, terms)
        try:
            yield from ([logger.log(trial) for trial in topic] for topic in topics)
        finally:
            logger.close()
        return
    # An open LMDB environment must not be taken into a child: each opens its own web.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (webs, candidates, terms))
    try:
        yield from pool.map(_log_in_worker, topics)
    finally:
        pool.shutdown(cancel_futures=True)


_worker: list[LinkLogger] = []


def _start_worker(
    webs: Mapping[str, ExaminedWeb], candidates: Mapping[str, Candidate], terms: Terms
) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker.append(LinkLogger(webs, candidates, terms))


def _end_with_parent() -> None:
    """A parent that was killed told nobody: its workers would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker
    parent.join()
    os._exit(1)


def _log_in_worker(trials: Sequence[Trial]) -> list[LoggedRun]:
    return [_worker[0].log(trial) for trial in trials]
