"""Compare policies from the same starts: paired differences, and pages to match breadth-first.

Policies are also ranked across topics, with Friedman's and Nemenyi's tests (Demšar: Statistical
Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006, section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from focused.orderings.policy_names import BASELINE, FOCUSED
from focused_lab.analysis.comparison_runs import Run, RunGrid, StartGroup
from focused_lab.analysis.inference import (
    Estimate,
    FloatArray,
    bootstrap_weights,
    lower_median,
    mean_estimate,
    median_interval,
)

TIE_MARGIN = 0.005
"""Harvests that differ by no more are a tie: five pages in a thousand."""


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """``policy`` minus ``reference`` over the ``starts`` that both have a run from.

    ``difference`` is of harvest, ``area_difference`` of area, in [-1, 1]. A start is a tie where
    the harvests differ by at most :data:`TIE_MARGIN`; ``topics_won`` and ``topics_lost`` count
    topics by their mean difference. ``seeds`` is None over all kinds of start, and ``host_cap``
    then meaningless.
    """

    policy: str
    reference: str
    seeds: str | None
    host_cap: int | None
    starts: int
    topics: int
    difference: Estimate
    area_difference: Estimate
    wins: int
    ties: int
    losses: int
    topics_won: int
    topics_lost: int


def pair_policies(grid: RunGrid, rng: np.random.Generator) -> list[PairedDifference]:
    """Compare every policy with each reference: over all starts, then by kind of start.

    The references are breadth-first and our own policy, else the first that is no oracle.
    """
    kinds: list[tuple[StartGroup | None, RunGrid]] = [(None, grid)]
    if len(grid.groups) > 1:
        kinds += [(kind, grid.in_group(kind)) for kind in grid.groups]
    return [
        pairing
        for group, part in kinds
        for reference in reference_policies(grid)
        for policy in grid.policies
        if policy != reference
        and (pairing := compare_pair(part, policy, reference, rng, group)) is not None
    ]


def reference_policies(grid: RunGrid) -> list[str]:
    """The policies that the others are compared with."""
    known = [name for name in (BASELINE, FOCUSED) if name in grid.policies]
    return known or grid.non_oracles[:1] or list(grid.policies[:1])


def compare_pair(
    grid: RunGrid,
    policy: str,
    reference: str,
    rng: np.random.Generator,
    group: StartGroup | None = None,
) -> PairedDifference | None:
    """Compare two policies; None when they share no start. ``group`` is only recorded."""
    both = grid.with_runs_of([policy, reference])
    if not both.starts:
        return None
    runs = [(both.runs[start, policy], both.runs[start, reference]) for start in both.starts]
    # Rounded, so that 0.305 - 0.3 is a tie.
    difference = np.round([mine.harvest - other.harvest for mine, other in runs], 12)
    area = np.array([mine.area - other.area for mine, other in runs])
    weights = bootstrap_weights([start.cluster for start in both.starts], rng)
    of_harvest = mean_estimate(weights, difference)
    of_area = mean_estimate(weights, area)
    assert of_harvest is not None and of_area is not None
    clusters = [start.cluster for start in both.starts]
    by_topic = np.array(
        [difference[[each == topic for each in clusters]].mean() for topic in both.topics]
    )
    return PairedDifference(
        policy=policy,
        reference=reference,
        seeds=group[0] if group else None,
        host_cap=group[1] if group else None,
        starts=len(both.starts),
        topics=len(both.topics),
        difference=of_harvest,
        area_difference=of_area,
        wins=int((difference > TIE_MARGIN).sum()),
        ties=int((abs(difference) <= TIE_MARGIN).sum()),
        losses=int((difference < -TIE_MARGIN).sum()),
        topics_won=int((by_topic > TIE_MARGIN).sum()),
        topics_lost=int((by_topic < -TIE_MARGIN).sum()),
    )


class PagesToBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that a policy needs to find as many on-topic pages as breadth-first, from the same
    starts.

    ``starts`` from which breadth-first found nothing are left out. ``reached`` counts the others
    that got there, ``never`` those that did not. ``pages`` is the median, with never as infinity,
    ``share`` the median share of the pages that breadth-first fetched; ``_low`` and ``_high`` are
    95% intervals. An infinite value is None; so are both ends for a single start.
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


def measure_pages_to_baseline(grid: RunGrid, rng: np.random.Generator) -> list[PagesToBaseline]:
    """One row per policy, in the order of the grid; empty without breadth-first."""
    goals = {
        start: run
        for start in grid.starts
        if (run := grid.runs.get((start, BASELINE))) is not None and run.on_topic
    }
    part = grid.where(lambda start: start in goals)
    if not part.starts:
        return []
    weights = bootstrap_weights([start.cluster for start in part.starts], rng)
    fetched = np.array([goals[start].fetched for start in part.starts], dtype=np.float64)
    needed = part.values(lambda run: pages_until_found(run, goals[run.start].on_topic))
    return [
        _pages_to_baseline(policy, weights, needed[:, column], fetched)
        for column, policy in enumerate(part.policies)
        if not np.isnan(needed[:, column]).all()
    ]


def pages_until_found(run: Run, found: int) -> float:
    """Pages after which the run had ``found`` on topic; infinite if never.

    Between two points of the curve the latest position is taken: at most a hundredth of the run too
    late, never too early.
    """
    for (_, before), (fetched, on_topic) in pairwise(((0, 0), *run.curve)):
        if before < found <= on_topic:
            return float(fetched - (on_topic - found))
    return math.inf


def _pages_to_baseline(
    policy: str, weights: FloatArray, needed: FloatArray, fetched: FloatArray
) -> PagesToBaseline:
    share = needed / fetched
    pages_low, pages_high = median_interval(weights, needed)
    share_low, share_high = median_interval(weights, share)
    return PagesToBaseline(
        policy=policy,
        starts=int((~np.isnan(needed)).sum()),
        reached=int(np.isfinite(needed).sum()),
        never=int(np.isinf(needed).sum()),
        pages=lower_median(needed),
        pages_low=pages_low,
        pages_high=pages_high,
        share=lower_median(share),
        share_low=share_low,
        share_high=share_high,
    )


ALPHA = 0.05


class PolicyRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Mean ranks over ``topics`` topics, the best near 1.

    Only starts from which every policy has a run count (``starts``); oracles
    are left out. ``friedman`` and ``p`` are None below two topics or three
    policies; ``critical_difference`` is None below two of either.
    """

    measure: str
    topics: int
    starts: int
    mean_ranks: dict[str, float]
    friedman: float | None = None
    p: float | None = None
    critical_difference: float | None = None

    def differ(self, one: str, other: str) -> bool:
        """Return whether two mean ranks differ by more than the critical difference."""
        if self.critical_difference is None:
            return False
        return abs(self.mean_ranks[one] - self.mean_ranks[other]) > self.critical_difference


def rank_policies(grid: RunGrid, measure: str = "harvest") -> PolicyRanks:
    """Rank the policies on each topic by their mean of ``measure`` over its starts."""
    policies = grid.non_oracles
    whole = grid.with_runs_of(policies)
    columns = [whole.policies.index(policy) for policy in policies]
    values = whole.values(measure)[:, columns]
    clusters = [start.cluster for start in whole.starts]
    means = [
        values[[place for place, cluster in enumerate(clusters) if cluster == topic]].mean(axis=0)
        for topic in whole.topics
    ]
    scores = np.array(means).reshape(len(means), len(policies))
    return rank_scores(policies, scores, measure=measure, starts=len(whole.starts))


def rank_scores(
    policies: Sequence[str], scores: NDArray[np.float64], *, measure: str, starts: int
) -> PolicyRanks:
    """Rank ``scores``, shape (topics, policies), more is better; ties share their mean rank."""
    topics, non_oracles = scores.shape
    if not topics or not non_oracles:
        return PolicyRanks(measure=measure, topics=topics, starts=starts, mean_ranks={})
    # Rounded: means of equal runs differ in the last bits.
    each = stats.rankdata(-np.round(scores, 9), axis=1)
    mean_ranks = {name: float(rank) for name, rank in zip(policies, each.mean(axis=0), strict=True)}
    mean_ranks = dict(sorted(mean_ranks.items(), key=lambda item: item[1]))
    critical = critical_difference(non_oracles, topics) if topics > 1 and non_oracles > 1 else None
    friedman, p = _friedman(each)
    return PolicyRanks(
        measure=measure,
        topics=topics,
        starts=starts,
        mean_ranks=mean_ranks,
        friedman=friedman,
        p=p,
        critical_difference=critical,
    )


def critical_difference(policies: int, topics: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of mean ranks; Demšar's equation 6."""
    q = float(stats.studentized_range.ppf(1 - alpha, policies, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(policies * (policies + 1) / (6 * topics)))


def _friedman(ranks: NDArray[np.float64]) -> tuple[float | None, float | None]:
    topics, non_oracles = ranks.shape
    if topics < 2 or non_oracles < 3:
        return None, None
    if (ranks == ranks[:, :1]).all():  # all tied: the statistic would be 0/0
        return 0.0, 1.0
    statistic, p = stats.friedmanchisquare(*ranks.T)
    return float(statistic), float(p)
