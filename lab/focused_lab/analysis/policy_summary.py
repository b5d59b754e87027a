"""Summarise each policy: means with intervals, overall, by kind of start and by topic;
calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from focused.orderings.policy_names import BASELINE
from focused.reports.reliability import MIN_BIN_PAGES, BinCount, bin_edges, score_errors
from focused_lab.analysis.comparison_runs import Run, RunGrid
from focused_lab.analysis.inference import (
    Estimate,
    FloatArray,
    bootstrap_weights,
    mean_estimates,
    ratio_estimate,
)

_MEANS = (
    *("hosts", "crawl_and_stop", "crawl_and_stop_threshold", "simulated_s", "cpu_s"),
    *("classifier_harvest", "classifier_precision", "classifier_recall"),
)
"""What a summary has the mean of, over the runs that measured it."""


class GroupSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's means over some of the starts; shares in [0, 1], None without a run.

    ``web`` and ``topic`` are None over all topics, ``seeds`` over all kinds of start, and
    ``host_cap`` then meaningless.
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
    """All runs of a policy: means, None if not measured or without a run.

    ``half_recall_pages`` is the median over the ``half_recall_reached`` runs that found half of the
    relevant pages; ``ended_early`` counts runs that fetched less than the budget. Ratios are of
    mean harvests over shared starts. ``peak_mb`` is the maximum.
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
    classifier_harvest: float | None
    classifier_precision: float | None
    classifier_recall: float | None
    by_group: tuple[GroupSummary, ...]
    by_topic: tuple[GroupSummary, ...]


def summarise(grid: RunGrid, rng: np.random.Generator) -> list[PolicySummary]:
    """Summarise each policy, in the order of the grid."""
    weights = bootstrap_weights([start.cluster for start in grid.starts], rng)
    whole = summarise_groups(grid, weights)
    by_group = [
        share
        for seeds, cap in grid.groups
        for share in _summarise_part(grid.in_group((seeds, cap)), rng, seeds=seeds, host_cap=cap)
    ]
    by_topic = [
        share
        for web, topic in grid.topics
        for share in _summarise_part(grid.on_topic(web, topic), rng, web=web, topic=topic)
    ]
    return [
        _policy_summary(
            grid,
            weights,
            share,
            tuple(each for each in by_group if each.policy == share.policy),
            tuple(each for each in by_topic if each.policy == share.policy),
        )
        for share in whole
    ]


def summarise_groups(grid: RunGrid, weights: FloatArray) -> list[GroupSummary]:
    """The means of each policy over the grid's starts."""
    columns = [
        mean_estimates(weights, grid.values(measure)) for measure in ("harvest", "recall", "area")
    ]
    return [
        GroupSummary(
            policy=policy,
            runs=len(grid.runs_of_policy(policy)),
            harvest=harvest,
            recall=recall,
            area=area,
        )
        for policy, harvest, recall, area in zip(grid.policies, *columns, strict=True)
    ]


def _summarise_part(
    grid: RunGrid, rng: np.random.Generator, **place: str | int | None
) -> list[GroupSummary]:
    weights = bootstrap_weights([start.cluster for start in grid.starts], rng)
    return [msgspec.structs.replace(share, **place) for share in summarise_groups(grid, weights)]


def _policy_summary(
    grid: RunGrid,
    weights: FloatArray,
    share: GroupSummary,
    by_group: tuple[GroupSummary, ...],
    by_topic: tuple[GroupSummary, ...],
) -> PolicySummary:
    runs = grid.runs_of_policy(share.policy)
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
        **{measure: _mean_measure(runs, measure) for measure in _MEANS},
        half_recall_pages=float(np.median(halves)) if halves else None,
        half_recall_reached=len(halves),
        ended_early=sum(run.ended_early for run in runs),
        ratio_to_bfs=_ratio(grid, weights, share.policy, BASELINE),
        ratio_to_oracle=_ratio(grid, weights, share.policy, "oracle"),
        ratio_to_path_oracle=_ratio(grid, weights, share.policy, "path-oracle"),
        cpu_ms_per_page=1000 * cpu_s / fetched if fetched else None,
        peak_mb=max((run.peak_mb for run in runs if run.peak_mb is not None), default=None),
        by_group=by_group,
        by_topic=by_topic,
    )


def _ratio(grid: RunGrid, weights: FloatArray, policy: str, reference: str) -> Estimate | None:
    if reference not in grid.policies:
        return None
    harvest = grid.values("harvest")
    mine, other = grid.policies.index(policy), grid.policies.index(reference)
    return ratio_estimate(weights, harvest[:, mine], harvest[:, other])


def _mean_measure(runs: Sequence[Run], measure: str) -> float | None:
    values = [value for run in runs if (value := getattr(run, measure)) is not None]
    return float(np.mean(values)) if values else None


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True):
    """Pages fetched with a score in [``low``, ``high``), the last bin closed.

    ``score`` is the mean over the ``pages`` of all runs, ``on_topic`` the share on topic by labels,
    with a bootstrap interval over topics and starts, because pages of one run are not independent.
    Fewer than :data:`~focused.reports.reliability.MIN_BIN_PAGES` pages have no interval.
    """

    low: float
    high: float
    pages: int
    score: float
    on_topic: Estimate


class PolicyCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's scores against labels, as in :mod:`focused.reports.reliability`, over all runs'
    pages.
    """

    policy: str
    runs: int
    pages: int
    calibration_error: float
    brier: float
    brier_reference: float
    bins: tuple[CalibrationBin, ...]


def measure_calibration(grid: RunGrid, rng: np.random.Generator) -> list[PolicyCalibration]:
    """One row per policy whose scores are probabilities, in the order of the grid."""
    weights = bootstrap_weights([start.cluster for start in grid.starts], rng)
    return [
        row
        for policy in grid.policies
        if (row := _policy_calibration(grid, weights, policy)) is not None
    ]


def _policy_calibration(
    grid: RunGrid, weights: FloatArray, policy: str
) -> PolicyCalibration | None:
    by_start = _bin_counts_by_start(grid, policy)
    counts = [count for each in by_start for count in each.values()]
    if not counts:
        return None
    fit = score_errors(counts)
    return PolicyCalibration(
        policy=policy,
        runs=sum(bool(each) for each in by_start),
        pages=sum(count.pages for count in counts),
        calibration_error=fit.calibration_error,
        brier=fit.brier,
        brier_reference=fit.brier_reference,
        bins=tuple(
            _calibration_bin(weights, place, by_start)
            for place in sorted({count.place for count in counts if count.pages})
        ),
    )


def _bin_counts_by_start(grid: RunGrid, policy: str) -> list[Mapping[int, BinCount]]:
    """The counts of each start's run by bin; empty without a run."""
    runs = (grid.runs.get((start, policy)) for start in grid.starts)
    return [
        {} if run is None else {count.place: count for count in run.score_bins or ()}
        for run in runs
    ]


def _calibration_bin(
    weights: FloatArray, place: int, by_start: Sequence[Mapping[int, BinCount]]
) -> CalibrationBin:
    nothing = BinCount(place, 0, 0, 0.0, 0.0)
    counts = [each.get(place, nothing) for each in by_start]
    pages = np.array([count.pages for count in counts], dtype=np.float64)
    # Starts without such a page say nothing about it, and one alone gives no interval.
    pages[pages == 0] = np.nan
    on_topic = np.array([count.on_topic for count in counts], dtype=np.float64)
    share = ratio_estimate(weights, on_topic, pages)
    assert share is not None
    low, high = bin_edges(place)
    total = int(np.nansum(pages))
    return CalibrationBin(
        low=low,
        high=high,
        pages=total,
        score=sum(count.score_sum for count in counts) / total,
        on_topic=share if total >= MIN_BIN_PAGES else Estimate(share.mean),
    )
