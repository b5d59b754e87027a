"""What is to be run: every policy on every topic of every web, from the same starts.

The plan settles all that can be settled before the first run: which topics a
web has pages of, how many pages a run may fetch, where it starts. What cannot
be run is left out with a reason; what is odd is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import product

from focused.errors import ConfigurationError
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.referee import Referee
from focused.evaluation.examination.starts import Seeds
from focused.evaluation.examination.terms import Terms, check_policies, pages_of, parse_budget
from focused.evaluation.examination.webs import ExaminedWeb, Say, unknown_labels
from focused.evaluation.metrics import relevant_urls
from focused.evaluation.simulation.link_graph import LinkGraph, open_link_graph
from focused.evaluation.simulation.parsed_web import ParsedWeb
from focused.recorded.store import RecordedWeb
from focused.topic import Topic

Read = Callable[[ParsedWeb], LinkGraph]
"""Reads a web whole: see :func:`~focused.evaluation.simulation.link_graph.open_link_graph`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run to be made, ``budget`` in pages that count, ``host_cap`` in pages per host."""

    web: str
    topic: str
    policy: str
    seeds: str
    repeat: int
    budget: int
    host_cap: int | None
    start: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for: each of these with each of the others.

    ``host_caps`` in pages per host, None for no cap; empty: each topic's own.
    """

    policies: Sequence[str]
    seeds: Sequence[Seeds]
    host_caps: Sequence[int | None] = ()
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A topic that is not examined on a web, and why."""

    web: str
    topic: str
    why: str


@dataclass(slots=True)
class Plan:
    """All runs, each once; those of one web, topic and start lie side by side."""

    terms: Terms
    trials: list[Trial] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    webs: list[dict[str, object]] = field(default_factory=list)


def webs_with(webs: Sequence[ExaminedWeb], topics: Sequence[Topic]) -> dict[str, list[ExaminedWeb]]:
    """By name of topic, those of ``webs`` that have a page with a good label of it."""
    having: dict[str, list[ExaminedWeb]] = {topic.name: [] for topic in topics}
    for each in webs:
        with each.open() as web:
            for topic in topics:
                relevant = relevant_urls(web.labels, topic.training.good)
                if not relevant.isdisjoint(web.page_urls):
                    having[topic.name].append(each)
    return having


def make_plan(
    webs: Sequence[ExaminedWeb],
    topics: Sequence[Topic],
    candidates: Mapping[str, Candidate],
    wish: Wish,
    say: Say = lambda line: None,
    read: Read = open_link_graph,
) -> Plan:
    """Lay out all runs. A topic without a candidate has no page on any of the webs.

    ``read`` reads a web whole, once, when a topic has pages there.
    Raises ConfigurationError when there is nothing to run.
    """
    check_policies(wish.policies, live=wish.terms.live)
    parse_budget(wish.terms.budget)
    plan = Plan(wish.terms)
    for each in webs:
        with closing(ParsedWeb(each.open())) as parsed:
            web, graph = parsed.web, cache(partial(read, parsed))
            _tell_of(each, web, say)
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
                candidate = candidates.get(topic.name)
                planned = _Planning(each.name, web, graph, topic, candidate, wish, say)
                plan.trials += dict.fromkeys(planned.trials())
                plan.skipped += planned.skipped
    if not plan.trials:
        reasons = "; ".join(dict.fromkeys(skip.why for skip in plan.skipped))
        raise ConfigurationError(f"nothing is left to run: {reasons}")
    for skip in plan.skipped:
        say(f"{skip.topic} on {skip.web} is skipped: {skip.why}")
    return plan


def _tell_of(each: ExaminedWeb, web: RecordedWeb, say: Say) -> None:
    if web.damaged:
        say(f"{each.folder}: {web.damaged:,} damaged records are passed over")
    if each.labels is not None and (unknown := unknown_labels(web, each.labels)):
        say(f"{each.labels}: {unknown:,} of its URLs are not in {each.name}, they do not count")


class _Planning:
    """One topic on one web."""

    def __init__(
        self,
        name: str,
        web: RecordedWeb,
        graph: Callable[[], LinkGraph],
        topic: Topic,
        candidate: Candidate | None,
        wish: Wish,
        say: Say,
    ) -> None:
        self.skipped: list[Skipped] = []
        self._name = name
        self._web = web
        self._graph = graph
        self._topic = topic
        self._candidate = candidate
        self._wish = wish
        self._say = say

    def trials(self) -> Iterator[Trial]:
        """The runs that can be made; what cannot goes to ``skipped``."""
        try:
            referee = self._referee()
        except ConfigurationError as error:
            self._skip(error)
            return
        budget = pages_of(self._wish.terms.budget, referee.to_find)
        if budget > referee.countable:
            self._say(
                f"{self._topic.name}: a budget of {budget:,} pages is beyond {self._name}, where "
                f"{referee.countable:,} pages count; the runs will end early"
            )
        for cap, (seeds, repeat, start) in product(self._caps(), list(self._starts(referee))):
            for policy in self._wish.policies:
                yield Trial(self._name, self._topic.name, policy, seeds, repeat, budget, cap, start)

    def _referee(self) -> Referee:
        if not self._web.labels:
            raise ConfigurationError(f"{self._name} has no labels: give some with --labels")
        if self._candidate is None:
            good = ", ".join(self._topic.training.good)
            raise ConfigurationError(
                f"no page of {self._name} has a label of training.good ({good})"
            )
        return Referee(
            self._web,
            self._topic.training.good,
            self._candidate.sample_urls,
            graph=self._graph,
        )

    def _caps(self) -> list[int | None]:
        caps = self._wish.host_caps or [self._topic.scope.max_pages_per_host]
        return list(dict.fromkeys(caps))

    def _starts(self, referee: Referee) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        for seeds, repeat in product(self._wish.seeds, range(self._wish.terms.repeat)):
            try:
                urls = seeds.of(self._topic, referee, repeat, self._wish.terms.seed)
                if not any(url in self._web for url in urls):
                    raise ConfigurationError(f"none of the seeds ({seeds.name}) is in {self._name}")
            except ConfigurationError as error:
                self._skip(error)
            else:
                yield seeds.name, repeat, tuple(urls)

    def _skip(self, why: ConfigurationError) -> None:
        skip = Skipped(self._name, self._topic.name, str(why))
        if skip not in self.skipped:
            self.skipped.append(skip)


def run_key(trial: Trial, terms: Terms, *made_from: str) -> str:
    """What a run's result depends on, as a digest.

    ``made_from`` are digests of its web, its candidate and this program.
    """
    common = {k: v for k, v in asdict(terms).items() if k not in ("budget", "repeat")}
    whole = json.dumps([asdict(trial), common, made_from], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()
