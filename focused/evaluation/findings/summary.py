"""What each policy brought: means with intervals, in all, by kind of start, by topic."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from focused.evaluation.findings.grid import BASELINE, Grid
from focused.evaluation.findings.inference import (
    Estimate,
    Table,
    draw_weights,
    mean_estimates,
    ratio_estimate,
)
from focused.evaluation.findings.runs import Run


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's means over some of the starts; shares in [0, 1], None without a run.

    ``web`` and ``topic`` are None over all topics, ``seeds`` is None over all kinds
    of start (then ``host_cap`` says nothing).
    """

    policy: str
    runs: int
    harvest: Estimate | None
    recall: Estimate | None
    area: Estimate | None
    web: str | None = None
    topic: str | None = None
    seeds: str | None = None
    host_cap: int | None = None


class PolicySummary(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a policy. Means are over its runs; None: not measured, or no such run.

    ``half_recall_pages`` is the median over the ``half_recall_reached`` runs that
    found half of the relevant pages, ``ended_early`` counts those that fetched less
    than the budget. Ratios are of mean harvests over the starts both have.
    ``peak_mb`` is the greatest.
    """

    policy: str
    runs: int
    harvest: Estimate | None
    recall: Estimate | None
    area: Estimate | None
    hosts: float | None
    crawl_and_stop: float | None
    crawl_and_stop_threshold: float | None
    half_recall_pages: float | None
    half_recall_reached: int
    ended_early: int
    ratio_to_bfs: Estimate | None
    ratio_to_oracle: Estimate | None
    ratio_to_path_oracle: Estimate | None
    simulated_s: float | None
    cpu_s: float | None
    cpu_ms_per_page: float | None
    peak_mb: float | None
    judge_harvest: float | None
    judge_precision: float | None
    judge_recall: float | None
    by_group: tuple[Share, ...]
    by_topic: tuple[Share, ...]


def summarise(grid: Grid, rng: np.random.Generator) -> list[PolicySummary]:
    """One summary per policy, in the order of the grid."""
    weights = draw_weights([start.cluster for start in grid.starts], rng)
    whole = shares(grid, weights)
    by_group = [
        share
        for seeds, cap in grid.groups
        for share in _part(grid.in_group((seeds, cap)), rng, seeds=seeds, host_cap=cap)
    ]
    by_topic = [
        share
        for web, topic in grid.topics
        for share in _part(grid.on_topic(web, topic), rng, web=web, topic=topic)
    ]
    return [
        _summary(
            grid,
            weights,
            share,
            tuple(each for each in by_group if each.policy == share.policy),
            tuple(each for each in by_topic if each.policy == share.policy),
        )
        for share in whole
    ]


def shares(grid: Grid, weights: Table) -> list[Share]:
    """The means of each policy over the grid's starts."""
    columns = [
        mean_estimates(weights, grid.values(measure)) for measure in ("harvest", "recall", "area")
    ]
    return [
        Share(
            policy=policy,
            runs=len(grid.runs_by(policy)),
            harvest=harvest,
            recall=recall,
            area=area,
        )
        for policy, harvest, recall, area in zip(grid.policies, *columns, strict=True)
    ]


def _part(grid: Grid, rng: np.random.Generator, **place: str | int | None) -> list[Share]:
    weights = draw_weights([start.cluster for start in grid.starts], rng)
    return [msgspec.structs.replace(share, **place) for share in shares(grid, weights)]


def _summary(
    grid: Grid,
    weights: Table,
    share: Share,
    by_group: tuple[Share, ...],
    by_topic: tuple[Share, ...],
) -> PolicySummary:
    runs = grid.runs_by(share.policy)
    halves = [run.half_recall_pages for run in runs if run.half_recall_pages is not None]
    timed = [run for run in runs if run.cpu_s is not None]
    fetched = sum(run.fetched for run in timed)
    cpu_s = sum(run.cpu_s or 0.0 for run in timed)
    return PolicySummary(
        policy=share.policy,
        runs=share.runs,
        harvest=share.harvest,
        recall=share.recall,
        area=share.area,
        hosts=_mean(runs, "hosts"),
        crawl_and_stop=_mean(runs, "crawl_and_stop"),
        crawl_and_stop_threshold=_mean(runs, "crawl_and_stop_threshold"),
        half_recall_pages=float(np.median(halves)) if halves else None,
        half_recall_reached=len(halves),
        ended_early=sum(run.ended_early for run in runs),
        ratio_to_bfs=_ratio(grid, weights, share.policy, BASELINE),
        ratio_to_oracle=_ratio(grid, weights, share.policy, "oracle"),
        ratio_to_path_oracle=_ratio(grid, weights, share.policy, "path-oracle"),
        simulated_s=_mean(runs, "simulated_s"),
        cpu_s=_mean(runs, "cpu_s"),
        cpu_ms_per_page=1000 * cpu_s / fetched if fetched else None,
        peak_mb=max((run.peak_mb for run in runs if run.peak_mb is not None), default=None),
        judge_harvest=_mean(runs, "judge_harvest"),
        judge_precision=_mean(runs, "judge_precision"),
        judge_recall=_mean(runs, "judge_recall"),
        by_group=by_group,
        by_topic=by_topic,
    )


def _ratio(grid: Grid, weights: Table, policy: str, reference: str) -> Estimate | None:
    if reference not in grid.policies:
        return None
    harvest = grid.values("harvest")
    mine, other = grid.policies.index(policy), grid.policies.index(reference)
    return ratio_estimate(weights, harvest[:, mine], harvest[:, other])


def _mean(runs: Sequence[Run], measure: str) -> float | None:
    values = [value for run in runs if (value := getattr(run, measure)) is not None]
    return float(np.mean(values)) if values else None
