"""``focused compare-revisits``: compare revisit policies over change histories."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console

from focused.cli.common import echo
from focused.experiments.freshness.revisit_comparison import (
    RevisitSettings,
    SiteRow,
    load_sites,
    plan_runs,
    run_comparison,
)
from focused.experiments.freshness.revisit_report import result_tables, summarise, write_report

_TABLES_WIDTH = 130
_LEAST_PAUSE_S = 10.0


def split_names(text: str, option: str) -> tuple[str, ...]:
    """Split a list at its commas. Raises click.BadParameter for an empty one."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("names nothing.", param_hint=option)
    return names


def split_days(text: str) -> tuple[float, ...]:
    """Parse mean intervals in days."""
    found = []
    for part in split_names(text, "--intervals"):
        try:
            days = float(part)
        except ValueError:
            days = 0.0
        if not 0 < days < 1e5:
            raise click.BadParameter(
                f"{part!r} is not a number of days, such as 30.", param_hint="--intervals"
            )
        found.append(days)
    return tuple(found)


def compare_revisits(settings: RevisitSettings, jobs: int, folder: Path) -> None:
    """Run all policies, print the tables, write the report into ``folder``."""
    runs = plan_runs(settings)
    sites = load_sites(settings)
    pages = sum(len(site.pages) for site in sites)
    echo(f"focused: {len(runs)} runs on {len(sites)} sites with {pages:,} pages", err=True)
    rows: list[SiteRow] = []
    shown_at = time.monotonic()
    for number, (run, made) in enumerate(run_comparison(settings, runs, jobs), start=1):
        rows += made
        if time.monotonic() - shown_at >= _LEAST_PAUSE_S:
            shown_at = time.monotonic()
            done = f"{number} of {len(runs)} runs are done"
            echo(f"focused: {done}, the last {run.policy} at {run.interval_days:g} days", err=True)
    measures = summarise(rows, settings.seed)
    console = Console()
    # On narrow terminals and pipes, long lines wrap instead of being cut.
    console.width = max(console.width, _TABLES_WIDTH)
    for table in result_tables(measures):
        console.print(table)
        console.print()
    written = write_report(settings, rows, measures, folder)
    echo(f"Report: {written[0]}, and {len(written) - 1} files beside it")
