"""Tables for a closer look at our own: pages needed, what each part is worth, scores."""

from __future__ import annotations

from rich.table import Table

from focused.evaluation.findings import phrases
from focused.evaluation.findings.conclusions import Findings
from focused.evaluation.findings.grid import ABLATION, BASELINE, OURS
from focused.evaluation.findings.table_frame import foreign_text, new_table, policy_text

_PART_WIDTH = 24


def catching_up_tables(findings: Findings) -> list[Table]:
    """How many pages each policy needs for breadth-first's harvest; none without that."""
    if not findings.catching_up:
        return []
    table = new_table(
        f"Pages needed for what {BASELINE} finds with its whole budget, from the same starts",
        "policy", "starts", "reached", "never", "pages", "95%", "of its pages", "95%",
    )  # fmt: skip
    for each in findings.quickest_first:
        table.add_row(
            policy_text(each.policy),
            f"{each.starts:,}",
            f"{each.reached:,}",
            f"{each.never:,}",
            phrases.reached_pages(each.pages, each.starts),
            phrases.pages_interval(each.pages_low, each.pages_high),
            phrases.reached_share(each.share, each.starts),
            phrases.reached_interval(each.share_low, each.share_high),
        )
    table.caption = (
        f"Medians over the starts from which {BASELINE} found anything; a run that never got there "
        "counts as later than any. 95%: bootstrap over topics and starts"
    )
    return [table]


def ablation_tables(findings: Findings) -> list[Table]:
    """Our own policy with a part left out, less the whole; none when no such run is there."""
    if not findings.ablations:
        return []
    table = new_table(
        f"What each part of {OURS} is worth: without it, less the whole, from the same starts",
        "without", "points", "95%", "area", "95%", "wins", "ties", "losses",
    )  # fmt: skip
    for each in findings.ablations:
        table.add_row(
            foreign_text(each.policy.removeprefix(ABLATION), _PART_WIDTH),
            phrases.decided_points(each.difference),
            phrases.points_interval(each.difference),
            phrases.signed(each.area_difference.mean, 3),
            phrases.signed_interval(each.area_difference, 3),
            f"{each.wins:,}",
            f"{each.ties:,}",
            f"{each.losses:,}",
        )
    table.caption = (
        "Points: of harvest, in per cent; below zero the part pays. ?: the interval holds zero or "
        "there is none. 95%: bootstrap over topics and starts"
    )
    return [table]


def calibration_tables(findings: Findings) -> list[Table]:
    """Scores against labels, policy by policy; none where no scores are probabilities."""
    if not findings.calibration:
        return []
    table = new_table(
        "Were the scores right? By labels, over all runs", "policy", "runs", "pages",
        "calibration error", "Brier score", "of the mean",
    )  # fmt: skip
    for each in findings.calibration:
        table.add_row(
            policy_text(each.policy),
            f"{each.runs:,}",
            f"{each.pages:,}",
            phrases.number(each.calibration_error, 3),
            phrases.number(each.brier, 3),
            phrases.number(each.brier_of_rate, 3),
        )
    table.caption = (
        "Scores before the fetch; 0 is best. Of the mean: the Brier score of one number for all "
        "pages, the share on topic. Seeds, training pages and copies have no part"
    )
    return [table, _bins_table(findings)]


def _bins_table(findings: Findings) -> Table:
    first = next((c for c in findings.calibration if c.policy == OURS), findings.calibration[0])
    table = new_table(
        f"What the scores of {first.policy} meant", "score", "pages", "mean score",
        "on topic", "95%",
    )  # fmt: skip
    for each in first.bins:
        table.add_row(
            f"{each.low:.1f}–{each.high:.1f}",
            f"{each.pages:,}",
            phrases.number(each.score, 2),
            phrases.mean_share(each.on_topic),
            phrases.share_interval(each.on_topic),
        )
    return table
