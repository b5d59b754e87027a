"""Compare simulated clusters with a single crawl, by the measures of Cho and Garcia-Molina.

After "Parallel crawlers" (WWW 2002), with N pages fetched by all partitions, I of them distinct, M
links exchanged, and U the pages that a single crawl fetches from the same seeds with the same
budget: overlap (N - I) / N, coverage I / U, communication overhead M / N, and quality, the share of
the best pages that were fetched. The best are the topic's pages with the most in-links; the harvest
rate measures quality, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import product

import msgspec
import numpy as np
import pandas as pd

from focused.cluster.assignment import PartitionMap, SiteUnit, assign_partitions
from focused.cluster.routing import LinkMode
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.reports.metrics import harvest_pages, harvest_rate
from focused.topic import Budget
from focused.web.urls import host_of
from focused_lab.cluster.cluster_simulator import ClusterSettings, simulate_cluster
from focused_lab.experiment_plan import ExperimentPlan, PreparedTopic, Trial
from focused_lab.ground_truth import GroundTruth
from focused_lab.run_measures import hot_page_recall
from focused_lab.runner import WebContext, WebContextCache, topic_for_run
from focused_lab.simulation.simulator import hashed_latency, simulate
from focused_lab.web_sources import ExperimentWeb


class Sharing(StrEnum):
    """What the partitions of a cluster share besides links."""

    ALL = "all"
    NO_LEARNING = "no-learning"
    """Each partition trains a scorer of its own."""
    NO_BUDGET = "no-budget"
    """Each partition has an equal part of the budget, and waits for no better link of others."""
    NOTHING = "nothing"


class ClusterVariant(msgspec.Struct, frozen=True):
    """One way to crawl with many workers; ``replicate`` most popular URLs are known to all.

    ``partitions`` None: one for each worker.
    """

    workers: int
    mode: LinkMode = LinkMode.EXCHANGE
    unit: SiteUnit = SiteUnit.DOMAIN
    batch_s: float = 1.0
    replicate: int = 0
    sharing: Sharing = Sharing.ALL
    partitions: int | None = None

    def settings(self, popular: Sequence[str]) -> ClusterSettings:
        """Return the settings of the simulation; ``popular`` URLs come best first."""
        return ClusterSettings(
            partitions=self.partitions or self.workers,
            workers=self.workers,
            mode=self.mode,
            unit=self.unit,
            batch_s=self.batch_s,
            shares_learning=self.sharing in (Sharing.ALL, Sharing.NO_BUDGET),
            shares_budget=self.sharing in (Sharing.ALL, Sharing.NO_LEARNING),
            shares_contents=self.sharing is not Sharing.NOTHING,
            replicated=tuple(popular[: self.replicate]),
        )


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one variant from one start; shares are in [0, 1].

    ``single_...`` are those of the single crawl. ``best`` is the share of the topic's best pages
    that were fetched, None without any. ``page_balance`` is the maximum of the pages of a worker,
    divided by the mean.
    """

    web: str
    topic: str
    policy: str
    seeds: str
    repeat: int
    budget: int | None
    variant: ClusterVariant
    fetched: int
    distinct: int
    single_fetched: int
    coverage: float
    harvest: float
    single_harvest: float
    best: float | None
    single_best: float | None
    sent: int
    suppressed: int
    replicated: int
    page_balance: float
    simulated_s: float
    single_simulated_s: float

    @property
    def overlap(self) -> float:
        """(N - I) / N."""
        return (self.fetched - self.distinct) / max(self.fetched, 1)

    @property
    def messages_per_page(self) -> float:
        """M / N."""
        return self.sent / max(self.fetched, 1)


def variants_of(
    workers: Sequence[int],
    modes: Sequence[LinkMode],
    units: Sequence[SiteUnit],
    batches_s: Sequence[float],
    replicates: Sequence[int],
    sharings: Sequence[Sharing],
    partitions: int | None,
) -> list[ClusterVariant]:
    """Return all combinations.

    Without an exchange nothing is shared, so firewall and crossover occur once.
    """
    found = []
    for count, mode, unit in product(workers, modes, units):
        partitions_or_none = None if partitions is None else max(partitions, count)
        whole = ClusterVariant(count, mode, unit, partitions=partitions_or_none)
        if mode is not LinkMode.EXCHANGE:
            found.append(msgspec.structs.replace(whole, sharing=Sharing.NOTHING))
            continue
        found += [
            msgspec.structs.replace(whole, batch_s=batch_s, replicate=replicate, sharing=sharing)
            for batch_s, replicate, sharing in product(batches_s, replicates, sharings)
        ]
    return list(dict.fromkeys(found))


def compare_clusters(
    webs: Mapping[str, ExperimentWeb],
    prepared_topics: Mapping[str, PreparedTopic],
    plan: ExperimentPlan,
    variants: Sequence[ClusterVariant],
    *,
    has_budget: bool = True,
) -> Iterator[ClusterRow]:
    """Simulate all variants from each start of the plan; yield their rows in order.

    Without a budget each crawl goes on until no link is left. Raises RecordedWebError.
    """
    contexts = WebContextCache(webs, prepared_topics)
    try:
        for trial in plan.trials:
            comparison = _TrialComparison(contexts.for_trial(trial), trial, plan, has_budget)
            for variant in variants:
                yield comparison.row(variant)
    finally:
        contexts.close()


class _TrialComparison:
    """All variants of one trial, and the single crawl that they are compared with."""

    def __init__(
        self, context: WebContext, trial: Trial, plan: ExperimentPlan, has_budget: bool
    ) -> None:
        self._context = context
        self._trial = trial
        self._truth = context.ground_truth
        self._seed = plan.settings.seed * 1_000_003 + trial.repeat
        self._latency = hashed_latency(plan.settings.latency_s, self._seed)
        self._budget = trial.budget if has_budget else None
        topic = topic_for_run(context.prepared_topic.topic, trial)
        self._topic = replace(topic, budget=Budget(pages=self._budget))
        graph = self._truth.graph
        order = np.argsort(-graph.in_degrees, kind="stable")
        self._popular = [graph.urls[place] for place in order.tolist()]
        single = simulate(
            self._topic,
            context.classifier,
            context.network,
            find_policy(trial.policy)(self._inputs()),
            latency=self._latency,
            training_urls=self._truth.training_urls,
            seeds=trial.start,
        )
        self._single = single.pages[single.pages["outcome"] == "fetched"]
        self._single_s = single.simulated_s

    def row(self, variant: ClusterVariant) -> ClusterRow:
        """Simulate and measure one variant."""
        run = simulate_cluster(
            self._topic,
            self._context.classifier,
            self._context.network,
            lambda: find_policy(self._trial.policy)(self._inputs()),
            variant.settings(self._popular),
            latency=self._latency,
            training_urls=self._truth.training_urls,
            seeds=self._trial.start,
        )
        pages, single = run.fetched, self._single
        urls, single_urls = set(pages["url"]), set(single["url"])
        by_worker = Counter((pages["partition"] % variant.workers).tolist())
        return ClusterRow(
            web=self._trial.web,
            topic=self._trial.topic,
            policy=self._trial.policy,
            seeds=self._trial.seeds,
            repeat=self._trial.repeat,
            budget=self._budget,
            variant=variant,
            fetched=len(pages),
            distinct=len(urls),
            single_fetched=len(single),
            coverage=len(urls & single_urls) / max(len(single_urls), 1),
            harvest=harvest_of_all(self._truth, pages),
            single_harvest=harvest_of_all(self._truth, single),
            best=hot_page_recall(self._truth, pages),
            single_best=hot_page_recall(self._truth, single),
            sent=run.sent,
            suppressed=run.suppressed,
            replicated=run.replicated,
            page_balance=max_by_mean(by_worker, variant.workers),
            simulated_s=run.simulated_s,
            single_simulated_s=self._single_s,
        )

    def _inputs(self) -> PolicyInputs:
        return PolicyInputs(self._context.classifier, self._context.apprentice(), self._seed)


def harvest_of_all(truth: GroundTruth, pages: pd.DataFrame) -> float:
    """Return the harvest rate of pages that several partitions fetched.

    Each content counts once, whichever partition fetched it first.
    """
    found: set[int] = set()
    flags = []
    for url in harvest_pages(pages)["url"]:
        recorded = truth.resolve_url(url)
        is_new = False
        if recorded is not None and recorded in truth.relevant:
            content = int(truth.graph.first_duplicate[truth.graph.index[recorded]])
            is_new = content not in found
            found.add(content)
        flags.append(is_new)
    return harvest_rate(flags)


def max_by_mean(counts: Mapping[str, int] | Mapping[int, int], owners: int) -> float:
    """Return the largest count divided by the mean over all owners; 0 without any."""
    total = sum(counts.values())
    return max(counts.values()) * owners / total if total else 0.0


class AssignmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """How partitions, hosts and pages of a web are balanced over workers, and what moves.

    ``..._balance`` is the maximum of a worker divided by the mean. ``..._moved_by_...`` are the
    shares that get another owner when a worker joins, or leaves. ``modulo_hosts_moved`` are those
    that would move by joining if a host's owner were a hash modulo the number of workers.
    """

    web: str
    unit: SiteUnit
    partitions: int
    workers: int
    partition_balance: float
    host_balance: float
    page_balance: float
    partitions_moved_by_join: float
    partitions_moved_by_leave: float
    hosts_moved_by_join: float
    hosts_moved_by_leave: float
    modulo_hosts_moved: float


def measure_assignment(
    name: str, web: RecordedWeb, partitions: int, workers: int, unit: SiteUnit
) -> AssignmentRow:
    """Measure the assignment of a recorded web's hosts; ``unit`` is no URL.

    What moves by leaving is the mean over all workers.
    """
    owner_of = PartitionMap(partitions, unit).of_url
    hosts = {host: owner_of(f"http://{host}/") for host in sorted(map(host_of, web.page_urls))}
    pages = Counter(hosts[host_of(url)] for url in web.page_urls)
    names = [f"worker-{number}" for number in range(workers)]
    now = assign_partitions(partitions, names)
    joined = assign_partitions(partitions, [*names, f"worker-{workers}"])
    left = [assign_partitions(partitions, [n for n in names if n != name]) for name in names]

    def moved(then: Mapping[int, str]) -> float:
        return sum(now[part] != then.get(part) for part in now) / partitions

    def hosts_moved(then: Mapping[int, str]) -> float:
        return sum(now[part] != then.get(part) for part in hosts.values()) / len(hosts)

    by_modulo = PartitionMap(workers, unit).of_url, PartitionMap(workers + 1, unit).of_url
    modulo = [by_modulo[0](f"http://{host}/") != by_modulo[1](f"http://{host}/") for host in hosts]
    page_counts: Counter[str] = Counter()
    for part, count in pages.items():
        page_counts[now[part]] += count
    return AssignmentRow(
        web=name,
        unit=unit,
        partitions=partitions,
        workers=workers,
        partition_balance=max_by_mean(Counter(now.values()), workers),
        host_balance=max_by_mean(Counter(now[part] for part in hosts.values()), workers),
        page_balance=max_by_mean(page_counts, workers),
        partitions_moved_by_join=moved(joined),
        partitions_moved_by_leave=float(np.mean([moved(each) for each in left])),
        hosts_moved_by_join=hosts_moved(joined),
        hosts_moved_by_leave=float(np.mean([hosts_moved(each) for each in left])),
        modulo_hosts_moved=sum(modulo) / len(modulo),
    )
