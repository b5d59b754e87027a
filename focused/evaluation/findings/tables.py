"""The tables of an examination for the terminal; each fits a hundred columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from focused.evaluation.findings import phrases
from focused.evaluation.findings.closer_tables import (
    ablation_tables,
    calibration_tables,
    catching_up_tables,
)
from focused.evaluation.findings.conclusions import Findings
from focused.evaluation.findings.grid import Grid, Group, group_name
from focused.evaluation.findings.pairing import TIE, Pairing
from focused.evaluation.findings.table_frame import (
    TABLES_WIDTH,
    foreign_text,
    new_table,
    policy_text,
)
from focused.evaluation.wording import plain

_TOPICS_ABREAST = 12
_START_COLUMNS = 48
"""Characters that topic, seeds and cap take up beside the policies."""


def all_tables(findings: Findings) -> list[Table]:
    """What a comparison prints: by topic, summary, costs, pairs, parts, scores, verdicts."""
    if not findings.grid.starts:
        return []
    return [
        *harvest_tables(findings),
        summary_table(findings),
        *catching_up_tables(findings),
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
        *verdicts_tables(findings),
    ]


def harvest_tables(findings: Findings) -> list[Table]:
    """Mean harvest of each policy by topic, seeds and cap.

    A few policies are columns of one table; many are rows, with a table for each
    kind of start and the topics as numbered columns, named below it.
    """
    policies = [each.policy for each in findings.best_first]
    taken = sum(max(len(policy), 5) + 2 for policy in policies)
    if _START_COLUMNS + taken <= TABLES_WIDTH:
        return [_by_start(findings.grid, policies)]
    return [
        table
        for group in findings.grid.groups
        for table in _by_policy(findings.grid.in_group(group), group, policies)
    ]


def summary_table(findings: Findings) -> Table:
    """Means by the labels, the best policy first."""
    table = new_table("Summary, by labels", "policy", "runs", "harvest", "95%", "recall", "area")
    for column in ("hosts", "× bfs", "of oracle", "of bound", "early"):
        table.add_column(column, justify="right")
    for each in findings.best_first:
        table.add_row(
            policy_text(each.policy),
            f"{each.runs:,}",
            phrases.mean_share(each.harvest),
            phrases.share_interval(each.harvest),
            phrases.mean_share(each.recall),
            phrases.mean_number(each.area, 3),
            phrases.number(each.hosts, 1),
            phrases.mean_number(each.ratio_to_bfs),
            phrases.mean_number(each.ratio_to_oracle),
            phrases.mean_number(each.ratio_to_path_oracle),
            f"{each.ended_early:,}",
        )
    table.caption = (
        "95%: bootstrap over topics and starts. × bfs, of oracle, of bound (path-oracle): ratio of "
        "mean harvests over paired starts. Early: runs that left budget over; harvest flatters them"
    )
    return table


def costs_table(findings: Findings) -> Table:
    """How far each policy got, and what it cost."""
    table = new_table(
        "How far, and at what cost", "policy", "stop", "stop hot", "half at", "reached"
    )
    for column in ("minutes", "CPU s", "ms/page", "peak MB"):
        table.add_column(column, justify="right")
    for each in findings.best_first:
        minutes = None if each.simulated_s is None else each.simulated_s / 60
        table.add_row(
            policy_text(each.policy),
            phrases.share(each.crawl_and_stop),
            phrases.share(each.crawl_and_stop_threshold),
            phrases.number(each.half_recall_pages),
            f"{each.half_recall_reached:,}/{each.runs:,}",
            phrases.number(minutes, 1),
            phrases.number(each.cpu_s, 1),
            phrases.number(each.cpu_ms_per_page, 2),
            phrases.number(each.peak_mb),
        )
    table.caption = (
        "stop, stop hot: crawl and stop, without and with threshold (Cho et al. 1998). Half at: "
        "median pages to half of the recall, of the runs that reached it. Minutes: simulated"
    )
    return table


def paired_table(findings: Findings, reference: str) -> Table:
    """Every policy less ``reference``, over all starts that both have."""
    table = new_table(
        f"Harvest less that of {plain(reference)}, in percentage points, from the same starts",
        "policy", "points", "95%", "area", "wins", "ties", "losses", "topics",
    )  # fmt: skip
    for each in findings.paired_with(reference):
        table.add_row(
            policy_text(each.policy),
            _difference(each),
            phrases.points_interval(each.difference),
            phrases.signed(each.area_difference.mean, 3),
            f"{each.wins:,}",
            f"{each.ties:,}",
            f"{each.losses:,}",
            f"{each.topics_won:,}:{each.topics_lost:,}",
        )
    table.caption = (
        f"A tie: harvests within {100 * TIE:.1f} points. ?: the interval holds zero or there is "
        "none. Topics: better on, worse on"
    )
    return table


def paired_groups_tables(findings: Findings, reference: str) -> list[Table]:
    """The same differences for each kind of start; none when there is one kind only."""
    groups = findings.grid.groups
    if len(groups) < 2:
        return []
    table = new_table(f"The same by kind of start, less {plain(reference)}", "policy")
    for seeds, cap in groups:
        capped = "" if cap is None else f"\ncap {cap:,}"
        table.add_column(Text(plain(seeds, 14) + capped), justify="right")
    by_group = [findings.paired_with(reference, group) for group in groups]
    for each in findings.paired_with(reference):
        cells = ({pair.policy: pair for pair in part}.get(each.policy) for part in by_group)
        row = (phrases.NONE if pair is None else _difference(pair) for pair in cells)
        table.add_row(policy_text(each.policy), *row)
    return [table]


def verdicts_tables(findings: Findings) -> list[Table]:
    """The classifier's own verdicts beside the labels'; none where it was not asked."""
    known = [each for each in findings.best_first if each.judge_harvest is not None]
    if not known:
        return []
    table = new_table(
        "The same pages, judged by the classifier that guided the crawl", "policy", "by classifier",
        "by labels", "flattery", "precision", "recall",
    )  # fmt: skip
    for each in known:
        assert each.judge_harvest is not None  # chosen so
        flattery = None if each.harvest is None else each.judge_harvest - each.harvest.mean
        table.add_row(
            policy_text(each.policy),
            phrases.share(each.judge_harvest),
            phrases.mean_share(each.harvest),
            phrases.NONE if flattery is None else phrases.points(flattery),
            phrases.share(each.judge_precision),
            phrases.share(each.judge_recall),
        )
    table.caption = (
        "Precision: what it calls on topic and the labels do, too. Recall: what the labels call "
        "on topic and it does, too. Flattery: percentage points"
    )
    return [table]


def cell_means(grid: Grid) -> dict[tuple[str, str, str, str, int | None], float]:
    """Mean harvest by policy, web, topic, seeds and host cap."""
    cells: dict[tuple[str, str, str, str, int | None], list[float]] = {}
    for (start, policy), run in grid.runs.items():
        key = (policy, start.web, start.topic, start.seeds, start.host_cap)
        cells.setdefault(key, []).append(run.harvest)
    return {key: float(np.mean(values)) for key, values in cells.items()}


def _by_start(grid: Grid, policies: Sequence[str]) -> Table:
    table = new_table("Harvest by topic, seeds and policy", "topic", "seeds", "cap")
    for policy in policies:
        table.add_column(policy_text(policy), justify="right")
    cells = cell_means(grid)
    kinds = dict.fromkeys((each.web, each.topic, each.seeds, each.host_cap) for each in grid.starts)
    for web, topic, seeds, cap in kinds:
        values = (cells.get((policy, web, topic, seeds, cap)) for policy in policies)
        table.add_row(
            foreign_text(topic, 26),
            foreign_text(seeds, 12),
            phrases.cap_text(cap),
            *map(phrases.share, values),
        )
    return table


def _by_policy(grid: Grid, group: Group, policies: Sequence[str]) -> Iterator[Table]:
    cells, topics = cell_means(grid), grid.topics
    for first in range(0, len(topics), _TOPICS_ABREAST):
        shown = list(enumerate(topics, 1))[first : first + _TOPICS_ABREAST]
        title = f"Harvest in per cent, {group_name(group)}"
        table = new_table(title, "policy", *(str(n) for n, _ in shown))
        for policy in policies:
            values = (cells.get((policy, web, topic, *group)) for _, (web, topic) in shown)
            table.add_row(policy_text(policy), *map(phrases.bare_share, values))
        key = ", ".join(f"{n}\u00a0{plain(topic, 40)}" for n, (_, topic) in shown)
        table.caption = Text(key)
        yield table


def _difference(pair: Pairing) -> str:
    return phrases.decided_points(pair.difference)
