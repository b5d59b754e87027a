"""The examination: policies crawl the same webs from the same seeds, and are judged alike.

Every run is a simulated crawl of its own, so runs may go on in several
processes; what they share is read-only or the cache of parsed pages. The same
plan gives the same results, CPU seconds apart.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focused.crawl import Settled
from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.evaluation.examination.oracles import ORACLES
from focused.evaluation.examination.referee import Referee
from focused.evaluation.metrics import cumulative_harvest, harvest_rate
from focused.evaluation.simulation.network import drawn_latency
from focused.evaluation.simulation.parsed_web import ParsedWeb
from focused.evaluation.simulation.simulator import SimulatedRun, simulate
from focused.learning.protocols import LinkScorer, TopicJudge
from focused.policies import Aids, policy_named
from focused.recorded.store import RecordedWeb
from focused.topic import Budget, Topic

TOPIC_SEEDS = "topic"
_DRAWN = {"on-topic": True, "off-topic": False}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A topic with what guides its live crawl; ``sample_urls`` trained the judge."""

    topic: Topic
    judge: TopicJudge
    apprentice: LinkScorer
    sample_urls: frozenset[str]


@dataclass(frozen=True, slots=True)
class Terms:
    """What all runs have in common.

    ``budget`` is in pages that count; ``host_cap`` is in pages per host, None
    leaves the topic's own; ``latency_s`` is the mean over URLs.
    """

    budget: int
    host_cap: int | None = None
    latency_s: float = 0.2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """One run to be made. ``seeds`` is ``topic``, ``on-topic:N`` or ``off-topic:N``."""

    topic: str
    policy: str
    seeds: str
    repeat: int


@dataclass(frozen=True, slots=True)
class Result:
    """What one run brought, by the labels.

    ``verdicts`` has shape (fetched,), on topic or not, training pages left
    out. ``harvest`` is the share on topic of the fetched, ``recall`` that of
    the web's relevant pages, ``area`` the mean harvest rate over the budget
    (see :func:`area_under`); ``hosts`` had on-topic pages.
    """

    trial: Trial
    web: str
    verdicts: NDArray[np.bool_]
    relevant: int
    harvest: float
    recall: float
    area: float
    hosts: int
    ended_because: str
    simulated_s: float
    cpu_s: float


def plan(
    topics: Sequence[str], policies: Sequence[str], seeds: Sequence[str], repeats: int
) -> list[Trial]:
    """All runs, each once, those of one start side by side.

    Raises ConfigurationError for unknown names.
    """
    for name in policies:
        if name not in ORACLES:
            policy_named(name)
    for text in seeds:
        parse_seeds(text)
    each = product(topics, seeds, range(repeats), policies)
    trials = (Trial(topic, policy, start, repeat) for topic, start, repeat, policy in each)
    return list(dict.fromkeys(trials))


def parse_seeds(text: str) -> tuple[bool, int] | None:
    """``on-topic:5`` as (on topic, 5); None for the topic's own."""
    if text == TOPIC_SEEDS:
        return None
    kind, _, count = text.partition(":")
    if kind not in _DRAWN or not count.isascii() or not count.isdigit() or int(count) < 1:
        raise ConfigurationError(
            f"--seeds: {text!r} is neither 'topic' nor such as 'on-topic:5' or 'off-topic:5'"
        )
    return _DRAWN[kind], int(count)


def area_under(verdicts: NDArray[np.bool_], budget: int) -> float:
    """Mean over n = 1..budget of the share on topic of the first n pages, in [0, 1].

    What a run left of its budget counts as pages off topic.
    """
    padded = np.zeros(budget, dtype=bool)
    padded[: verdicts.size] = verdicts[:budget]
    return float(cumulative_harvest(padded).mean())


class Examiner:
    """Makes runs on one web."""

    def __init__(self, web: Path, candidates: Mapping[str, Candidate], terms: Terms) -> None:
        """``candidates`` by name of topic. Raises RecordedWebError, ConfigurationError."""
        self._web = RecordedWeb.open(web)
        self._network = ParsedWeb(self._web)
        self._candidates = candidates
        self._terms = terms
        self._referees = {
            name: Referee(self._web, each.topic.training.good, each.sample_urls)
            for name, each in candidates.items()
        }

    def run(self, trial: Trial) -> Result:
        """Make one run and judge it."""
        terms = self._terms
        referee = self._referees[trial.topic]
        lots = terms.seed * 1_000_003 + trial.repeat
        run = self._simulate(trial, self._policy(trial, lots), lots)
        verdicts = referee.verdicts(run.pages)
        return Result(
            trial=trial,
            web=str(self._web.details.get("name", self._web.folder.name)),
            verdicts=verdicts,
            relevant=len(referee.relevant),
            harvest=harvest_rate(verdicts),
            recall=float(verdicts.sum()) / len(referee.relevant),
            area=area_under(verdicts, terms.budget),
            hosts=referee.hosts(run.pages),
            ended_because=run.ended_because,
            simulated_s=run.simulated_s,
            cpu_s=run.cpu_s,
        )

    def _policy(self, trial: Trial, lots: int) -> Policy:
        if trial.policy in ORACLES:
            return ORACLES[trial.policy](self._referees[trial.topic])
        candidate = self._candidates[trial.topic]

        def rehearse(policy: Policy) -> Sequence[Settled]:
            settled: list[Settled] = []
            self._simulate(trial, policy, lots, watch=settled.append)
            return settled

        aids = Aids(candidate.judge, candidate.apprentice, lots, rehearse)
        return policy_named(trial.policy)(aids)

    def _simulate(
        self,
        trial: Trial,
        policy: Policy,
        lots: int,
        watch: Callable[[Settled], object] | None = None,
    ) -> SimulatedRun:
        candidate = self._candidates[trial.topic]
        return simulate(
            _on_terms(candidate.topic, self._terms),
            candidate.judge,
            self._network,
            policy,
            latency=drawn_latency(self._terms.latency_s, lots),
            training_urls=self._referees[trial.topic].training_urls,
            seeds=self.seeds_of(trial),
            pages=self._terms.budget,
            watch=watch,
        )

    def seeds_of(self, trial: Trial) -> Sequence[str]:
        """Where a run starts: the same for all policies of one repeat."""
        drawn = parse_seeds(trial.seeds)
        if drawn is None:
            return self._candidates[trial.topic].topic.seeds.urls
        # A string seeds by its SHA-512: the same on every machine and Python.
        rng = random.Random(f"{trial.topic} {trial.seeds} {trial.repeat} {self._terms.seed}")
        return self._referees[trial.topic].draw_seeds(*drawn, rng)

    def close(self) -> None:
        """Close the web."""
        self._network.close()


def examine(
    web: Path,
    candidates: Mapping[str, Candidate],
    trials: Sequence[Trial],
    terms: Terms,
    *,
    jobs: int = 1,
) -> Iterator[Result]:
    """Make all runs, ``jobs`` at a time, and yield each result as it comes.

    Raises RecordedWebError and ConfigurationError before the first run.
    """
    examiner = Examiner(web, candidates, terms)
    try:
        for trial in trials:
            examiner.seeds_of(trial)
        if jobs == 1:
            yield from map(examiner.run, trials)
            return
    finally:
        examiner.close()
    # Not forked: an open LMDB environment must not be taken into a child.
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _start_worker, (web, candidates, terms)
    )
    try:
        for done in as_completed([pool.submit(_run_in_worker, trial) for trial in trials]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


_worker: list[Examiner] = []


def _start_worker(web: Path, candidates: Mapping[str, Candidate], terms: Terms) -> None:
    # Ctrl-C is for the parent, which lets the runs under way end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker.append(Examiner(web, candidates, terms))


def _run_in_worker(trial: Trial) -> Result:
    return _worker[0].run(trial)


def _on_terms(topic: Topic, terms: Terms) -> Topic:
    """The topic without a budget of its own: the pages that count are the budget."""
    scope = topic.scope
    if terms.host_cap is not None:
        scope = replace(scope, max_pages_per_host=terms.host_cap)
    return replace(topic, scope=scope, budget=Budget())
