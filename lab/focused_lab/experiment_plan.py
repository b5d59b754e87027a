"""Plan an experiment: every policy on every topic of every web, from the same seeds.

The plan decides everything that is known before the first run: which topics a web has pages of, how
many pages a run may fetch, where it starts. What cannot run is skipped with a reason.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path

import msgspec

from focused.classifier.topic_classifier import TopicClassifier
from focused.errors import ConfigurationError
from focused.link_scoring.protocols import LinkScorer
from focused.orderings import find_policy
from focused.reports.metrics import select_relevant_urls
from focused.topic import Topic
from focused.web.urls import normalize_url
from focused_lab.analysis.comparison_runs import ExperimentSettings, SkippedTopic
from focused_lab.ground_truth import GroundTruth
from focused_lab.oracles import ORACLES
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.link_graph import LinkGraph, open_link_graph
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.web_sources import ExperimentWeb, Warn, unknown_labels


@dataclass(frozen=True, slots=True)
class PreparedTopic:
    """A topic with the models of its live crawl.

    ``sample_urls`` trained the classifier; ``digest`` changes with anything that guides the crawl.
    """

    topic: Topic
    classifier: TopicClassifier
    apprentice: LinkScorer
    sample_urls: frozenset[str]
    digest: str = ""


def parse_budget(text: str) -> int | float:
    """Parse a number of pages as int, or the factor of ``x1.5`` as float. Raises
    ConfigurationError.
    """
    factor = text.startswith("x")
    try:
        value = float(text[1:]) if factor else int(text)
        if 0 < value < float("inf"):
            return value
    except ValueError:
        pass
    raise ConfigurationError(
        f"--budget: {text!r} is neither a number of pages above 0 nor a multiple of the "
        "topic's pages such as 'x1'"
    )


def budget_in_pages(budget: str, relevant: int) -> int:
    """The budget in pages, at least 1, for a topic with ``relevant`` pages."""
    value = parse_budget(budget)
    return value if isinstance(value, int) else max(1, round(value * relevant))


def parse_host_cap(text: str) -> int | None:
    """Parse pages per host, None for ``none``. Raises ConfigurationError."""
    if text == "none":
        return None
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise ConfigurationError(f"--host-cap: {text!r} is neither 'none' nor a number above 0")


def check_policies(names: Sequence[str], *, live: bool = False) -> None:
    """Raise ConfigurationError for an unknown policy, or an oracle in a live crawl."""
    for name in names:
        if name not in ORACLES:
            find_policy(name)
        elif live:
            raise ConfigurationError(
                f"--policies: {name} sees the labels, which a live crawl cannot: remove it, "
                "or remove --live"
            )


TOPIC_SEEDS = "topic"
_SAMPLED_KINDS = {"on-topic": True, "off-topic": False}
_EXPECTED = "'topic', nor 'on-topic:5' or 'off-topic:5' or the like, nor a file of URLs"


@dataclass(frozen=True, slots=True)
class SeedSet:
    """A kind of start, ``name`` as on the command line.

    ``drawn`` is (on topic, count) of sampled seeds, ``urls`` are those of a file; with neither the
    topic's own seeds are used.
    """

    name: str
    drawn: tuple[bool, int] | None = None
    urls: tuple[str, ...] = ()

    def urls_for(
        self, topic: Topic, ground_truth: GroundTruth, repeat: int, seed: int
    ) -> Sequence[str]:
        """The seeds of one repeat, the same for all policies.

        Raises ConfigurationError when there are too few pages to sample from.
        """
        if self.drawn is None:
            return self.urls or topic.seeds.urls
        # A string seeds by its SHA-512: the same on every machine and Python.
        rng = random.Random(f"{topic.name} {self.name} {repeat} {seed}")
        return ground_truth.sample_seeds(*self.drawn, rng)


def parse_seed_set(text: str, warn: Warn = lambda line: None) -> SeedSet:
    """Parse an argument of ``--seeds``; ``warn`` receives warnings about a file's invalid lines.

    Raises ConfigurationError.
    """
    if text == TOPIC_SEEDS:
        return SeedSet(text)
    kind, _, count = text.partition(":")
    if kind in _SAMPLED_KINDS and count.isascii() and count.isdigit() and int(count):
        return SeedSet(text, drawn=(_SAMPLED_KINDS[kind], int(count)))
    if kind not in _SAMPLED_KINDS and Path(text).is_file():
        return SeedSet(text, urls=_read_seed_file(Path(text), warn))
    raise ConfigurationError(f"--seeds: {text!r} is neither {_EXPECTED}")


def _read_seed_file(path: Path, warn: Warn) -> tuple[str, ...]:
    """Read one URL per line; ``#`` starts a comment at the line's start or after white space."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--seeds {path}: cannot be read as UTF-8: {error}") from error
    urls: list[str] = []
    invalid: list[int] = []
    for number, line in enumerate(lines, start=1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        url = normalize_url(text) if text else None
        if url is not None:
            urls.append(url)
        elif text:
            invalid.append(number)
    if not urls:
        raise ConfigurationError(f"--seeds {path}: contains no http or https URL")
    if invalid:
        shown = ", ".join(map(str, invalid[:5])) + (" ..." if len(invalid) > 5 else "")
        warn(f"--seeds {path}: skipped what is no http or https URL, in line {shown}")
    return tuple(dict.fromkeys(urls))


GraphReader = Callable[[ParsedWeb], LinkGraph]
"""Opens the link graph: :func:`~focused_lab.simulation.link_graph.open_link_graph`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A run to be made: ``budget`` in counted pages, ``host_cap`` in pages per host."""

    web: str
    topic: str
    policy: str
    seeds: str
    repeat: int
    budget: int
    host_cap: int | None
    start: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestedRuns:
    """The requested combinations.

    ``host_caps`` in pages per host, None for no cap; empty means each topic's own.
    """

    policies: Sequence[str]
    seeds: Sequence[SeedSet]
    host_caps: Sequence[int | None] = ()
    settings: ExperimentSettings = field(default_factory=ExperimentSettings)


@dataclass(slots=True)
class ExperimentPlan:
    """All trials without repeats; those of one web, topic and start are adjacent."""

    settings: ExperimentSettings
    trials: list[Trial] = field(default_factory=list)
    skipped: list[SkippedTopic] = field(default_factory=list)
    webs: list[dict[str, object]] = field(default_factory=list)


def webs_by_topic(
    webs: Sequence[ExperimentWeb], topics: Sequence[Topic]
) -> dict[str, list[ExperimentWeb]]:
    """For each topic the webs that have a page with one of its good labels."""
    having: dict[str, list[ExperimentWeb]] = {topic.name: [] for topic in topics}
    for each in webs:
        with each.open() as web:
            for topic in topics:
                relevant = select_relevant_urls(web.labels, topic.training.good)
                if not relevant.isdisjoint(web.page_urls):
                    having[topic.name].append(each)
    return having


def plan_experiment(
    webs: Sequence[ExperimentWeb],
    topics: Sequence[Topic],
    prepared_topics: Mapping[str, PreparedTopic],
    requested: RequestedRuns,
    warn: Warn = lambda line: None,
    read: GraphReader = open_link_graph,
) -> ExperimentPlan:
    """Plan all trials. A topic that is not prepared has no page on any of the webs.

    ``read`` opens a web's link graph, once, when a topic has pages there. Raises ConfigurationError
    when there is nothing to run.
    """
    check_policies(requested.policies, live=requested.settings.live)
    parse_budget(requested.settings.budget)
    plan = ExperimentPlan(requested.settings)
    for each in webs:
        with closing(ParsedWeb(each.open())) as parsed:
            web, graph = parsed.web, cache(partial(read, parsed))
            _warn_about_web(each, web, warn)
            plan.webs.append(
                {
                    "name": each.name,
                    "folder": str(each.folder),
                    "pages": len(web.page_urls),
                    "hosts": len(web.hosts),
                    "labelled": len(web.labels),
                    "damaged": web.damaged,
                }
            )
            for topic in topics:
                prepared_topic = prepared_topics.get(topic.name)
                planned = _TopicPlanner(
                    each.name, web, graph, topic, prepared_topic, requested, warn
                )
                plan.trials += dict.fromkeys(planned.trials())
                plan.skipped += planned.skipped
    if not plan.trials:
        reasons = "; ".join(dict.fromkeys(skip.why for skip in plan.skipped))
        raise ConfigurationError(f"nothing to run: {reasons}")
    for skip in plan.skipped:
        warn(f"{skip.topic} on {skip.web} is skipped: {skip.why}")
    return plan


def _warn_about_web(each: ExperimentWeb, web: RecordedWeb, warn: Warn) -> None:
    if web.damaged:
        warn(f"{each.folder}: {web.damaged:,} damaged records are skipped")
    if each.labels is not None and (unknown := unknown_labels(web, each.labels)):
        warn(f"{each.labels}: {unknown:,} of its URLs are not in {each.name} and don't count")


class _TopicPlanner:
    """Plans the trials of one topic on one web."""

    def __init__(
        self,
        name: str,
        web: RecordedWeb,
        graph: Callable[[], LinkGraph],
        topic: Topic,
        prepared_topic: PreparedTopic | None,
        requested: RequestedRuns,
        warn: Warn,
    ) -> None:
        self.skipped: list[SkippedTopic] = []
        self._name = name
        self._web = web
        self._graph = graph
        self._topic = topic
        self._prepared_topic = prepared_topic
        self._requested = requested
        self._warn = warn

    def trials(self) -> Iterator[Trial]:
        """Yield the possible trials; add the others to ``skipped``."""
        try:
            ground_truth = self._ground_truth()
        except ConfigurationError as error:
            self._skip(error)
            return
        budget = budget_in_pages(self._requested.settings.budget, ground_truth.relevant_count)
        if budget > ground_truth.countable_pages:
            self._warn(
                f"{self._topic.name}: a budget of {budget:,} pages exceeds {self._name}, where "
                f"{ground_truth.countable_pages:,} pages count; the runs will end early"
            )
        for cap, (seeds, repeat, start) in product(self._caps(), list(self._starts(ground_truth))):
            for policy in self._requested.policies:
                yield Trial(self._name, self._topic.name, policy, seeds, repeat, budget, cap, start)

    def _ground_truth(self) -> GroundTruth:
        if not self._web.labels:
            raise ConfigurationError(f"{self._name} has no labels: pass some with --labels")
        if self._prepared_topic is None:
            good = ", ".join(self._topic.training.good)
            raise ConfigurationError(
                f"no page of {self._name} has a label of training.good ({good})"
            )
        return GroundTruth(
            self._web,
            self._topic.training.good,
            self._prepared_topic.sample_urls,
            graph=self._graph,
        )

    def _caps(self) -> list[int | None]:
        caps = self._requested.host_caps or [self._topic.scope.max_pages_per_host]
        return list(dict.fromkeys(caps))

    def _starts(self, ground_truth: GroundTruth) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        for seeds, repeat in product(self._requested.seeds, range(self._requested.settings.repeat)):
            try:
                urls = seeds.urls_for(
                    self._topic, ground_truth, repeat, self._requested.settings.seed
                )
                if not any(url in self._web for url in urls):
                    raise ConfigurationError(f"none of the seeds ({seeds.name}) is in {self._name}")
            except ConfigurationError as error:
                self._skip(error)
            else:
                yield seeds.name, repeat, tuple(urls)

    def _skip(self, why: ConfigurationError) -> None:
        skip = SkippedTopic(self._name, self._topic.name, str(why))
        if skip not in self.skipped:
            self.skipped.append(skip)


def run_key(trial: Trial, settings: ExperimentSettings, *made_from: str) -> str:
    """Digest of everything that a run's result depends on.

    ``made_from`` are digests of its web, its prepared topic and this program.
    """
    common = {
        k: v for k, v in msgspec.structs.asdict(settings).items() if k not in ("budget", "repeat")
    }
    whole = json.dumps([asdict(trial), common, made_from], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()
