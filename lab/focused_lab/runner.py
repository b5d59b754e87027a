"""Run trials: simulate each crawl and measure it, with the work that policies share done once.

Parsing and classifying a page cost the same under every policy, and far more than choosing what to
fetch. Both are cached; :class:`SharedCpuTime` counts the seconds they took, and a run's CPU time
excludes them. The same trial gives the same record, except for CPU seconds and memory.
"""

from __future__ import annotations

import copy
import math
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.classifier.topic_classifier import (
    TopicClassifier,
    likeliest_category,
    score_meanings,
)
from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.crawl.spam_filter import spam_classifier_of
from focused.errors import ConfigurationError
from focused.link_scoring.protocols import LinkScorer
from focused.orderings import PolicyInputs, find_policy
from focused.spam.spam_classifier import SpamClassifier
from focused.topic import Budget, Topic
from focused.web.page import Classification, Failed, FailureKind, Fetched, Outcome, Page
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import PreparedTopic, Trial
from focused_lab.ground_truth import GroundTruth
from focused_lab.oracles import ORACLES
from focused_lab.run_measures import (
    RunCosts,
    RunRecord,
    make_run_record,
    peak_mb,
    reset_peak,
)
from focused_lab.simulation.link_graph import LinkGraph, open_link_graph
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import Network, SimulatedRun, hashed_latency, simulate
from focused_lab.web_sources import ExperimentWeb


class SharedCpuTime:
    """CPU seconds of this process spent on shared work."""

    def __init__(self) -> None:
        self.shared_s = 0.0


class MeteredNetwork:
    """A network with a cache of parsed pages; cache misses count as shared work.

    An answer from the cache has a body of zeros: see
    :class:`focused_lab.simulation.parsed_web.ParsedWeb`.
    """

    def __init__(self, network: Network, meter: SharedCpuTime) -> None:
        self._network = network
        self._meter = meter

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        began_s = time.process_time()
        outcome = self._network.answer(url, now, elapsed_s)
        if isinstance(outcome, Fetched) and _is_uncached(outcome):
            self._meter.shared_s += time.process_time() - began_s
        return outcome

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse the answer."""
        began_s = time.process_time()
        page = self._network.parse(fetched)
        if _is_uncached(fetched):
            self._meter.shared_s += time.process_time() - began_s
        return page


class CachingClassifier:
    """Classifies each page of a web once.

    Caches results by URL, about 150 bytes each: a recorded web gives a URL the same page every
    time.
    """

    def __init__(self, classifier: TopicClassifier, meter: SharedCpuTime) -> None:
        self._classifier = classifier
        self._meter = meter
        self._places: dict[int, int] = {}
        self._relevances = array("d")
        self._untempered = array("d")  # NaN for none
        self._flags = bytearray()
        spam = spam_classifier_of(classifier)
        self.spam = None if spam is None else _CachingSpamClassifier(spam, meter)

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self._classifier.threshold

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Score short texts, shape (n,), in nats of log-odds."""
        return self._classifier.score_texts(texts)

    def score_meanings(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Score short texts by meaning, shape (n,), in nats of log-odds."""
        return score_meanings(self._classifier, texts)

    def likeliest_category(self, page: Page) -> str:
        """Return the most likely category of a page, on topic or not."""
        return likeliest_category(self._classifier, page)

    def classify(self, page: Page) -> Classification:
        """Classify one page, or return the cached result."""
        key = xxhash.xxh3_64_intdigest(page.url.encode())
        place = self._places.get(key)
        if place is None:
            began_s = time.process_time()
            place = self._keep(key, self._classifier.classify(page))
            self._meter.shared_s += time.process_time() - began_s
        untempered = self._untempered[place]
        return Classification(
            self._relevances[place],
            bool(self._flags[place] & 1),
            bool(self._flags[place] & 2),
            untempered=None if math.isnan(untempered) else untempered,
        )

    def _keep(self, key: int, classification: Classification) -> int:
        self._relevances.append(classification.relevance)
        untempered = classification.untempered
        self._untempered.append(math.nan if untempered is None else untempered)
        self._flags.append(classification.on_topic | classification.known << 1)
        self._places[key] = len(self._flags) - 1
        return self._places[key]


class _CachingSpamClassifier:
    """Rates each page of a web once, as :class:`CachingClassifier` classifies it."""

    def __init__(self, classifier: SpamClassifier, meter: SharedCpuTime) -> None:
        self._classifier = classifier
        self._meter = meter
        self._evidence: dict[int, float | None] = {}
        self.good_mean, self.spam_mean = classifier.good_mean, classifier.spam_mean
        self.spam_sites = classifier.spam_sites

    def evidence(self, page: Page) -> float | None:
        """Rate one page, or return the cached result."""
        key = xxhash.xxh3_64_intdigest(page.url.encode())
        if key not in self._evidence:
            began_s = time.process_time()
            self._evidence[key] = self._classifier.evidence(page)
            self._meter.shared_s += time.process_time() - began_s
        return self._evidence[key]


def _is_uncached(fetched: Fetched) -> bool:
    return fetched.body[:1] not in (b"", b"\0")


class RunCancelled(Exception):  # noqa: N818  # no error: somebody asked for it
    """A run was cancelled because the experiment is to end."""


class ExperimentRunner:
    """Runs trials one at a time; keeps one web and one topic's classifications in memory."""

    def __init__(
        self,
        webs: Mapping[str, ExperimentWeb],
        prepared_topics: Mapping[str, PreparedTopic],
        settings: ExperimentSettings,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take ``webs`` and ``prepared_topics`` by name; a run ends when ``stop`` returns True."""
        self._settings = settings
        self._stop = stop
        self._meter = SharedCpuTime()
        self._web_contexts = WebContextCache(webs, prepared_topics, self._meter)

    def run(self, trial: Trial) -> RunRecord:
        """Run one trial and measure it.

        Raises RunCancelled, RecordedWebError, and ConfigurationError when classifier or policy
        failed on most pages, which would count as a poor policy.
        """
        web_context = self._web_contexts.for_trial(trial)
        reset_peak()
        shared_s, began_s = self._meter.shared_s, time.process_time()
        run = simulate_trial(
            web_context,
            trial,
            seed=run_seed(self._settings, trial),
            latency_s=self._settings.latency_s,
            watch=self._cancel_if_stopped,
        )
        cpu_s = time.process_time() - began_s - (self._meter.shared_s - shared_s)
        _check_internal_errors(trial, run)
        spent = RunCosts(run.simulated_s, cpu_s, peak_mb())
        return make_run_record(trial, web_context.ground_truth, run.pages, run.end_reason, spent)

    def close(self) -> None:
        """Close the web."""
        self._web_contexts.close()

    def _cancel_if_stopped(self, settled: SettledFetch) -> None:
        if self._stop():
            raise RunCancelled


class WebContext:
    """An open web with one topic selected: its classifier and ground truth."""

    prepared_topic: PreparedTopic
    classifier: CachingClassifier
    ground_truth: GroundTruth

    def __init__(self, web: ExperimentWeb, meter: SharedCpuTime | None = None) -> None:
        """Raises RecordedWebError."""
        self.name = web.name
        self._meter = meter or SharedCpuTime()
        self._web = web.open()
        self._parsed = ParsedWeb(self._web)
        self.network = MeteredNetwork(self._parsed, self._meter)
        self._laid_out = ""
        self._graph: Callable[[], LinkGraph] = cache(lambda: open_link_graph(self._parsed))

    def select_topic(self, prepared_topic: PreparedTopic) -> None:
        """Select the topic, unless it is already selected."""
        if self._laid_out == prepared_topic.topic.name:
            return
        topic = prepared_topic.topic
        self.prepared_topic = prepared_topic
        self.classifier = CachingClassifier(prepared_topic.classifier, self._meter)
        self.ground_truth = GroundTruth(
            self._web,
            topic.training.good,
            prepared_topic.sample_urls,
            graph=self._graph,
            scope=topic.scope,
        )
        self._laid_out = topic.name

    @property
    def samples(self) -> int:
        """Number of the web's pages that are training pages."""
        return len(self._web.page_urls) - self.ground_truth.countable_pages

    def apprentice(self) -> LinkScorer:
        """A fresh copy of the link scorer: what it learns in one run must not reach the next."""
        classifier = self.prepared_topic.classifier
        return copy.deepcopy(self.prepared_topic.apprentice, {id(classifier): classifier})

    def close(self) -> None:
        """Close cache and web."""
        self._parsed.close()


class WebContextCache:
    """Keeps the web of the last trial open."""

    def __init__(
        self,
        webs: Mapping[str, ExperimentWeb],
        prepared_topics: Mapping[str, PreparedTopic],
        meter: SharedCpuTime | None = None,
    ) -> None:
        """``webs`` and ``prepared_topics`` by name."""
        self._webs = webs
        self._prepared_topics = prepared_topics
        self._meter = meter
        self._open: WebContext | None = None

    def for_trial(self, trial: Trial) -> WebContext:
        """Return the trial's web with its topic selected. Raises RecordedWebError."""
        prepared_topic = self._prepared_topics[trial.topic]
        if self._open is None or self._open.name != trial.web:
            self.close()
            self._open = WebContext(self._webs[trial.web], self._meter)
        self._open.select_topic(prepared_topic)
        return self._open

    def close(self) -> None:
        """Close the open web, if any."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _check_internal_errors(trial: Trial, run: SimulatedRun) -> None:
    internal_errors = int((run.pages["failure"] == FailureKind.INTERNAL_ERROR).sum())
    if internal_errors > int((run.pages["outcome"] == "fetched").sum()):
        raise ConfigurationError(
            f"{trial.policy} on {trial.topic}: {internal_errors:,} fetched pages could not be "
            "classified, or "
            "their links not be scored; see the errors above, then run the same command to continue"
        )


def run_seed(settings: ExperimentSettings, trial: Trial) -> int:
    """Return the random seed of a trial: of latencies and random orders."""
    return settings.seed * 1_000_003 + trial.repeat


def simulate_trial(
    context: WebContext,
    trial: Trial,
    *,
    policy: Policy | None = None,
    topic: Topic | None = None,
    classifier: TopicClassifier | None = None,
    network: Network | None = None,
    training_urls: frozenset[str] | None = None,
    start: Sequence[str] | None = None,
    seed: int | None = None,
    latency_s: float = 0.2,
    watch: Callable[[SettledFetch], object] = lambda settled: None,
) -> SimulatedRun:
    """Simulate a trial, with some of its parts replaced.

    The defaults are those of an experiment: the trial's policy and start, ``topic_for_run``, the
    cached classifier, the web and the training pages of the context, the trial's repeat as random
    seed. A network whose answers differ from crawl to crawl needs a classifier without cache.
    ``watch`` receives each settled fetch, also those of a policy's preliminary crawl.
    """
    guide = context.classifier if classifier is None else classifier
    web: Network = context.network if network is None else network
    known = context.ground_truth.training_urls if training_urls is None else training_urls
    random_seed = trial.repeat if seed is None else seed

    def crawl(policy: Policy, watch: Callable[[SettledFetch], object]) -> SimulatedRun:
        return simulate(
            topic_for_run(context.prepared_topic.topic, trial) if topic is None else topic,
            guide,
            web,
            policy,
            latency=hashed_latency(latency_s, random_seed),
            training_urls=known,
            seeds=trial.start if start is None else start,
            pages=trial.budget,
            watch=watch,
        )

    def preliminary_crawl(policy: Policy) -> Sequence[SettledFetch]:
        settled: list[SettledFetch] = []

        def note(fetch: SettledFetch) -> None:
            watch(fetch)
            settled.append(fetch)

        crawl(policy, note)
        return settled

    if policy is None and trial.policy in ORACLES:
        policy = ORACLES[trial.policy](context.ground_truth, guide, web)
    elif policy is None:
        inputs = PolicyInputs(guide, context.apprentice(), random_seed, preliminary_crawl)
        policy = find_policy(trial.policy)(inputs)
    return crawl(policy, watch)


def topic_for_run(topic: Topic, trial: Trial) -> Topic:
    """The topic with a trial's host cap and without a budget: the trial's replaces it."""
    scope = replace(topic.scope, max_pages_per_host=trial.host_cap)
    return replace(topic, scope=scope, budget=Budget())
