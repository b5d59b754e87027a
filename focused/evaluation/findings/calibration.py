"""Were the scores right? Over all runs, and by the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from focused.evaluation.findings.grid import Grid
from focused.evaluation.findings.inference import (
    Estimate,
    Table,
    draw_weights,
    ratio_estimate,
)
from focused.evaluation.reliability import FEW, BinCount, bin_edges, fit_of


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True):
    """Pages fetched with a score in [``low``, ``high``), the last bin closed.

    ``score`` is the mean over the ``pages`` of all runs, ``on_topic`` the share
    of them that labels call so, its interval from the bootstrap over topics and
    starts: pages of one run resemble each other. Fewer than
    :data:`~focused.evaluation.reliability.FEW` pages have none.
    """

    low: float
    high: float
    pages: int
    score: float
    on_topic: Estimate


class PolicyCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's scores against labels; the figures as in :mod:`focused.evaluation.reliability`.

    Pages of all runs count alike; empty ``bins`` are left out.
    """

    policy: str
    runs: int
    pages: int
    calibration_error: float
    brier: float
    brier_of_rate: float
    bins: tuple[CalibrationBin, ...]


def calibrate(grid: Grid, rng: np.random.Generator) -> list[PolicyCalibration]:
    """One row per policy whose scores are probabilities, in the order of the grid."""
    weights = draw_weights([start.cluster for start in grid.starts], rng)
    return [
        row for policy in grid.policies if (row := _calibration(grid, weights, policy)) is not None
    ]


def _calibration(grid: Grid, weights: Table, policy: str) -> PolicyCalibration | None:
    by_start = _counts(grid, policy)
    counts = [count for each in by_start for count in each.values()]
    if not counts:
        return None
    fit = fit_of(counts)
    return PolicyCalibration(
        policy=policy,
        runs=sum(bool(each) for each in by_start),
        pages=sum(count.pages for count in counts),
        calibration_error=fit.calibration_error,
        brier=fit.brier,
        brier_of_rate=fit.brier_of_rate,
        bins=tuple(
            _bin(weights, place, by_start)
            for place in sorted({count.place for count in counts if count.pages})
        ),
    )


def _counts(grid: Grid, policy: str) -> list[Mapping[int, BinCount]]:
    """What each start's run counted, by bin; empty where there is none."""
    runs = (grid.runs.get((start, policy)) for start in grid.starts)
    return [
        {} if run is None else {count.place: count for count in run.score_bins or ()}
        for run in runs
    ]


def _bin(weights: Table, place: int, by_start: Sequence[Mapping[int, BinCount]]) -> CalibrationBin:
    nothing = BinCount(place, 0, 0, 0.0, 0.0)
    counts = [each.get(place, nothing) for each in by_start]
    pages = np.array([count.pages for count in counts], dtype=np.float64)
    # Starts without such a page are out: they say nothing about it, and one alone gives no interval
    pages[pages == 0] = np.nan
    on_topic = np.array([count.on_topic for count in counts], dtype=np.float64)
    share = ratio_estimate(weights, on_topic, pages)
    assert share is not None  # there is a page
    low, high = bin_edges(place)
    total = int(np.nansum(pages))
    return CalibrationBin(
        low=low,
        high=high,
        pages=total,
        score=sum(count.score_sum for count in counts) / total,
        on_topic=share if total >= FEW else Estimate(share.mean),
    )
