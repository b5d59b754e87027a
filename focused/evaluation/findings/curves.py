"""Mean curves of several runs: harvest and recall against pages fetched."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.evaluation.findings.grid import Grid
from focused.evaluation.findings.inference import Table, draw_weights, interval_bands
from focused.evaluation.findings.runs import Run

POINTS = 100
_SHARES = np.arange(1, POINTS + 1) / POINTS


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """A policy's mean over starts; ``mean``, ``low``, ``high`` have shape (points,).

    ``low`` and ``high`` bound the mean with 95%; NaN where there is one start.
    """

    policy: str
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_curves(
    grid: Grid, measure: str, rng: np.random.Generator | None = None, banded: Collection[str] = ()
) -> list[MeanCurve]:
    """One curve per policy with a run; ``measure`` is ``harvest`` or ``recall``.

    Each run is read at every hundredth of its own budget. What it left of that
    counts as off topic. Only ``banded`` policies get intervals, drawn by ``rng``.
    """
    clusters = [start.cluster for start in grid.starts]
    weights = None if rng is None else draw_weights(clusters, rng)
    curves = []
    for policy in grid.policies:
        values = _values(grid, policy, measure)
        if np.isnan(values).all():
            continue
        none = np.full(POINTS, np.nan)
        low, high = none, none
        if weights is not None and policy in banded:
            low, high = interval_bands(weights, values)
        curves.append(MeanCurve(policy, np.nanmean(values, axis=0), low, high))
    return curves


def places(grid: Grid) -> tuple[NDArray[np.float64], int | None]:
    """Where the points of :func:`mean_curves` lie, and the budget when it is everyone's.

    In pages when all runs have one budget, otherwise in shares of each run's own.
    """
    budgets = {run.budget for run in grid.runs.values()}
    if len(budgets) != 1:
        return _SHARES, None
    (budget,) = budgets
    return _SHARES * budget, budget


def read_curve(run: Run, measure: str) -> NDArray[np.float64]:
    """A run at every hundredth of its budget, shape (100,), in [0, 1]."""
    at = np.maximum(_SHARES * run.budget, 1.0)
    fetched, on_topic = np.array(((0, 0), *run.curve), dtype=np.float64).T
    found = np.interp(at, fetched, on_topic)
    whole = at if measure == "harvest" else np.full(POINTS, max(run.relevant, 1))
    return np.asarray(np.minimum(found / whole, 1.0))


def _values(grid: Grid, policy: str, measure: str) -> Table:
    missing = np.full(POINTS, np.nan)
    rows = [
        missing if (run := grid.runs.get((start, policy))) is None else read_curve(run, measure)
        for start in grid.starts
    ]
    return np.array(rows).reshape(len(rows), POINTS)
