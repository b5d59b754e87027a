"""``focused compare-revisits``: revisit policies over change histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from focused.cli.common import FILE, FOLDER


@click.command("compare-revisits")
@click.argument("histories", metavar="[HISTORY]...", type=FILE, nargs=-1)
@click.option("--poisson", is_flag=True, help="Add eight synthetic sites of Poisson pages.")
@click.option("--bursty", is_flag=True, help="Add eight synthetic sites that change in bursts.")
@click.option(
    "--policies",
    default="all",
    show_default=True,
    help="Revisit policies, separated by commas. See docs/reference/revisit-policies.md.",
)
@click.option(
    "--intervals",
    default="7,30,90,365",
    show_default=True,
    help="Budgets: mean days between two visits of a page.",
)
@click.option(
    "--budget",
    type=click.Choice(["pooled", "per-site", "both"]),
    default="pooled",
    show_default=True,
    help="One budget for all sites, or one for each.",
)
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Repetitions with other pages.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed for drawing pages."
)
@click.option(
    "--years",
    type=click.FloatRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    help="Length of the simulation.",
)
@click.option(
    "--warm-up-days",
    type=click.FloatRange(min=0),
    default=182.625,
    show_default=True,
    help="Days at the start that are not measured.",
)
@click.option(
    "--max-pages",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    help="Maximum number of pages per site.",
)
@click.option(
    "--signals",
    default="none",
    show_default=True,
    help="Which sites have sitemaps that state changes. See "
    "docs/how-to/compare-revisits.md#change-signals.",
)
@click.option("--dates", "dated", is_flag=True, help="Let all servers send Last-Modified.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Number of processes.",
)
@click.option(
    "--out",
    type=FOLDER,
    default=Path("revisits"),
    show_default=True,
    help="Folder of the report.",
)
def compare_revisits(
    histories: tuple[Path, ...],
    policies: str,
    intervals: str,
    budget: str,
    jobs: int,
    out: Path,
    **options: Any,
) -> None:
    """Simulate revisits of changing pages and compare policies by freshness and age.

    HISTORY is the change history of a site. See docs/how-to/compare-revisits.md.
    """
    from focused_lab.commands.compare_actions import compare_revisits as run
    from focused_lab.commands.compare_actions import split_days, split_names
    from focused_lab.freshness.revisit_comparison import RevisitSettings

    settings = RevisitSettings(
        histories=tuple(str(path) for path in histories),
        policies=split_names(policies, "--policies"),
        intervals_days=split_days(intervals),
        budgets=("pooled", "per-site") if budget == "both" else (budget,),
        **options,
    )
    run(settings, jobs, out)
