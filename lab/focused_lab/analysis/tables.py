"""The tables of a comparison for the terminal; each fits a hundred columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from focused.orderings.policy_names import ABLATION_PREFIX, BASELINE, FOCUSED
from focused.reports.formatting import single_line
from focused_lab.analysis import number_format
from focused_lab.analysis.comparison_analysis import ComparisonAnalysis
from focused_lab.analysis.comparison_runs import (
    RunGrid,
    StartGroup,
    UnreachableStarts,
    format_start_group,
)
from focused_lab.analysis.paired_comparison import TIE_MARGIN, PairedDifference
from focused_lab.analysis.policy_summary import PolicySummary

TABLES_WIDTH = 100
"""Width of the widest table, in characters."""

_LEAST_WIDTH = 80  # room for title and caption
_POLICY_WIDTH = 20


def new_table(title: str, first: str, *others: str) -> Table:
    """Create an empty table with right-aligned figures and unbroken intervals."""
    table = Table(
        title=Text(single_line(title)), title_justify="left",
        caption_justify="left", box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0), caption_style="dim", min_width=_LEAST_WIDTH,
    )  # fmt: skip
    words = {"topic", "seeds"}
    table.add_column(first, no_wrap=first not in words)
    for column in others:
        table.add_column(
            column, justify="left" if column in words else "right", no_wrap=column == "95%"
        )
    return table


Cell = str | Text
Row = TypeVar("Row")


def table_of(
    title: str,
    rows: Iterable[Row],
    columns: Sequence[tuple[str, Callable[[Row], Cell]]],
    caption: str | None = None,
) -> Table:
    """Create a table of ``rows``; each column is a heading and a function from row to cell."""
    table = new_table(title, *(heading for heading, _ in columns))
    for row in rows:
        table.add_row(*(cell(row) for _, cell in columns))
    table.caption = caption
    return table


def count(attribute: str) -> Callable[[Any], str]:
    """Return a cell that shows an integer attribute of its row."""
    return lambda row: f"{getattr(row, attribute):,}"


def cell(show: Callable[..., str], *attributes: str) -> Callable[[Any], str]:
    """Return a cell that shows attributes of its row."""
    return lambda row: show(*(getattr(row, attribute) for attribute in attributes))


def policy_cell(row: Any) -> Text:
    """Return a cell with the policy of its row."""
    return policy_text(row.policy)


def clipped_text(text: str, width: int) -> Text:
    """Untrusted text, escaped and cut to ``width`` characters."""
    return Text(single_line(text, width))


def policy_text(name: str) -> Text:
    """A policy's name, cut where it is too long.

    The end is kept of ``package.module.function`` and of ablations: it is the distinctive part.
    """
    line = single_line(name)
    if line.startswith(ABLATION_PREFIX) and len(line) > _POLICY_WIDTH:
        return clipped_text("…without-" + line.removeprefix(ABLATION_PREFIX), _POLICY_WIDTH + 4)
    if "." in line and len(line) > _POLICY_WIDTH:
        return Text("…" + line[1 - _POLICY_WIDTH :])
    return clipped_text(line, _POLICY_WIDTH)


_PART_WIDTH = 24


def pages_to_baseline_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """Pages that each policy needs to match breadth-first; empty without it."""
    if not analysis.pages_to_baseline:
        return []
    return [
        table_of(
            f"Pages needed for what {BASELINE} finds with its whole budget, from the same starts",
            analysis.fewest_pages_first,
            [
                ("policy", policy_cell),
                ("starts", count("starts")),
                ("reached", count("reached")),
                ("never", count("never")),
                ("pages", cell(number_format.format_median_pages, "pages", "starts")),
                ("95%", cell(number_format.format_pages_interval, "pages_low", "pages_high")),
                ("of its pages", cell(number_format.format_median_share, "share", "starts")),
                (
                    "95%",
                    cell(number_format.format_median_share_interval, "share_low", "share_high"),
                ),
            ],
            f"Medians over the starts from which {BASELINE} found anything; a run that never got "
            "there counts as infinite. 95%: bootstrap over topics and starts",
        )
    ]


def ablation_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """Ablations minus the full policy; empty without any."""
    if not analysis.ablations:
        return []
    return [
        table_of(
            f"Ablations of {FOCUSED}: without the part minus the full policy, from the same starts",
            analysis.ablations,
            [
                (
                    "without",
                    lambda each: clipped_text(
                        each.policy.removeprefix(ABLATION_PREFIX), _PART_WIDTH
                    ),
                ),
                ("points", cell(number_format.format_marked_points, "difference")),
                ("95%", cell(number_format.format_points_interval, "difference")),
                ("area", lambda each: number_format.format_signed(each.area_difference.mean, 3)),
                ("95%", lambda each: number_format.format_signed_interval(each.area_difference, 3)),
                ("wins", count("wins")),
                ("ties", count("ties")),
                ("losses", count("losses")),
            ],
            "Points: of harvest, in per cent; below zero the part helps. ?: the interval contains "
            "zero or is missing. 95%: bootstrap over topics and starts",
        )
    ]


def calibration_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """Scores against labels by policy; empty where no scores are probabilities."""
    if not analysis.calibration:
        return []
    table = table_of(
        "Calibration of scores by labels, over all runs",
        analysis.calibration,
        [
            ("policy", policy_cell),
            ("runs", count("runs")),
            ("pages", count("pages")),
            (
                "calibration error",
                lambda each: number_format.format_number(each.calibration_error, 3),
            ),
            ("Brier score", lambda each: number_format.format_number(each.brier, 3)),
            ("of the mean", lambda each: number_format.format_number(each.brier_reference, 3)),
        ],
        "Scores before the fetch; 0 is best. Of the mean: the Brier score of a constant "
        "prediction, the share on topic. Without seeds, training pages and duplicates",
    )
    return [table, _bins_table(analysis)]


def _bins_table(analysis: ComparisonAnalysis) -> Table:
    first = next((c for c in analysis.calibration if c.policy == FOCUSED), analysis.calibration[0])
    return table_of(
        f"Scores of {first.policy} by bin",
        first.bins,
        [
            ("score", lambda each: f"{each.low:.1f}–{each.high:.1f}"),
            ("pages", count("pages")),
            ("mean score", lambda each: number_format.format_number(each.score, 2)),
            ("on topic", cell(number_format.format_mean_share, "on_topic")),
            ("95%", cell(number_format.format_share_interval, "on_topic")),
        ],
    )


_TOPICS_ABREAST = 12
_START_COLUMNS = 48
"""Width of topic, seeds and cap beside the policies, in characters."""


def all_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """All tables that a comparison prints, in order."""
    if not analysis.grid.starts:
        return unreachable_tables(analysis)
    return [
        *harvest_tables(analysis),
        *unreachable_tables(analysis),
        summary_table(analysis),
        *attainable_tables(analysis),
        *pages_to_baseline_tables(analysis),
        costs_table(analysis),
        *(
            table
            for reference in dict.fromkeys(each.reference for each in analysis.paired)
            for table in (
                paired_table(analysis, reference),
                *paired_groups_tables(analysis, reference),
            )
        ),
        *ablation_tables(analysis),
        *calibration_tables(analysis),
        *classifier_tables(analysis),
    ]


def harvest_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """Mean harvest of each policy by topic, seeds and cap.

    A few policies are columns of one table; many are rows, with a table per kind of start and
    numbered topics as columns, named below.
    """
    policies = [each.policy for each in analysis.best_first]
    taken = sum(max(len(policy), 5) + 2 for policy in policies)
    if _START_COLUMNS + taken <= TABLES_WIDTH:
        return [_harvest_by_start(analysis.grid, policies)]
    return [
        table
        for group in analysis.grid.groups
        for table in _harvest_by_policy(analysis.grid.in_group(group), group, policies)
    ]


def summary_table(analysis: ComparisonAnalysis) -> Table:
    """Means by labels, the best policy first."""
    return table_of(
        "Summary, by labels",
        analysis.best_first,
        [
            ("policy", policy_cell),
            ("runs", count("runs")),
            ("harvest", cell(number_format.format_mean_share, "harvest")),
            ("95%", cell(number_format.format_share_interval, "harvest")),
            ("recall", cell(number_format.format_mean_share, "recall")),
            ("area", lambda each: number_format.format_mean_number(each.area, 3)),
            ("hosts", lambda each: number_format.format_number(each.hosts, 1)),
            ("× bfs", cell(number_format.format_mean_number, "ratio_to_bfs")),
            ("early", count("ended_early")),
        ],
        "95%: bootstrap over topics and starts. × bfs: ratio of mean harvests over paired starts. "
        "Early: runs that ended before their budget was spent; harvest flatters them",
    )


def unreachable_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """The starts from which no page on topic can be reached; empty without any."""
    if not analysis.unreachable:
        return []
    starts = len(analysis.grid.starts) + analysis.unreachable_count
    return [
        table_of(
            "Starts from which the topic cannot be reached: "
            f"{analysis.unreachable_count:,} of {starts:,}",
            analysis.unreachable,
            [
                ("topic", lambda each: clipped_text(each.topic, 26)),
                ("web", lambda each: clipped_text(each.web, 18)),
                ("seeds", lambda each: clipped_text(each.seeds, 14)),
                ("cap", cell(number_format.format_host_cap, "host_cap")),
                ("unreachable", lambda each: f"{len(each.repeats):,} of {each.starts:,}"),
                ("repeats", _format_repeats),
            ],
            "No path of links that the crawl may follow leads from these seeds to a page on topic "
            "that counts. All other figures leave these starts out",
        )
    ]


def _format_repeats(each: UnreachableStarts) -> str:
    return "all" if len(each.repeats) == each.starts else ", ".join(map(str, each.repeats))


def attainable_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """Harvest as a share of the oracles'; empty without an oracle's run."""
    if not analysis.shares_of_oracles:
        return []
    return [
        table_of(
            "Share of the harvest that could be attained",
            analysis.shares_of_oracles,
            [
                ("policy", policy_cell),
                ("of path-oracle", cell(number_format.format_mean_share, "ratio_to_path_oracle")),
                ("95%", cell(number_format.format_share_interval, "ratio_to_path_oracle")),
                ("of oracle", cell(number_format.format_mean_share, "ratio_to_oracle")),
                ("95%", cell(number_format.format_share_interval, "ratio_to_oracle")),
            ],
            "path-oracle knows every page and every link of the web. oracle knows which waiting "
            "links lead to pages on topic, and nothing beyond: its share of path-oracle is what "
            "perfect link evidence attains. Ratios of mean harvests over paired starts",
        )
    ]


def costs_table(analysis: ComparisonAnalysis) -> Table:
    """Progress and costs of each policy."""
    return table_of(
        "Progress and costs",
        analysis.best_first,
        [
            ("policy", policy_cell),
            ("stop", cell(number_format.share, "crawl_and_stop")),
            ("stop hot", cell(number_format.share, "crawl_and_stop_threshold")),
            ("half at", cell(number_format.format_number, "half_recall_pages")),
            ("reached", lambda each: f"{each.half_recall_reached:,}/{each.runs:,}"),
            ("minutes", lambda each: number_format.format_number(_minutes(each.simulated_s), 1)),
            ("CPU s", lambda each: number_format.format_number(each.cpu_s, 1)),
            ("ms/page", lambda each: number_format.format_number(each.cpu_ms_per_page, 2)),
            ("peak MB", cell(number_format.format_number, "peak_mb")),
        ],
        "stop, stop hot: crawl and stop, without and with threshold (Cho et al. 1998). Half at: "
        "median pages to half of the recall, of the runs that reached it. Minutes: simulated",
    )


def paired_table(analysis: ComparisonAnalysis, reference: str) -> Table:
    """Every policy minus ``reference``, over shared starts."""
    return table_of(
        f"Harvest minus that of {single_line(reference)}, in percentage points, from the same "
        "starts",
        analysis.paired_with(reference),
        [
            ("policy", policy_cell),
            ("points", _format_difference),
            ("95%", cell(number_format.format_points_interval, "difference")),
            ("area", lambda each: number_format.format_signed(each.area_difference.mean, 3)),
            ("wins", count("wins")),
            ("ties", count("ties")),
            ("losses", count("losses")),
            ("topics", lambda each: f"{each.topics_won:,}:{each.topics_lost:,}"),
        ],
        f"A tie: harvests within {100 * TIE_MARGIN:.1f} points. ?: the interval contains zero or "
        "is "
        "missing. Topics: better on, worse on",
    )


def paired_groups_tables(analysis: ComparisonAnalysis, reference: str) -> list[Table]:
    """The same differences by kind of start; empty with one kind only."""
    groups = analysis.grid.groups
    if len(groups) < 2:
        return []
    table = new_table(f"The same by kind of start, minus {single_line(reference)}", "policy")
    for seeds, cap in groups:
        capped = "" if cap is None else f"\ncap {cap:,}"
        table.add_column(Text(single_line(seeds, 14) + capped), justify="right")
    by_group = [analysis.paired_with(reference, group) for group in groups]
    for each in analysis.paired_with(reference):
        cells = ({pair.policy: pair for pair in part}.get(each.policy) for part in by_group)
        row = (number_format.NONE if pair is None else _format_difference(pair) for pair in cells)
        table.add_row(policy_text(each.policy), *row)
    return [table]


def classifier_tables(analysis: ComparisonAnalysis) -> list[Table]:
    """The classifier's own harvest beside that by labels; empty where unknown."""
    known = [each for each in analysis.best_first if each.classifier_harvest is not None]
    if not known:
        return []
    return [
        table_of(
            "The same pages by the crawl's own classifier",
            known,
            [
                ("policy", policy_cell),
                ("by classifier", cell(number_format.share, "classifier_harvest")),
                ("by labels", cell(number_format.format_mean_share, "harvest")),
                ("flattery", _flattery),
                ("precision", cell(number_format.share, "classifier_precision")),
                ("recall", cell(number_format.share, "classifier_recall")),
            ],
            "Precision: share of its on-topic pages that labels confirm. Recall: share of on-topic "
            "pages, by labels, that it finds. Flattery: percentage points",
        )
    ]


def mean_harvest_by_cell(grid: RunGrid) -> dict[tuple[str, str, str, str, int | None], float]:
    """Mean harvest by policy, web, topic, seeds and host cap."""
    cells: dict[tuple[str, str, str, str, int | None], list[float]] = {}
    for (start, policy), run in grid.runs.items():
        key = (policy, start.web, start.topic, start.seeds, start.host_cap)
        cells.setdefault(key, []).append(run.harvest)
    return {key: float(np.mean(values)) for key, values in cells.items()}


def _harvest_by_start(grid: RunGrid, policies: Sequence[str]) -> Table:
    table = new_table("Harvest by topic, seeds and policy", "topic", "seeds", "cap")
    for policy in policies:
        table.add_column(policy_text(policy), justify="right")
    cells = mean_harvest_by_cell(grid)
    kinds = dict.fromkeys((each.web, each.topic, each.seeds, each.host_cap) for each in grid.starts)
    for web, topic, seeds, cap in kinds:
        values = (cells.get((policy, web, topic, seeds, cap)) for policy in policies)
        table.add_row(
            clipped_text(topic, 26),
            clipped_text(seeds, 12),
            number_format.format_host_cap(cap),
            *map(number_format.share, values),
        )
    return table


def _harvest_by_policy(
    grid: RunGrid, group: StartGroup, policies: Sequence[str]
) -> Iterator[Table]:
    cells, topics = mean_harvest_by_cell(grid), grid.topics
    for first in range(0, len(topics), _TOPICS_ABREAST):
        shown = list(enumerate(topics, 1))[first : first + _TOPICS_ABREAST]
        title = f"Harvest in per cent, {format_start_group(group)}"
        table = new_table(title, "policy", *(str(n) for n, _ in shown))
        for policy in policies:
            values = (cells.get((policy, web, topic, *group)) for _, (web, topic) in shown)
            table.add_row(policy_text(policy), *map(number_format.format_bare_share, values))
        key = ", ".join(f"{n}\u00a0{single_line(topic, 40)}" for n, (_, topic) in shown)
        table.caption = Text(key)
        yield table


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 60


def _flattery(each: PolicySummary) -> str:
    if each.classifier_harvest is None or each.harvest is None:
        return number_format.NONE
    return number_format.format_points(each.classifier_harvest - each.harvest.mean)


def _format_difference(pair: PairedDifference) -> str:
    return number_format.format_marked_points(pair.difference)
