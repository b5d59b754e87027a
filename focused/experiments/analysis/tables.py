"""How every table of findings looks in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from focused.experiments.analysis import number_format
from focused.experiments.analysis.comparison_analysis import ComparisonAnalysis
from focused.experiments.analysis.comparison_runs import (
    ABLATION_PREFIX,
    BASELINE,
    FOCUSED,
    RunGrid,
    StartGroup,
    format_start_group,
)
from focused.experiments.analysis.paired_comparison import TIE_MARGIN, PairedDifference
from focused.reports.formatting import single_line

TABLES_WIDTH = 100
"""Characters that the widest table takes up."""

_LEAST_WIDTH = 80  # room for a title and a caption
_POLICY_WIDTH = 20


def new_table(title: str, first: str, *others: str) -> Table:
    """A table without rows; figures stand to the right, and intervals are never broken."""
    table = Table(
        title=Text(single_line(title)), title_justify="left", caption_justify="left", box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0), caption_style="dim", min_width=_LEAST_WIDTH,
    )  # fmt: skip
    words = {"topic", "seeds"}
    table.add_column(first, no_wrap=first not in words)
    for column in others:
        table.add_column(
            column, justify="left" if column in words else "right", no_wrap=column == "95%"
        )
    return table


def clipped_text(text: str, width: int) -> Text:
    """Text of others, cut to ``width`` characters; it cannot steer the terminal."""
    return Text(single_line(text, width))


def policy_cell(name: str) -> Text:
    """A policy's name, cut where it is too long.

    Of one's own as ``package.module.function``, and of an ablation, the end is kept: it tells more.
    """
    line = single_line(name)
    if line.startswith(ABLATION_PREFIX) and len(line) > _POLICY_WIDTH:
        return clipped_text("…without-" + line.removeprefix(ABLATION_PREFIX), _POLICY_WIDTH + 4)
    if "." in line and len(line) > _POLICY_WIDTH:
        return Text("…" + line[1 - _POLICY_WIDTH :])
    return clipped_text(line, _POLICY_WIDTH)


_PART_WIDTH = 24


def pages_to_baseline_tables(findings: ComparisonAnalysis) -> list[Table]:
    """How many pages each policy needs for breadth-first's harvest; none without that."""
    if not findings.catching_up:
        return []
    table = new_table(
        f"Pages needed for what {BASELINE} finds with its whole budget, from the same starts",
        "policy", "starts", "reached", "never", "pages", "95%", "of its pages", "95%",
    )  # fmt: skip
    for each in findings.fewest_pages_first:
        table.add_row(
            policy_cell(each.policy),
            f"{each.starts:,}",
            f"{each.reached:,}",
            f"{each.never:,}",
            number_format.format_median_pages(each.pages, each.starts),
            number_format.format_pages_interval(each.pages_low, each.pages_high),
            number_format.format_median_share(each.share, each.starts),
            number_format.format_median_share_interval(each.share_low, each.share_high),
        )
    table.caption = (
        f"Medians over the starts from which {BASELINE} found anything; a run that never got there "
        "counts as later than any. 95%: bootstrap over topics and starts"
    )
    return [table]


def ablation_tables(findings: ComparisonAnalysis) -> list[Table]:
    """Our own policy with a part left out, less the whole; none when no such run is there."""
    if not findings.ablations:
        return []
    table = new_table(
        f"What each part of {FOCUSED} is worth: without it, less the whole, from the same starts",
        "without", "points", "95%", "area", "95%", "wins", "ties", "losses",
    )  # fmt: skip
    for each in findings.ablations:
        table.add_row(
            clipped_text(each.policy.removeprefix(ABLATION_PREFIX), _PART_WIDTH),
            number_format.format_marked_points(each.difference),
            number_format.format_points_interval(each.difference),
            number_format.format_signed(each.area_difference.mean, 3),
            number_format.format_signed_interval(each.area_difference, 3),
            f"{each.wins:,}",
            f"{each.ties:,}",
            f"{each.losses:,}",
        )
    table.caption = (
        "Points: of harvest, in per cent; below zero the part pays. ?: the interval holds zero or "
        "there is none. 95%: bootstrap over topics and starts"
    )
    return [table]


def calibration_tables(findings: ComparisonAnalysis) -> list[Table]:
    """Scores against labels, policy by policy; none where no scores are probabilities."""
    if not findings.calibration:
        return []
    table = new_table(
        "Were the scores right? By labels, over all runs", "policy", "runs", "pages",
        "calibration error", "Brier score", "of the mean",
    )  # fmt: skip
    for each in findings.calibration:
        table.add_row(
            policy_cell(each.policy),
            f"{each.runs:,}",
            f"{each.pages:,}",
            number_format.format_number(each.calibration_error, 3),
            number_format.format_number(each.brier, 3),
            number_format.format_number(each.brier_reference, 3),
        )
    table.caption = (
        "Scores before the fetch; 0 is best. Of the mean: the Brier score of one number for all "
        "pages, the share on topic. Seeds, training pages and copies have no part"
    )
    return [table, _bins_table(findings)]


def _bins_table(findings: ComparisonAnalysis) -> Table:
    first = next((c for c in findings.calibration if c.policy == FOCUSED), findings.calibration[0])
    table = new_table(
        f"What the scores of {first.policy} meant", "score", "pages", "mean score",
        "on topic", "95%",
    )  # fmt: skip
    for each in first.bins:
        table.add_row(
            f"{each.low:.1f}–{each.high:.1f}",
            f"{each.pages:,}",
            number_format.format_number(each.score, 2),
            number_format.format_mean_share(each.on_topic),
            number_format.format_share_interval(each.on_topic),
        )
    return table


_TOPICS_ABREAST = 12
_START_COLUMNS = 48
"""Characters that topic, seeds and cap take up beside the policies."""


def all_tables(findings: ComparisonAnalysis) -> list[Table]:
    """What a comparison prints: by topic, summary, costs, pairs, parts, scores, verdicts."""
    if not findings.grid.starts:
        return []
    return [
        *harvest_tables(findings),
        summary_table(findings),
        *pages_to_baseline_tables(findings),
        costs_table(findings),
        *(
            table
            for reference in dict.fromkeys(each.reference for each in findings.paired)
            for table in (
                paired_table(findings, reference),
                *paired_groups_tables(findings, reference),
            )
        ),
        *ablation_tables(findings),
        *calibration_tables(findings),
        *classifier_tables(findings),
    ]


def harvest_tables(findings: ComparisonAnalysis) -> list[Table]:
    """Mean harvest of each policy by topic, seeds and cap.

    A few policies are columns of one table; many are rows, with a table for each
    kind of start and the topics as numbered columns, named below it.
    """
    policies = [each.policy for each in findings.best_first]
    taken = sum(max(len(policy), 5) + 2 for policy in policies)
    if _START_COLUMNS + taken <= TABLES_WIDTH:
        return [_harvest_by_start(findings.grid, policies)]
    return [
        table
        for group in findings.grid.groups
        for table in _harvest_by_policy(findings.grid.in_group(group), group, policies)
    ]


def summary_table(findings: ComparisonAnalysis) -> Table:
    """Means by the labels, the best policy first."""
    table = new_table("Summary, by labels", "policy", "runs", "harvest", "95%", "recall", "area")
    for column in ("hosts", "× bfs", "of oracle", "of bound", "early"):
        table.add_column(column, justify="right")
    for each in findings.best_first:
        table.add_row(
            policy_cell(each.policy),
            f"{each.runs:,}",
            number_format.format_mean_share(each.harvest),
            number_format.format_share_interval(each.harvest),
            number_format.format_mean_share(each.recall),
            number_format.format_mean_number(each.area, 3),
            number_format.format_number(each.hosts, 1),
            number_format.format_mean_number(each.ratio_to_bfs),
            number_format.format_mean_number(each.ratio_to_oracle),
            number_format.format_mean_number(each.ratio_to_path_oracle),
            f"{each.ended_early:,}",
        )
    table.caption = (
        "95%: bootstrap over topics and starts. × bfs, of oracle, of bound (path-oracle): ratio of "
        "mean harvests over paired starts. Early: runs that left budget over; harvest flatters them"
    )
    return table


def costs_table(findings: ComparisonAnalysis) -> Table:
    """How far each policy got, and what it cost."""
    table = new_table(
        "How far, and at what cost", "policy", "stop", "stop hot", "half at", "reached"
    )
    for column in ("minutes", "CPU s", "ms/page", "peak MB"):
        table.add_column(column, justify="right")
    for each in findings.best_first:
        minutes = None if each.simulated_s is None else each.simulated_s / 60
        table.add_row(
            policy_cell(each.policy),
            number_format.share(each.crawl_and_stop),
            number_format.share(each.crawl_and_stop_threshold),
            number_format.format_number(each.half_recall_pages),
            f"{each.half_recall_reached:,}/{each.runs:,}",
            number_format.format_number(minutes, 1),
            number_format.format_number(each.cpu_s, 1),
            number_format.format_number(each.cpu_ms_per_page, 2),
            number_format.format_number(each.peak_mb),
        )
    table.caption = (
        "stop, stop hot: crawl and stop, without and with threshold (Cho et al. 1998). Half at: "
        "median pages to half of the recall, of the runs that reached it. Minutes: simulated"
    )
    return table


def paired_table(findings: ComparisonAnalysis, reference: str) -> Table:
    """Every policy less ``reference``, over all starts that both have."""
    table = new_table(
        f"Harvest less that of {single_line(reference)}, in percentage points, from the same starts",
        "policy", "points", "95%", "area", "wins", "ties", "losses", "topics",
    )  # fmt: skip
    for each in findings.paired_with(reference):
        table.add_row(
            policy_cell(each.policy),
            _format_difference(each),
            number_format.format_points_interval(each.difference),
            number_format.format_signed(each.area_difference.mean, 3),
            f"{each.wins:,}",
            f"{each.ties:,}",
            f"{each.losses:,}",
            f"{each.topics_won:,}:{each.topics_lost:,}",
        )
    table.caption = (
        f"A tie: harvests within {100 * TIE_MARGIN:.1f} points. ?: the interval holds zero or there is "
        "none. Topics: better on, worse on"
    )
    return table


def paired_groups_tables(findings: ComparisonAnalysis, reference: str) -> list[Table]:
    """The same differences for each kind of start; none when there is one kind only."""
    groups = findings.grid.groups
    if len(groups) < 2:
        return []
    table = new_table(f"The same by kind of start, less {single_line(reference)}", "policy")
    for seeds, cap in groups:
        capped = "" if cap is None else f"\ncap {cap:,}"
        table.add_column(Text(single_line(seeds, 14) + capped), justify="right")
    by_group = [findings.paired_with(reference, group) for group in groups]
    for each in findings.paired_with(reference):
        cells = ({pair.policy: pair for pair in part}.get(each.policy) for part in by_group)
        row = (number_format.NONE if pair is None else _format_difference(pair) for pair in cells)
        table.add_row(policy_cell(each.policy), *row)
    return [table]


def classifier_tables(findings: ComparisonAnalysis) -> list[Table]:
    """The classifier's own verdicts beside the labels'; none where it was not asked."""
    known = [each for each in findings.best_first if each.classifier_harvest is not None]
    if not known:
        return []
    table = new_table(
        "The same pages, judged by the classifier that guided the crawl", "policy", "by classifier",
        "by labels", "flattery", "precision", "recall",
    )  # fmt: skip
    for each in known:
        assert each.classifier_harvest is not None  # chosen so
        flattery = None if each.harvest is None else each.classifier_harvest - each.harvest.mean
        table.add_row(
            policy_cell(each.policy),
            number_format.share(each.classifier_harvest),
            number_format.format_mean_share(each.harvest),
            number_format.NONE if flattery is None else number_format.format_points(flattery),
            number_format.share(each.classifier_precision),
            number_format.share(each.classifier_recall),
        )
    table.caption = (
        "Precision: what it calls on topic and the labels do, too. Recall: what the labels call "
        "on topic and it does, too. Flattery: percentage points"
    )
    return [table]


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
        table.add_column(policy_cell(policy), justify="right")
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
            table.add_row(policy_cell(policy), *map(number_format.format_bare_share, values))
        key = ", ".join(f"{n}\u00a0{single_line(topic, 40)}" for n, (_, topic) in shown)
        table.caption = Text(key)
        yield table


def _format_difference(pair: PairedDifference) -> str:
    return number_format.format_marked_points(pair.difference)
