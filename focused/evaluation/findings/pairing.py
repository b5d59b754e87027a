"""Two policies from the same starts: the mean difference, wins, ties and losses."""

from __future__ import annotations

import msgspec
import numpy as np

from focused.evaluation.findings.grid import BASELINE, OURS, Grid, Group
from focused.evaluation.findings.inference import Estimate, draw_weights, mean_estimate

TIE = 0.005
"""Harvests that differ by no more than this are a tie: five pages in a thousand."""


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """``policy`` minus ``reference`` over the ``starts`` that both have a run from.

    ``difference`` is of harvest, ``area_difference`` of area, in [-1, 1]. A start
    is a tie where the harvests differ by at most :data:`TIE`; ``topics_won`` and
    ``topics_lost`` count topics likewise, by the mean difference of their starts.
    ``seeds`` is None over all kinds of start (then ``host_cap`` says nothing).
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


def pair_policies(grid: Grid, rng: np.random.Generator) -> list[Pairing]:
    """Every policy against each reference: over all starts, then by kind of start.

    References are breadth-first and our own, as far as they are there; without
    either it is the first contender met.
    """
    kinds: list[tuple[Group | None, Grid]] = [(None, grid)]
    if len(grid.groups) > 1:
        kinds += [(kind, grid.in_group(kind)) for kind in grid.groups]
    return [
        pairing
        for group, part in kinds
        for reference in references(grid)
        for policy in grid.policies
        if policy != reference
        and (pairing := pair(part, policy, reference, rng, group)) is not None
    ]


def references(grid: Grid) -> list[str]:
    """Whom the others are compared with."""
    known = [name for name in (BASELINE, OURS) if name in grid.policies]
    return known or grid.contenders[:1] or list(grid.policies[:1])


def pair(
    grid: Grid, policy: str, reference: str, rng: np.random.Generator, group: Group | None = None
) -> Pairing | None:
    """Compare two policies; None when they share no start. ``group`` is only noted."""
    both = grid.complete([policy, reference])
    if not both.starts:
        return None
    runs = [(both.runs[start, policy], both.runs[start, reference]) for start in both.starts]
    # Rounded: 0.305 - 0.3 must be the tie that it is on paper
    difference = np.round([mine.harvest - other.harvest for mine, other in runs], 12)
    area = np.array([mine.area - other.area for mine, other in runs])
    weights = draw_weights([start.cluster for start in both.starts], rng)
    of_harvest = mean_estimate(weights, difference)
    of_area = mean_estimate(weights, area)
    assert of_harvest is not None and of_area is not None  # there is a start
    clusters = [start.cluster for start in both.starts]
    by_topic = np.array(
        [difference[[each == topic for each in clusters]].mean() for topic in both.topics]
    )
    return Pairing(
        policy=policy,
        reference=reference,
        seeds=group[0] if group else None,
        host_cap=group[1] if group else None,
        starts=len(both.starts),
        topics=len(both.topics),
        difference=of_harvest,
        area_difference=of_area,
        wins=int((difference > TIE).sum()),
        ties=int((abs(difference) <= TIE).sum()),
        losses=int((difference < -TIE).sum()),
        topics_won=int((by_topic > TIE).sum()),
        topics_lost=int((by_topic < -TIE).sum()),
    )
