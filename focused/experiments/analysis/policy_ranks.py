"""Ranks of policies across topics, with Friedman's and Nemenyi's tests.

Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from focused.experiments.analysis.comparison_runs import RunGrid

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
