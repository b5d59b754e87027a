"""Runs laid out as starts × policies, so that like is compared with like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.evaluation.findings.runs import Run, Start

BASELINE = "bfs"
OURS = "focused"
ABLATION = f"{OURS}-without-"
"""How the names of our own policy with a part left out begin."""

ORACLES = ("oracle", "path-oracle", "judge-oracle")
"""Policies that see the labels: the greedy one, and the one that knows distances."""

Group = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Grid:
    """All runs; ``starts`` are sorted, ``policies`` in the order met.

    A policy need not have a run from every start: an interrupted comparison
    has holes.
    """

    starts: tuple[Start, ...]
    policies: tuple[str, ...]
    runs: dict[tuple[Start, str], Run]

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Grid:
        """Lay out ``runs``; each policy and start must be there once at most."""
        cells = {(run.start, run.policy): run for run in runs}
        starts = sorted({start for start, _ in cells}, key=_order)
        return cls(tuple(starts), tuple(dict.fromkeys(policy for _, policy in cells)), cells)

    def values(self, measure: str | Callable[[Run], float | None]) -> NDArray[np.float64]:
        """A measure of each run, shape (starts, policies); NaN where there is none."""
        read = (lambda run: getattr(run, measure)) if isinstance(measure, str) else measure
        table = np.full((len(self.starts), len(self.policies)), np.nan)
        for row, start in enumerate(self.starts):
            for column, policy in enumerate(self.policies):
                run = self.runs.get((start, policy))
                value = None if run is None else read(run)
                if value is not None:
                    table[row, column] = value
        return table

    def runs_by(self, policy: str) -> list[Run]:
        """A policy's runs, in the order of the starts."""
        return [self.runs[start, policy] for start in self.starts if (start, policy) in self.runs]

    def where(self, keep: Callable[[Start], bool]) -> Grid:
        """The part whose starts ``keep`` wants; all policies stay."""
        starts = tuple(start for start in self.starts if keep(start))
        kept = set(starts)
        cells = {key: run for key, run in self.runs.items() if key[0] in kept}
        return Grid(starts, self.policies, cells)

    def in_group(self, group: Group) -> Grid:
        """The starts with that kind of seeds and that host cap."""
        return self.where(lambda start: start.group == group)

    def on_topic(self, web: str, topic: str) -> Grid:
        """The starts of one topic of one web."""
        return self.where(lambda start: start.cluster == (web, topic))

    def complete(self, policies: Sequence[str]) -> Grid:
        """The starts from which every one of ``policies`` has a run."""
        return self.where(lambda start: all((start, policy) in self.runs for policy in policies))

    @property
    def topics(self) -> list[tuple[str, str]]:
        """Web and topic, each once, sorted."""
        return list(dict.fromkeys(start.cluster for start in self.starts))

    @property
    def groups(self) -> list[Group]:
        """Kind of seeds and host cap, each once, sorted; no cap comes first."""
        each = {start.group for start in self.starts}
        return sorted(each, key=lambda group: (_seeds_order(group[0]), group[1] or 0))

    @property
    def contenders(self) -> list[str]:
        """The policies that see no labels."""
        return [policy for policy in self.policies if policy not in ORACLES]


def group_name(group: Group) -> str:
    """A group in words: ``seeds on-topic:5, at most 300 pages a host``."""
    seeds, cap = group
    return f"seeds {seeds}" + ("" if cap is None else f", at most {cap:,} pages a host")


def _order(start: Start) -> tuple[str, str, tuple[int, str], int, int]:
    cap = start.host_cap or 0
    return (start.web, start.topic, _seeds_order(start.seeds), start.repeat, cap)


def _seeds_order(seeds: str) -> tuple[int, str]:
    """The topic's own first, then on topic, off topic, files."""
    kinds = ("topic", "on-topic", "off-topic")
    kind = seeds.partition(":")[0]
    return (kinds.index(kind) if kind in kinds else len(kinds), seeds)
