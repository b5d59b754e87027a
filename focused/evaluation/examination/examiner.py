"""The examiner: makes one run after another, each a simulated crawl of its own.

What the runs share is read-only or remembered work, so runs may go on in
several processes. The same trial gives the same row, CPU seconds and memory
apart.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from focused.crawl import Settled
from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.measures import Row, Spent, row_of
from focused.evaluation.examination.oracles import ORACLES
from focused.evaluation.examination.peak_memory import peak_mb, reset_peak
from focused.evaluation.examination.plan import Trial
from focused.evaluation.examination.referee import Referee
from focused.evaluation.examination.shared_work import Meter, MeteredNetwork, RememberingJudge
from focused.evaluation.examination.terms import Terms
from focused.evaluation.examination.webs import ExaminedWeb
from focused.evaluation.simulation.link_graph import LinkGraph, open_link_graph
from focused.evaluation.simulation.network import drawn_latency
from focused.evaluation.simulation.parsed_web import ParsedWeb
from focused.evaluation.simulation.simulator import SimulatedRun, simulate
from focused.learning.protocols import LinkScorer
from focused.policies import Aids, policy_named
from focused.topic import Budget, Topic
from focused.web.page import FailureKind


class Stopped(Exception):  # noqa: N818  # no error: somebody asked for it
    """A run was given up because the examination is to end."""


class Examiner:
    """Makes runs, one at a time. Holds one web and one topic's verdicts in memory."""

    def __init__(
        self,
        webs: Mapping[str, ExaminedWeb],
        candidates: Mapping[str, Candidate],
        terms: Terms,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """``webs`` and ``candidates`` by name; when ``stop`` says so, a run is given up."""
        self._webs = webs
        self._candidates = candidates
        self._terms = terms
        self._stop = stop
        self._meter = Meter()
        self._desk: Desk | None = None

    def run(self, trial: Trial) -> Row:
        """Make one run and judge it.

        Raises Stopped, RecordedWebError, and ConfigurationError when judge or
        policy failed on most pages: such a run would count as a poor policy.
        """
        desk = self._desk_for(trial)
        reset_peak()
        shared_s, began_s = self._meter.shared_s, time.process_time()
        run = self._simulate(desk, trial, self._policy(desk, trial))
        cpu_s = time.process_time() - began_s - (self._meter.shared_s - shared_s)
        _check_digested(trial, run)
        spent = Spent(run.simulated_s, cpu_s, peak_mb())
        return row_of(trial, desk.referee, run.pages, run.ended_because, spent)

    def close(self) -> None:
        """Close the web."""
        if self._desk is not None:
            self._desk.close()
            self._desk = None

    def _desk_for(self, trial: Trial) -> Desk:
        candidate = self._candidates[trial.topic]
        if self._desk is None or self._desk.name != trial.web:
            self.close()
            self._desk = Desk(self._webs[trial.web], self._meter)
        self._desk.lay_out(candidate)
        return self._desk

    def _policy(self, desk: Desk, trial: Trial) -> Policy:
        if trial.policy in ORACLES:
            return ORACLES[trial.policy](desk.referee, desk.judge, desk.network)

        def rehearse(policy: Policy) -> Sequence[Settled]:
            settled: list[Settled] = []
            self._simulate(desk, trial, policy, watch=settled.append)
            return settled

        aids = Aids(desk.judge, desk.apprentice(), self._lots(trial), rehearse)
        return policy_named(trial.policy)(aids)

    def _simulate(
        self,
        desk: Desk,
        trial: Trial,
        policy: Policy,
        watch: Callable[[Settled], object] = lambda settled: None,
    ) -> SimulatedRun:
        def watch_and_stop(settled: Settled) -> None:
            if self._stop():
                raise Stopped
            watch(settled)

        return simulate(
            on_terms(desk.candidate.topic, trial),
            desk.judge,
            desk.network,
            policy,
            latency=drawn_latency(self._terms.latency_s, self._lots(trial)),
            training_urls=desk.referee.training_urls,
            seeds=trial.start,
            pages=trial.budget,
            watch=watch_and_stop,
        )

    def _lots(self, trial: Trial) -> int:
        return self._terms.seed * 1_000_003 + trial.repeat


class Desk:
    """An open web with one topic laid out on it: its judge, its referee."""

    candidate: Candidate
    judge: RememberingJudge
    referee: Referee

    def __init__(self, web: ExaminedWeb, meter: Meter | None = None) -> None:
        """Raises RecordedWebError."""
        self.name = web.name
        self._meter = meter or Meter()
        self._web = web.open()
        self._parsed = ParsedWeb(self._web)
        self.network = MeteredNetwork(self._parsed, self._meter)
        self._laid_out = ""
        self._graph: Callable[[], LinkGraph] = cache(lambda: open_link_graph(self._parsed))

    def lay_out(self, candidate: Candidate) -> None:
        """Put the topic on the desk, unless it lies there."""
        if self._laid_out == candidate.topic.name:
            return
        topic = candidate.topic
        self.candidate = candidate
        self.judge = RememberingJudge(candidate.judge, self._meter)
        self.referee = Referee(
            self._web,
            topic.training.good,
            candidate.sample_urls,
            graph=self._graph,
            scope=topic.scope,
        )
        self._laid_out = topic.name

    @property
    def samples(self) -> int:
        """How many of the web's pages are training pages."""
        return len(self._web.page_urls) - self.referee.countable

    def apprentice(self) -> LinkScorer:
        """An apprentice for one run: what it learns there it must not know in the next."""
        judge = self.candidate.judge
        return copy.deepcopy(self.candidate.apprentice, {id(judge): judge})

    def close(self) -> None:
        """Close cache and web."""
        self._parsed.close()


def _check_digested(trial: Trial, run: SimulatedRun) -> None:
    undigested = int((run.pages["failure"] == FailureKind.UNDIGESTED).sum())
    if undigested > int((run.pages["outcome"] == "fetched").sum()):
        raise ConfigurationError(
            f"{trial.policy} on {trial.topic}: {undigested:,} fetched pages could not be judged or "
            "their links not be scored; see above why. Mend it: the same command goes on"
        )


def on_terms(topic: Topic, trial: Trial) -> Topic:
    """The topic with a trial's host cap, and no budget of its own: the trial's pages are it."""
    scope = replace(topic.scope, max_pages_per_host=trial.host_cap)
    return replace(topic, scope=scope, budget=Budget())
