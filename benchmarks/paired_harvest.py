"""Compare the harvest of two versions of this program, start by start.

Run the harvest benchmark at both commits, each with a work folder of its own, then compare the
folders::

    python benchmarks/harvest.py --policies focused --repeat 3 --out A --work WA
    python benchmarks/paired_harvest.py WA WB

``BEFORE`` and ``AFTER`` are files ``comparison.json`` of ``focused compare``, or folders that hold
some at any depth. Differences are after minus before, in percentage points of the harvest rate,
over the starts that both have; starts that cannot reach the topic are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from focused.errors import ComparisonError
from focused.orderings.policy_names import FOCUSED
from focused_lab.analysis.comparison_runs import (
    Run,
    RunGrid,
    format_start_group,
    read_comparison,
)
from focused_lab.analysis.inference import Estimate, cluster_t_estimate
from focused_lab.analysis.number_format import (
    format_marked_points,
    format_points_interval,
    share,
)
from focused_lab.analysis.paired_comparison import (
    TIE_MARGIN,
    PairedDifference,
    compare_pair,
)
from focused_lab.analysis.tables import clipped_text, table_of

BEFORE, AFTER = "before", "after"
DOCUMENT = "comparison.json"


class VersionDifference(msgspec.Struct, frozen=True, kw_only=True):
    """After minus before over the starts of one ``part``; harvests are means, in [0, 1].

    ``pair`` has the bootstrap interval over topics and starts, ``by_topics`` the t interval over
    topics.
    """

    part: str
    before: float
    after: float
    pair: PairedDifference
    by_topics: Estimate


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--policy", default=FOCUSED)
    parser.add_argument("--topics", action="store_true", help="also a row for each topic")
    options = parser.parse_args(arguments)
    try:
        grid = paired_grid(read_runs(options.before), read_runs(options.after), options.policy)
    except ComparisonError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    Console(width=120).print(differences_table(options.policy, compare_versions(grid)))
    if options.topics:
        parts = sorted(by_topic(grid), key=lambda each: each.pair.difference.mean)
        Console(width=120).print(differences_table(options.policy, parts))
    return 0


def read_runs(path: Path) -> list[Run]:
    """All runs of a document, or of those in a folder.

    Raises ComparisonError without any, and when two documents have a run of the same start.
    """
    files = sorted(path.rglob(DOCUMENT)) if path.is_dir() else [path]
    runs = [run for file in files for run in read_comparison(file).runs]
    if not runs:
        raise ComparisonError(f"{path} holds no {DOCUMENT} with runs")
    if len({(run.policy, run.start) for run in runs}) < len(runs):
        raise ComparisonError(f"{path} holds two runs of one policy from the same start")
    return runs


def paired_grid(before: Sequence[Run], after: Sequence[Run], policy: str = FOCUSED) -> RunGrid:
    """The runs of ``policy`` from the starts of both versions, as policies BEFORE and AFTER.

    Raises ComparisonError when they share no start that can reach the topic, or when a budget
    differs.
    """
    runs = [
        msgspec.structs.replace(run, policy=version)
        for version, made in ((BEFORE, before), (AFTER, after))
        for run in made
        if run.policy == policy
    ]
    whole = RunGrid.from_runs(runs).with_runs_of([BEFORE, AFTER])
    grid = whole.where(lambda start: not whole.is_unreachable(start))
    if not grid.starts:
        raise ComparisonError(f"the two have no start of {policy} in common")
    for start in grid.starts:
        budgets = [grid.runs[start, version].budget for version in (BEFORE, AFTER)]
        if budgets[0] != budgets[1]:
            raise ComparisonError(
                f"{start.topic} on {start.web}: budgets of {budgets[0]:,} and {budgets[1]:,} pages "
                "cannot be compared"
            )
    return grid


def compare_versions(grid: RunGrid) -> list[VersionDifference]:
    """One row per web, then per kind of start, then over all starts."""
    webs = list(dict.fromkeys(start.web for start in grid.starts))
    parts = [(web, _on_web(grid, web)) for web in webs]
    parts += [(format_start_group(group), grid.in_group(group)) for group in grid.groups]
    return [_difference(name, part) for name, part in (*parts, ("all starts", grid))]


def _on_web(grid: RunGrid, web: str) -> RunGrid:
    return grid.where(lambda start: start.web == web)


def by_topic(grid: RunGrid) -> Iterator[VersionDifference]:
    """One row per topic of a web."""
    for web, topic in grid.topics:
        yield _difference(f"{topic} on {web}", grid.on_topic(web, topic))


def _difference(name: str, grid: RunGrid) -> VersionDifference:
    pair = compare_pair(grid, AFTER, BEFORE, np.random.default_rng(0))
    harvest = {
        version: np.array([run.harvest for run in grid.runs_of_policy(version)])
        for version in (BEFORE, AFTER)
    }
    by_topics = cluster_t_estimate(
        [start.cluster for start in grid.starts], harvest[AFTER] - harvest[BEFORE]
    )
    assert pair is not None and by_topics is not None
    return VersionDifference(
        part=name,
        before=float(harvest[BEFORE].mean()),
        after=float(harvest[AFTER].mean()),
        pair=pair,
        by_topics=by_topics,
    )


def differences_table(policy: str, rows: Sequence[VersionDifference]) -> Table:
    """The rows as a table for the terminal."""
    return table_of(
        f"Harvest of {policy}, after minus before, in percentage points, from the same starts",
        rows,
        [
            ("starts of", lambda each: clipped_text(each.part, 36)),
            ("starts", lambda each: f"{each.pair.starts:,}"),
            ("topics", lambda each: f"{each.pair.topics:,}"),
            ("before", lambda each: share(each.before)),
            ("after", lambda each: share(each.after)),
            ("points", lambda each: format_marked_points(each.by_topics)),
            ("95% by t", lambda each: format_points_interval(each.by_topics)),
            ("95% bootstrap", lambda each: format_points_interval(each.pair.difference)),
            (
                "won:tied:lost",
                lambda each: f"{each.pair.wins}:{each.pair.ties}:{each.pair.losses}",
            ),
        ],
        "95%: t interval over topics, and bootstrap over topics and starts, which is too narrow "
        "for few topics. ?: the t interval contains zero or is missing. A tie: within "
        f"{100 * TIE_MARGIN:.1f} points",
    )


if __name__ == "__main__":
    sys.exit(main())
