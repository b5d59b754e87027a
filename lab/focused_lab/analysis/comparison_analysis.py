"""Compute the whole analysis of a comparison, for its JSON document and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from focused.orderings.policy_names import ABLATION_PREFIX, FOCUSED
from focused_lab.analysis.comparison_runs import (
    Run,
    RunGrid,
    StartGroup,
    UnreachableStarts,
    find_unreachable_starts,
    runs_of,
)
from focused_lab.analysis.inference import Estimate
from focused_lab.analysis.paired_comparison import (
    PagesToBaseline,
    PairedDifference,
    PolicyRanks,
    measure_pages_to_baseline,
    pair_policies,
    rank_policies,
)
from focused_lab.analysis.policy_summary import (
    PolicyCalibration,
    PolicySummary,
    measure_calibration,
    summarise,
)


class ComparisonAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The runs and their statistics; ``ranks`` are by mean harvest on each topic.

    ``grid`` and all statistics are without ``unreachable``, the starts from which no page on topic
    can be reached: nothing can be compared there. ``pages_to_baseline`` is empty without
    breadth-first, ``calibration`` without a policy whose scores are probabilities.
    """

    grid: RunGrid
    unreachable: tuple[UnreachableStarts, ...]
    summary: tuple[PolicySummary, ...]
    paired: tuple[PairedDifference, ...]
    ranks: PolicyRanks
    pages_to_baseline: tuple[PagesToBaseline, ...]
    calibration: tuple[PolicyCalibration, ...]

    def summary_of(self, policy: str) -> PolicySummary | None:
        """The summary of a policy; None without one."""
        return next((each for each in self.summary if each.policy == policy), None)

    def pairing(self, policy: str, reference: str) -> PairedDifference | None:
        """The difference of two policies over all kinds of start."""
        key = (policy, reference, None)
        found = (p for p in self.paired if (p.policy, p.reference, p.seeds) == key)
        return next(found, None)

    def paired_with(
        self, reference: str, group: StartGroup | None = None
    ) -> list[PairedDifference]:
        """Every other policy minus ``reference``, the best policy first, over all starts or one
        ``group``.
        """
        seeds, cap = group or (None, None)
        key = (reference, seeds, cap)
        order = [each.policy for each in self.best_first]
        pairs = [p for p in self.paired if (p.reference, p.seeds, p.host_cap) == key]
        return sorted(pairs, key=lambda pair: order.index(pair.policy))

    @property
    def unreachable_count(self) -> int:
        """Number of starts from which no page on topic can be reached."""
        return sum(len(each.repeats) for each in self.unreachable)

    @property
    def shares_of_oracles(self) -> list[PolicySummary]:
        """The summaries that have a share of an oracle's harvest, the best policy first."""
        return [
            each for each in self.best_first if each.ratio_to_path_oracle or each.ratio_to_oracle
        ]

    @property
    def fewest_pages_first(self) -> list[PagesToBaseline]:
        """Pages needed to match breadth-first, fewest first, policies that never do last."""
        return sorted(
            self.pages_to_baseline, key=lambda each: (each.share is None, each.share or 0.0)
        )

    @property
    def ablations(self) -> list[PairedDifference]:
        """Ablations minus the full policy, the largest loss first."""
        pairs = [
            pair for pair in self.paired_with(FOCUSED) if pair.policy.startswith(ABLATION_PREFIX)
        ]
        return sorted(pairs, key=lambda pair: pair.difference.mean)

    @property
    def best_first(self) -> list[PolicySummary]:
        """The summaries by mean harvest, best first; policies without a run last."""
        return sorted(self.summary, key=lambda each: -each.harvest.mean if each.harvest else 1.0)


def analyse_runs(runs: Iterable[Run], seed: int = 0) -> ComparisonAnalysis:
    """Summarise, pair and rank ``runs``; ``seed`` seeds the bootstrap.

    The order of the runs changes no figure.
    """
    whole = RunGrid.from_runs(runs)
    grid = whole.where(lambda start: not whole.is_unreachable(start))
    # One generator each, so that an added policy changes no interval elsewhere.
    for_summary, for_pairs, for_goals, for_scores = np.random.default_rng(seed).spawn(4)
    return ComparisonAnalysis(
        grid=grid,
        unreachable=tuple(find_unreachable_starts(whole)),
        summary=tuple(summarise(grid, for_summary)),
        paired=tuple(pair_policies(grid, for_pairs)),
        ranks=rank_policies(grid),
        pages_to_baseline=tuple(measure_pages_to_baseline(grid, for_goals)),
        calibration=tuple(measure_calibration(grid, for_scores)),
    )


def analysis_to_dict(runs: Iterable[Mapping[str, Any]], seed: int = 0) -> dict[str, Any]:
    """Convert the analysis of a document's ``runs`` to JSON-serialisable data, without the grid.

    An estimate ``x`` becomes three keys: ``x``, ``x_low`` and ``x_high``. ``seed`` is that of the
    comparison's settings. Raises :class:`~focused.errors.ComparisonError` for damaged runs.
    """
    found = analyse_runs(runs_of(runs), seed)
    return {
        "unreachable": [flatten_estimates(each) for each in found.unreachable],
        "summary": [flatten_estimates(each) for each in found.summary],
        "paired": [flatten_estimates(each) for each in found.paired],
        "ranks": flatten_estimates(found.ranks),
        "pages_to_baseline": [flatten_estimates(each) for each in found.pages_to_baseline],
        "calibration": [flatten_estimates(each) for each in found.calibration],
    }


def flatten_estimates(row: msgspec.Struct) -> dict[str, Any]:
    """Convert a row to JSON-serialisable data, each estimate as three keys."""
    values: dict[str, Any] = {}
    for field in row.__struct_fields__:
        value = getattr(row, field)
        if isinstance(value, Estimate) or _is_estimate_field(row, field):
            low, high = f"{field}_low", f"{field}_high"
            values |= {field: None, low: None, high: None}
            if value is not None:
                values |= {field: value.mean, low: value.low, high: value.high}
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            values[field] = [flatten_estimates(each) for each in value]
        else:
            values[field] = msgspec.to_builtins(value)
    return values


def _is_estimate_field(row: msgspec.Struct, field: str) -> bool:
    """Missing estimates have their three keys, too, so that columns don't depend on the runs."""
    return "Estimate" in str(type(row).__annotations__.get(field, ""))
