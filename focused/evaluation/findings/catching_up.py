"""Half the pages: how many a policy needs for what breadth-first finds with its whole budget."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np

from focused.evaluation.findings.grid import BASELINE, Grid
from focused.evaluation.findings.inference import (
    Table,
    draw_weights,
    median_interval,
    median_of,
)
from focused.evaluation.findings.runs import Run


class CatchingUp(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on its way to breadth-first's harvest, from the same starts.

    The goal is as many pages on topic as breadth-first found, whatever it
    fetched; ``starts`` from which it found none are left out. ``reached`` of
    them got there, ``never`` did not. ``pages`` is the median over all of these
    starts, one that never got there taken as later than any; ``share`` is the
    median of pages over those that breadth-first fetched. ``_low`` and
    ``_high`` bound the median with 95%. A median or upper end that lies among
    the runs that never got there is None; so are both ends of a single start.
    """

    policy: str
    starts: int
    reached: int
    never: int
    pages: float | None
    pages_low: float | None
    pages_high: float | None
    share: float | None
    share_low: float | None
    share_high: float | None


def catch_up(grid: Grid, rng: np.random.Generator) -> list[CatchingUp]:
    """One row per policy with such a start, in the order of the grid; none without breadth-first.

    Intervals: see :mod:`~focused.evaluation.findings.inference`.
    """
    goals = {
        start: run
        for start in grid.starts
        if (run := grid.runs.get((start, BASELINE))) is not None and run.on_topic
    }
    part = grid.where(lambda start: start in goals)
    if not part.starts:
        return []
    weights = draw_weights([start.cluster for start in part.starts], rng)
    fetched = np.array([goals[start].fetched for start in part.starts], dtype=np.float64)
    needed = part.values(lambda run: pages_until(run, goals[run.start].on_topic))
    return [
        _row(policy, weights, needed[:, column], fetched)
        for column, policy in enumerate(part.policies)
        if not np.isnan(needed[:, column]).all()
    ]


def pages_until(run: Run, found: int) -> float:
    """After how many pages the run had ``found`` on topic; infinite when it never had.

    Between two points of the run's curve the latest place is taken: at most a
    hundredth of the run too late, never too early.
    """
    for (_, before), (fetched, on_topic) in pairwise(((0, 0), *run.curve)):
        if before < found <= on_topic:
            return float(fetched - (on_topic - found))
    return math.inf


def _row(policy: str, weights: Table, needed: Table, fetched: Table) -> CatchingUp:
    share = needed / fetched
    pages_low, pages_high = median_interval(weights, needed)
    share_low, share_high = median_interval(weights, share)
    return CatchingUp(
        policy=policy,
        starts=int((~np.isnan(needed)).sum()),
        reached=int(np.isfinite(needed).sum()),
        never=int(np.isinf(needed).sum()),
        pages=median_of(needed),
        pages_low=pages_low,
        pages_high=pages_high,
        share=median_of(share),
        share_low=share_low,
        share_high=share_high,
    )
